import type { Delta, Event, Lease, RunId } from "../../../../kernel/index.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import {
  DeltaMemory,
  writeEveryMs,
  type DeltaBatch,
  type DeltaRow,
  type ShownDelta,
} from "../../sql/delta-memory.ts";
import type { OwnedRun, Tables } from "../db/tables.ts";

/** SQL that writes deltas, but only if this store still owns the run. */
const insertDeltas = `INSERT INTO deltas (run, about, body)
  SELECT ?1, ?2, ?3 FROM runs WHERE id = ?1 AND epoch = ?4 AND owner = ?5`;
const readDeltas = "SELECT id, about, body FROM deltas WHERE run = ? AND id > ? ORDER BY id";

/**
 * E2: the deltas of messages and tool calls that are not recorded yet. Readers in this process get them from memory.
 * For other processes they are written to a side table in batches; the commit that records the message removes them.
 */
export class DeltaBoard {
  readonly #tables: Tables;
  readonly #memory = new DeltaMemory<OwnedRun>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Shows a delta to readers. Returns `false` if this process knows that the lease is lost. */
  put({ runId, epoch, workerId }: Lease, delta: Delta): boolean {
    const owner = this.#tables.owned.get(runId);
    if (owner?.epoch !== epoch || owner.workerId !== workerId) return false;
    this.#memory.put(runId, owner, delta);
    this.#timer ??= setTimeout(this.#write, writeEveryMs).unref();
    return true;
  }

  after(runId: RunId, id: number): readonly ShownDelta[] {
    return this.#memory.after(runId, id);
  }

  /** Whether deltas of the run are in the table `deltas`, so that a commit with these events must delete them. */
  isWritten(runId: RunId, events: readonly Event[]): boolean {
    return this.#memory.storedKeys(runId, events).length > 0;
  }

  /**
   * Removes the deltas of recorded messages, inside the transaction of the commit. The deltas in memory are removed
   * first, because a batch that is written later must not contain them.
   */
  removeNow({ id, runId }: RunKey, events: readonly Event[]): void {
    this.recorded(runId, events);
    for (const about of this.#memory.storedKeys(runId, events))
      this.#tables.database.run("DELETE FROM deltas WHERE run = ? AND about = ?", id, about);
  }

  /** Removes all deltas of a run that this process owns. Call inside a transaction. */
  clearNow({ id, runId }: RunKey): void {
    if (this.#memory.isWritten(runId)) this.#tables.database.run("DELETE FROM deltas WHERE run = ?", id);
  }

  /** Drops the deltas of messages and tool calls that these events record. */
  recorded(runId: RunId, events: readonly Event[]): void {
    this.#memory.recorded(runId, events);
  }

  /** Reads the deltas that other processes wrote. Returns whether there were any. */
  readNow({ id, runId }: RunKey): boolean {
    const { database } = this.#tables;
    return this.#memory.add(runId, database.all<DeltaRow>(readDeltas, id, this.#memory.lastRowOf(runId)));
  }

  forget(runId: RunId): void {
    this.#memory.forget(runId);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#memory.clear();
  }

  readonly #write = (): void => {
    this.#timer = undefined;
    if (this.#isClosed) return;
    const apply = (): void => this.#memory.takeBatches().forEach((batch) => this.#writeNow(batch));
    // If the write fails, readers in this process still get the deltas, and all readers get the recorded message.
    this.#tables.write({ apply }).catch(() => undefined);
  };

  #writeNow({ runId, owner, about, body }: DeltaBatch<OwnedRun>): void {
    const { id, epoch, workerId } = owner;
    const statement = this.#tables.database.statement(insertDeltas);
    const { changes, lastInsertRowid } = statement.run(id, about, body, epoch, workerId);
    if (changes > 0) this.#memory.wrote(runId, Number(lastInsertRowid));
  }
}
