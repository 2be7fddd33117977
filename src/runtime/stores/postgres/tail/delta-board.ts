import type { Delta, Event, Lease, RunId } from "../../../../kernel/index.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import {
  DeltaMemory,
  writeEveryMs,
  type DeltaBatch,
  type DeltaRow,
  type ShownDelta,
} from "../../sql/delta-memory.ts";
import type { Queries } from "../db/queries.ts";
import type { OwnedRun, Tables } from "../db/tables.ts";

/** SQL that writes deltas, but only if this store still owns the run. */
const insertDeltas = `INSERT INTO {deltas} (run, about, body)
  SELECT id, $4, $5 FROM {runs} WHERE id = $1 AND epoch = $2 AND owner = $3`;
const readDeltas = "SELECT id, about, body FROM {deltas} WHERE run = $1 AND id > $2 ORDER BY id";

/**
 * E2: the deltas of messages and tool calls that are not recorded yet. Readers in this process get them from memory.
 * For other processes they are written to an unlogged table in batches; the commit that records the message removes them.
 */
export class DeltaBoard {
  readonly #tables: Tables;
  readonly #memory = new DeltaMemory<OwnedRun>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Shows a delta to readers. Returns `false` if this process knows that the lease is lost. */
  put(lease: Lease, delta: Delta): boolean {
    const owner = this.#tables.known(lease);
    if (owner === undefined) return false;
    this.#memory.put(lease.runId, owner, delta);
    this.#timer ??= setTimeout(this.#write, writeEveryMs).unref();
    return true;
  }

  after(runId: RunId, id: number): readonly ShownDelta[] {
    return this.#memory.after(runId, id);
  }

  /** Returns the keys of the stored deltas that a commit with these events must delete. */
  storedKeys(runId: RunId, events: readonly Event[] | undefined): readonly string[] {
    return this.#memory.storedKeys(runId, events);
  }

  /**
   * Drops the deltas of messages and tool calls that these events record. Call it before their commit is written,
   * because a batch that is written later must not contain them.
   */
  recorded(runId: RunId, events: readonly Event[] | undefined): void {
    this.#memory.recorded(runId, events);
  }

  /**
   * Waits for a batch that is being written, so that a commit deletes it. Returns `undefined` if no batch is being
   * written.
   */
  settled(): Promise<void> | undefined {
    return this.#writing;
  }

  /** Removes all deltas of a run that this process owns. Call inside a transaction. */
  async clear(queries: Queries, { id, runId }: RunKey): Promise<void> {
    if (this.#memory.isWritten(runId)) await queries.run("DELETE FROM {deltas} WHERE run = $1", id);
  }

  /** Returns the last row that was read. */
  lastRowOf(runId: RunId): number {
    return this.#memory.lastRowOf(runId);
  }

  /** Reads the deltas that other processes wrote since the last call. Pass the result to `add`. */
  rowsOf(queries: Queries, { id, runId }: RunKey): Promise<readonly DeltaRow[]> {
    return queries.all<DeltaRow>(readDeltas, id, this.lastRowOf(runId));
  }

  /**
   * Shows deltas that other processes wrote. Returns whether any of them is new. Deltas of runs of this process are
   * in memory and ignored.
   */
  add({ runId }: RunKey, rows: readonly DeltaRow[]): boolean {
    return !this.#tables.owned.has(runId) && this.#memory.add(runId, rows);
  }

  forget(runId: RunId): void {
    this.#memory.forget(runId);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#memory.clear();
    await this.#writing;
  }

  readonly #write = (): void => {
    this.#timer = undefined;
    if (this.#isClosed) return;
    if (this.#writing !== undefined) {
      this.#timer = setTimeout(this.#write, writeEveryMs).unref();
      return;
    }
    this.#writing = this.#writeBatches(this.#memory.takeBatches()).finally(() => {
      this.#writing = undefined;
    });
  };

  /**
   * Writes batches of deltas. If the write fails, readers in this process still get the deltas, and all readers get
   * the recorded message.
   */
  async #writeBatches(batches: readonly DeltaBatch<OwnedRun>[]): Promise<void> {
    for (const { owner, about, body } of batches)
      try {
        const { id, epoch, workerId } = owner;
        await this.#tables.database.once(insertDeltas, id, epoch, workerId, about, body);
      } catch {
        return;
      }
  }
}
