import {
  Fault,
  type ContentOwner,
  type Contents,
  type RunId,
  type SessionId,
} from "../../../kernel/index.ts";
import type { Chain } from "../codec/chain.ts";
import { OwnerKind } from "../codec/owner-kind.ts";
import type { ContentRows, OwnerRow } from "./content-rows.ts";
import type { SqlTables } from "./tables.ts";
import { all, get, run, type Work } from "./work.ts";

export interface Collector {
  /** Resolves when the space of everything that was deleted before the call is freed. */
  collect(): Promise<void>;
}

export interface SqlContentsOptions {
  readonly tables: SqlTables;
  readonly rows: ContentRows;
  readonly chain: Chain;
  readonly collector: Collector;
}

/** An owner that exists. */
interface FoundOwner extends OwnerRow {
  /** Stored form of its tenant. */
  readonly tenant: string;
}

type OwnerPlace = Omit<FoundOwner, "kind">;

const findRun = "SELECT id, tenant FROM {runs} WHERE run_id = $1";
const findSession = "SELECT id, tenant FROM {sessions} WHERE session_id = $1";
const isOwner = "SELECT 1 FROM {content_owners} WHERE content = $1 AND kind = $2 AND owner = $3";
const removeOwner = "DELETE FROM {content_owners} WHERE content = $1 AND kind = $2 AND owner = $3";
const keepContent = "SELECT 1 FROM {contents} WHERE id = $1 AND hash = $2 FOR SHARE";
const listOwners = `SELECT run_id AS "runId", NULL AS "sessionId" FROM {content_owners} AS held JOIN {runs} AS runs ON runs.id = held.owner
    WHERE held.content = $1 AND held.kind = ${OwnerKind.RUN} AND run_id IS NOT NULL
  UNION ALL SELECT NULL, session_id FROM {content_owners} AS held JOIN {sessions} AS sessions ON sessions.id = held.owner
    WHERE held.content = $1 AND held.kind = ${OwnerKind.SESSION} AND session_id IS NOT NULL`;

export class SqlContents implements Contents {
  readonly #tables: SqlTables;
  readonly #rows: ContentRows;
  readonly #chain: Chain;
  readonly #collector: Collector;

  constructor({ tables, rows, chain, collector }: SqlContentsOptions) {
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
    this.#collector = collector;
  }

  async put(owner: ContentOwner, bytes: Uint8Array): Promise<string> {
    const kept = bytes.slice();
    const hash = this.#chain.contentHash(kept);
    await this.#tables.transact(() => this.#put(owner, hash, kept), kept.length);
    return hash;
  }

  *#put(owner: ContentOwner, hash: string, bytes: Uint8Array): Work<void> {
    const found = yield* need(owner);
    yield* this.#rows.put({ tenant: found.tenant, owner: found, hash, data: () => bytes });
  }

  async get(owner: ContentOwner, hash: string): Promise<Uint8Array | undefined> {
    return this.#tables.snapshot(() => this.#get(owner, hash));
  }

  *#get(owner: ContentOwner, hash: string): Work<Uint8Array | undefined> {
    const content = yield* this.#contentOf(yield* find(owner), hash);
    return content === undefined ? undefined : yield* this.#rows.read(content);
  }

  async share(
    hash: string,
    { from, to }: { readonly from: ContentOwner; readonly to: ContentOwner },
  ): Promise<void> {
    await this.#tables.transact(() => this.#share(hash, from, to));
  }

  *#share(hash: string, from: ContentOwner, to: ContentOwner): Work<void> {
    const [source, target] = [yield* find(from), yield* need(to)];
    const content = yield* this.#contentOf(source, hash);
    const isKept =
      content !== undefined &&
      source?.tenant === target.tenant &&
      (yield* get(keepContent, content, hash)) !== undefined;
    if (!isKept) throw new Fault("not_found", `content ${hash} does not exist for ${nameOf(from)}`);
    yield* this.#rows.addOwner(content, target);
  }

  async release(owner: ContentOwner, hash: string): Promise<void> {
    await this.#tables.transact(() => this.#release(owner, hash));
    await this.#collector.collect();
  }

  *#release(owner: ContentOwner, hash: string): Work<void> {
    const found = yield* find(owner);
    const content = yield* this.#contentOf(found, hash);
    if (found !== undefined && content !== undefined) yield* run(removeOwner, content, found.kind, found.id);
  }

  async owners(owner: ContentOwner, hash: string): Promise<readonly ContentOwner[]> {
    return this.#tables.snapshot(() => this.#owners(owner, hash));
  }

  *#owners(owner: ContentOwner, hash: string): Work<readonly ContentOwner[]> {
    const content = yield* this.#contentOf(yield* find(owner), hash);
    if (content === undefined) return [];
    const rows = yield* all<{ readonly runId: RunId | null; readonly sessionId: SessionId }>(
      listOwners,
      content,
    );
    return rows.map(({ runId, sessionId }) => (runId === null ? { sessionId } : { runId }));
  }

  /** Returns the content if the owner has put it or shares it. */
  *#contentOf(owner: FoundOwner | undefined, hash: string): Work<number | undefined> {
    const content = owner === undefined ? undefined : yield* this.#rows.find(owner.tenant, hash);
    if (owner === undefined || content === undefined) return undefined;
    const row = yield* get(isOwner, content, owner.kind, owner.id);
    return row === undefined ? undefined : content;
  }
}

function* find(owner: ContentOwner, lock = ""): Work<FoundOwner | undefined> {
  const [kind, row] =
    "runId" in owner
      ? [OwnerKind.RUN, yield* get<OwnerPlace>(`${findRun}${lock}`, owner.runId)]
      : [OwnerKind.SESSION, yield* get<OwnerPlace>(`${findSession}${lock}`, owner.sessionId)];
  return row === undefined ? undefined : { ...row, kind };
}

/** Locks the owner, so that it is not deleted before the transaction has given it a content. */
function* need(owner: ContentOwner): Work<FoundOwner> {
  const found = yield* find(owner, " FOR SHARE");
  if (found === undefined) throw new Fault("not_found", `${nameOf(owner)} does not exist in this store`);
  return found;
}

function nameOf(owner: ContentOwner): string {
  return "runId" in owner ? `run ${owner.runId}` : `session ${owner.sessionId}`;
}
