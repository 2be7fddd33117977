import {
  continuesFrom,
  rebaseBatch,
  type RunId,
  type SessionId,
  type SessionOwner,
} from "../../../kernel/index.ts";
import {
  batchAt,
  batchChanges,
  isBatch,
  type BatchedChange,
  type EntryBatch,
  type Say,
} from "../codec/entry-batch.ts";
import type { LargeValues } from "../codec/large-values.ts";
import { OwnerKind } from "../codec/owner-kind.ts";
import { tenantText } from "../codec/stored-run.ts";
import { orphaned, targetOf, untargeted } from "../orphan-entries.ts";
import { ordinalOf, visibilities, visible } from "../sql/entry-row.ts";
import {
  changedRow,
  isComing,
  isShownSoon,
  newSession,
  noteBatch,
  titleOf,
  type OpenSession,
  type SessionRow,
} from "../sql/session-state.ts";
import { sessionLock } from "../sql/session-rows.ts";
import type { Queries } from "./db/queries.ts";
import type { Transaction } from "./db/transaction.ts";
import { keepValues } from "./rows/content-rows.ts";
import type { EntryRows } from "./rows/entry-rows.ts";
import { deleteSession, findSession, insertSession, updateSession } from "./rows/session-rows.ts";

const unseenOfRun = `session = $1 AND run_id = $2 AND ($3::bigint IS NULL OR task = $3) AND visibility < ${visible}`;
const revealEntries = `UPDATE {entries} SET visibility = ${visible} WHERE ${unseenOfRun}`;
/** Pending entries behind which the conversation has continued. */
const leftEntries = `SELECT place FROM {entries} AS entries
  WHERE ${unseenOfRun} AND visibility = 0 AND coalesce(task, 0) = 0
    AND EXISTS (SELECT 1 FROM {entries} AS later WHERE later.session = $1 AND later.place > entries.place
      AND later.visibility = ${visible} AND coalesce(later.task, 0) = 0 AND later.type NOT IN ('label', 'session_info'))
  ORDER BY place`;
const nextPlace = "(SELECT coalesce(max(place), 0) + 1 FROM {entries} WHERE session = $1)";
const readBody = "SELECT body FROM {entries} WHERE session = $1 AND place = $2";
const placeAgain = `UPDATE {entries} SET body = $3, place = ${nextPlace} WHERE session = $1 AND place = $2`;
const removeEntries = `DELETE FROM {entries} WHERE session = $1 AND run_id = $2 AND ($3::bigint IS NULL OR task = $3)`;
const removeUnseen = `DELETE FROM {entries} WHERE ${unseenOfRun}`;
const hasEntries = "SELECT 1 FROM {entries} WHERE session = $1 LIMIT 1";
const insertEntries = `INSERT INTO {entries} (session, place, stem, number, count, run_id, task, visibility, type, body, refs)
  VALUES ($1, ${nextPlace}, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id`;

/** What is known about the changes of a commit. */
export interface ChangeSource {
  /** Time of the commit. Default: 0. */
  readonly at?: number;
  /** N6: owner of the sessions that the changes create. */
  readonly owner: SessionOwner;
}

/** Changes sessions, inside the transactions of the journal. */
export class SessionChanges {
  readonly #entries: EntryRows;
  readonly #large: LargeValues;

  constructor(entries: EntryRows, large: LargeValues) {
    this.#entries = entries;
    this.#large = large;
  }

  /** Locks the sessions of the changes, so that no other transaction changes them until this one ends. */
  async lock(transaction: Transaction, changes: readonly BatchedChange[]): Promise<void> {
    const ids = changes.map((change) => (isBatch(change) ? change.first : change).sessionId);
    await transaction.lock(...ids.map(sessionLock));
  }

  /** N1, N4: rejects with `not_found` if the parent of an entry does not exist or its target is not visible. */
  async refuseOrphans(queries: Queries, changes: readonly BatchedChange[]): Promise<void> {
    const coming: EntryBatch[] = [];
    for (const change of changes) {
      if (!isBatch(change)) continue;
      const { sessionId, entry, atLeaf } = change.first;
      const parentId = atLeaf === true ? null : entry.parentId;
      if (parentId !== null && !isComing(coming, sessionId, parentId)) {
        const session = await findSession(queries, sessionId);
        if (session === undefined || !(await this.#entries.has(queries, session.id, parentId)))
          throw orphaned(sessionId, entry);
      }
      if (entry.type === "leaf" || entry.type === "label") await this.#refuseTargets(queries, coming, change);
      coming.push(change);
    }
  }

  async #refuseTargets(
    queries: Queries,
    coming: readonly EntryBatch[],
    { first, rests }: EntryBatch,
  ): Promise<void> {
    const { sessionId } = first;
    const session = await findSession(queries, sessionId);
    for (const rest of rests) {
      const targetId = targetOf({ ...first.entry, ...rest });
      if (targetId === null) continue;
      const isStored =
        session !== undefined && (await this.#entries.isVisible(queries, session.id, targetId));
      if (!isStored && !isShownSoon(coming, sessionId, targetId)) throw untargeted(sessionId, targetId);
    }
  }

  async apply(queries: Queries, changes: readonly BatchedChange[], source: ChangeSource): Promise<void> {
    let open: OpenSession[] = [];
    for (const change of changes) {
      const { sessionId } = isBatch(change) ? change.first : change;
      let session = open.find((each) => each.sessionId === sessionId);
      let isNew = false;
      if (session === undefined) {
        const row = await findSession(queries, sessionId);
        isNew = row === undefined;
        const opened = row ?? (await this.#create(queries, change, source));
        if (opened === undefined) continue;
        session = { ...opened, sessionId, tenantId: source.owner.tenantId, stored: opened };
        open.push(session);
      }
      if (isBatch(change)) {
        await this.#add(queries, session, change, isNew);
        continue;
      }
      const task = change.taskId === undefined ? null : ordinalOf(change.taskId);
      if (change.type === "reveal") await this.#reveal(queries, session, change.runId, task);
      else if ((await queries.run(removeEntries, session.id, change.runId, task)) > 0) {
        const left = await this.#afterRemoval(queries, session);
        if (left === undefined) open = open.filter((each) => each !== session);
      }
    }
    for (const session of open) await save(queries, session);
  }

  /** Removes the entries of a run that are not visible. */
  async removeHidden(queries: Queries, sessionId: SessionId, runId: RunId): Promise<void> {
    const row = await findSession(queries, sessionId);
    if (row === undefined || (await queries.run(removeUnseen, row.id, runId, null)) === 0) return;
    const session = await this.#afterRemoval(queries, { ...row, sessionId, tenantId: null, stored: row });
    if (session !== undefined) await save(queries, session);
  }

  /** Reads again what the row says about its entries. Deletes the row with its last entry and then returns `undefined`. */
  async #afterRemoval(queries: Queries, session: OpenSession): Promise<OpenSession | undefined> {
    const { id } = session;
    if ((await queries.get(hasEntries, id)) === undefined) {
      await deleteSession(queries, id);
      return undefined;
    }
    Object.assign(session, await this.#entries.leaves(queries, id));
    if (session.name !== null) session.name = await this.#entries.name(queries, id);
    if (session.title !== null) session.title = await this.#firstTitle(queries, id);
    return session;
  }

  async #firstTitle(queries: Queries, session: number): Promise<string | null> {
    for await (const entry of this.#entries.messages(queries, session)) {
      const title = titleOf(entry);
      if (title !== null) return title;
    }
    return null;
  }

  async #add(queries: Queries, session: OpenSession, change: EntryBatch, isNew: boolean): Promise<void> {
    const { say } = change;
    const batches = say === undefined ? [change] : await this.#placed(queries, session, change, say);
    for (const batch of batches)
      if (batch === change && isNew) await this.#insert(queries, session, batch);
      else await this.#append(queries, session, batch);
  }

  /** N3: returns the batches with which a visible batch continues from the current leaf. */
  async #placed(
    queries: Queries,
    session: OpenSession,
    batch: EntryBatch,
    say: Say,
  ): Promise<readonly EntryBatch[]> {
    const { sessionId, batch: said } = say;
    const leafId = ordinalOf(said.taskId) === 0 ? session.leafId : session.lastId;
    if (continuesFrom(said, leafId)) return [batch];
    const stored = await this.#entries.read(queries, session.id, sessionId, {});
    const entries = stored.map(({ entry }) => entry);
    return batchChanges(rebaseBatch(entries, leafId, say)).filter(isBatch);
  }

  async #reveal(queries: Queries, session: OpenSession, runId: RunId, task: number | null): Promise<void> {
    const { id } = session;
    const left = await queries.all<{ readonly place: number }>(leftEntries, id, runId, task);
    if ((await queries.run(revealEntries, id, runId, task)) === 0) return;
    Object.assign(session, await this.#entries.leaves(queries, id));
    // N3: entries that were pending move behind the leaf.
    for (const { place } of left) {
      const row = await queries.get<{ readonly body: string }>(readBody, id, place);
      if (row === undefined) continue;
      await queries.run(placeAgain, id, place, withParent(row.body, session.leafId));
      Object.assign(session, await this.#entries.leaves(queries, id));
    }
  }

  /** S2: adds the entries that are not stored yet. */
  async #append(queries: Queries, session: OpenSession, batch: EntryBatch): Promise<void> {
    const { length } = batch.rests;
    const before = await this.#entries.lastBefore(queries, session.id, batch, length);
    if (before === undefined || before.number + before.count <= batch.number) {
      await this.#insert(queries, session, batch);
      return;
    }
    // A stored entry implies that all entries before it in the batch are stored.
    for (let index = before.number + before.count - batch.number; index < length; index++)
      await this.#insert(queries, session, batchAt(batch, index));
  }

  async #insert(queries: Queries, session: OpenSession, batch: EntryBatch): Promise<void> {
    const { stem, number, first, rests } = batch;
    const { runId, taskId, type } = first.entry;
    const parentId = first.atLeaf === true ? session.leafId : first.entry.parentId;
    const split = this.#large.splitItems(rests.with(0, { parentId, ...rests[0] }));
    const row = await queries.get<{ readonly id: number }>(
      insertEntries,
      session.id,
      stem,
      number,
      rests.length,
      runId,
      taskId === null ? null : ordinalOf(taskId),
      visibilities.indexOf(first.visibility),
      type,
      split.text,
      split.refs,
    );
    if (split.values.length > 0)
      await keepValues(
        queries,
        tenantText(session.tenantId),
        { kind: OwnerKind.ENTRIES, id: row?.id ?? 0 },
        split.values,
      );
    noteBatch(session, batch);
  }

  /** Creates the session of its first entry. */
  async #create(
    queries: Queries,
    change: BatchedChange,
    { at = 0, owner }: ChangeSource,
  ): Promise<SessionRow | undefined> {
    if (!isBatch(change)) return undefined;
    const session = newSession(change, at, owner);
    return { ...session, id: await insertSession(queries, session) };
  }
}

async function save(queries: Queries, session: OpenSession): Promise<void> {
  const row = changedRow(session);
  if (row !== undefined) await updateSession(queries, row);
}

/** Returns the body of a row with another parent of its first entry. */
function withParent(body: string, parentId: string | null): string {
  const [first, ...others] = JSON.parse(body) as readonly object[];
  return JSON.stringify([{ ...first, parentId }, ...others]);
}
