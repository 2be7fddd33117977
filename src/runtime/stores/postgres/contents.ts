import {
  Fault,
  type ContentOwner,
  type Contents,
  type RunId,
  type SessionId,
} from "../../../kernel/index.ts";
import type { Chain } from "../codec/chain.ts";
import { OwnerKind } from "../codec/owner-kind.ts";
import type { Queries } from "./db/queries.ts";
import type { Tables } from "./db/tables.ts";
import type { Collector } from "./retention/collector.ts";
import { addContentOwner, findContent, putContent, readContent, type OwnerRow } from "./rows/content-rows.ts";

export interface PostgresContentsOptions {
  readonly tables: Tables;
  readonly collector: Collector;
  readonly chain: Chain;
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
const listOwners = `SELECT run_id AS "runId", NULL AS "sessionId" FROM {content_owners} AS held JOIN {runs} AS runs ON runs.id = held.owner
    WHERE held.content = $1 AND held.kind = ${OwnerKind.RUN} AND run_id IS NOT NULL
  UNION ALL SELECT NULL, session_id FROM {content_owners} AS held JOIN {sessions} AS sessions ON sessions.id = held.owner
    WHERE held.content = $1 AND held.kind = ${OwnerKind.SESSION} AND session_id IS NOT NULL`;

export class PostgresContents implements Contents {
  readonly #tables: Tables;
  readonly #collector: Collector;
  readonly #chain: Chain;

  constructor({ tables, collector, chain }: PostgresContentsOptions) {
    this.#tables = tables;
    this.#collector = collector;
    this.#chain = chain;
  }

  async put(owner: ContentOwner, bytes: Uint8Array): Promise<string> {
    const kept = bytes.slice();
    const hash = this.#chain.contentHash(kept);
    await this.#tables.database.write(async (transaction) => {
      const found = await need(transaction, owner);
      await putContent(transaction, { tenant: found.tenant, owner: found, hash, data: () => kept });
    });
    return hash;
  }

  get(owner: ContentOwner, hash: string): Promise<Uint8Array | undefined> {
    return this.#tables.database.read(async (queries) => {
      const content = await contentOf(queries, await find(queries, owner), hash);
      return content === undefined ? undefined : readContent(queries, content);
    });
  }

  async share(
    hash: string,
    { from, to }: { readonly from: ContentOwner; readonly to: ContentOwner },
  ): Promise<void> {
    await this.#tables.database.write(async (transaction) => {
      const [source, target] = [await find(transaction, from), await need(transaction, to)];
      const content = await contentOf(transaction, source, hash);
      const isKept =
        content !== undefined &&
        source?.tenant === target.tenant &&
        (await transaction.get(
          "SELECT 1 FROM {contents} WHERE id = $1 AND hash = $2 FOR SHARE",
          content,
          hash,
        ));
      if (isKept === false || isKept === undefined)
        throw new Fault("not_found", `content ${hash} does not exist for ${nameOf(from)}`);
      await addContentOwner(transaction, content, target);
    });
  }

  async release(owner: ContentOwner, hash: string): Promise<void> {
    await this.#tables.database.write(async (transaction) => {
      const found = await find(transaction, owner);
      const content = await contentOf(transaction, found, hash);
      if (found !== undefined && content !== undefined)
        await transaction.run(removeOwner, content, found.kind, found.id);
    });
    await this.#collector.collect();
  }

  async owners(owner: ContentOwner, hash: string): Promise<readonly ContentOwner[]> {
    const rows = await this.#tables.database.read(async (queries) => {
      const content = await contentOf(queries, await find(queries, owner), hash);
      return content === undefined
        ? []
        : queries.all<{ readonly runId: RunId | null; readonly sessionId: SessionId }>(listOwners, content);
    });
    return rows.map(({ runId, sessionId }) => (runId === null ? { sessionId } : { runId }));
  }
}

/** Returns the content if the owner has put it or shares it. */
async function contentOf(
  queries: Queries,
  owner: FoundOwner | undefined,
  hash: string,
): Promise<number | undefined> {
  const content = owner === undefined ? undefined : await findContent(queries, owner.tenant, hash);
  if (owner === undefined || content === undefined) return undefined;
  const row = await queries.get(isOwner, content, owner.kind, owner.id);
  return row === undefined ? undefined : content;
}

async function find(queries: Queries, owner: ContentOwner, lock = ""): Promise<FoundOwner | undefined> {
  const [kind, row] =
    "runId" in owner
      ? [OwnerKind.RUN, await queries.get<OwnerPlace>(`${findRun}${lock}`, owner.runId)]
      : [OwnerKind.SESSION, await queries.get<OwnerPlace>(`${findSession}${lock}`, owner.sessionId)];
  return row === undefined ? undefined : { ...row, kind };
}

/** Locks the owner, so that it is not deleted before the transaction has given it a content. */
async function need(queries: Queries, owner: ContentOwner): Promise<FoundOwner> {
  const found = await find(queries, owner, " FOR SHARE");
  if (found === undefined) throw new Fault("not_found", `${nameOf(owner)} does not exist in this store`);
  return found;
}

function nameOf(owner: ContentOwner): string {
  return "runId" in owner ? `run ${owner.runId}` : `session ${owner.sessionId}`;
}
