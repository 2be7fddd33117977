import {
  Fault,
  type ContentOwner,
  type Contents,
  type RunId,
  type SessionId,
} from "../../../kernel/index.ts";
import { OwnerKind } from "../codec/owner-kind.ts";
import type { Tables } from "./db/tables.ts";
import type { Collector } from "./retention/collector.ts";
import type { Chain } from "../codec/chain.ts";
import type { ContentRows, OwnerRow } from "./rows/content-rows.ts";

export interface SqliteContentsOptions {
  readonly tables: Tables;
  readonly rows: ContentRows;
  readonly collector: Collector;
  readonly chain: Chain;
}

/** An owner that exists. */
interface FoundOwner extends OwnerRow {
  /** Stored form of its tenant. */
  readonly tenant: string;
}

const findRun = "SELECT id, tenant FROM runs WHERE run_id = ?";
const findSession = "SELECT id, tenant FROM sessions WHERE session_id = ?";
const isOwner = "SELECT 1 FROM content_owners WHERE content = ? AND kind = ? AND owner = ?";
const removeOwner = "DELETE FROM content_owners WHERE content = ? AND kind = ? AND owner = ?";
const listOwners = `WITH held AS (SELECT kind AS of, owner AS row FROM content_owners WHERE content = ?)
  SELECT run_id AS runId, NULL AS sessionId FROM held JOIN runs ON runs.id = row
    WHERE of = ${OwnerKind.RUN} AND run_id IS NOT NULL
  UNION ALL SELECT NULL, session_id FROM held JOIN sessions ON sessions.id = row
    WHERE of = ${OwnerKind.SESSION} AND session_id IS NOT NULL`;

export class SqliteContents implements Contents {
  readonly #tables: Tables;
  readonly #rows: ContentRows;
  readonly #collector: Collector;
  readonly #chain: Chain;

  constructor({ tables, rows, collector, chain }: SqliteContentsOptions) {
    this.#tables = tables;
    this.#rows = rows;
    this.#collector = collector;
    this.#chain = chain;
  }

  async put(owner: ContentOwner, bytes: Uint8Array): Promise<string> {
    const kept = bytes.slice();
    const hash = this.#chain.contentHash(kept);
    await this.#tables.write({
      bytes: kept.length,
      apply: () => {
        const found = this.#need(owner);
        this.#rows.putNow(found.tenant, found, hash, () => kept);
      },
    });
    return hash;
  }

  async get(owner: ContentOwner, hash: string): Promise<Uint8Array | undefined> {
    return this.#tables.read(() =>
      this.#tables.database.transaction("DEFERRED", () => {
        const content = this.#contentOf(this.#find(owner), hash);
        return content === undefined ? undefined : this.#rows.read(content);
      }),
    );
  }

  async share(
    hash: string,
    { from, to }: { readonly from: ContentOwner; readonly to: ContentOwner },
  ): Promise<void> {
    await this.#tables.write({
      apply: () => {
        const [source, target] = [this.#find(from), this.#need(to)];
        const content = this.#contentOf(source, hash);
        if (content === undefined || source?.tenant !== target.tenant)
          throw new Fault("not_found", `content ${hash} does not exist for ${nameOf(from)}`);
        this.#rows.addOwnerNow(content, target);
      },
    });
  }

  async release(owner: ContentOwner, hash: string): Promise<void> {
    await this.#tables.write({
      apply: () => {
        const found = this.#find(owner);
        const content = this.#contentOf(found, hash);
        if (found !== undefined && content !== undefined)
          this.#tables.database.run(removeOwner, content, found.kind, found.id);
      },
    });
    await this.#collector.collect();
  }

  async owners(owner: ContentOwner, hash: string): Promise<readonly ContentOwner[]> {
    const rows = await this.#tables.read(() => {
      const content = this.#contentOf(this.#find(owner), hash);
      return content === undefined
        ? []
        : this.#tables.database.all<{ readonly runId: RunId | null; readonly sessionId: SessionId }>(
            listOwners,
            content,
          );
    });
    return rows.map(({ runId, sessionId }) => (runId === null ? { sessionId } : { runId }));
  }

  /** Returns the content if the owner has put it or shares it. */
  #contentOf(owner: FoundOwner | undefined, hash: string): number | undefined {
    const content = owner === undefined ? undefined : this.#rows.findNow(owner.tenant, hash);
    if (owner === undefined || content === undefined) return undefined;
    return this.#tables.database.get(isOwner, content, owner.kind, owner.id) === undefined
      ? undefined
      : content;
  }

  #find(owner: ContentOwner): FoundOwner | undefined {
    const { database } = this.#tables;
    const [kind, row] =
      "runId" in owner
        ? [OwnerKind.RUN, database.get<Omit<FoundOwner, "kind">>(findRun, owner.runId)]
        : [OwnerKind.SESSION, database.get<Omit<FoundOwner, "kind">>(findSession, owner.sessionId)];
    return row === undefined ? undefined : { ...row, kind };
  }

  #need(owner: ContentOwner): FoundOwner {
    const found = this.#find(owner);
    if (found === undefined) throw new Fault("not_found", `${nameOf(owner)} does not exist in this store`);
    return found;
  }
}

function nameOf(owner: ContentOwner): string {
  return "runId" in owner ? `run ${owner.runId}` : `session ${owner.sessionId}`;
}
