import type { Delta, Event, Lease, RunId } from "../../../../kernel/index.ts";
import { keyOfDelta, keyOfEvent } from "../../delta-key.ts";
import { JoinedDelta } from "../../joined-delta.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import type { OwnedRun, Tables } from "../db/tables.ts";

export interface ShownDelta {
  /** Counter over all runs of this process. */
  readonly id: number;
  readonly about: string;
  readonly delta: Delta;
}

interface RunDeltas {
  shown: ShownDelta[];
  /** Highest id that is stored in the table or was read from it. */
  writtenThrough: number;
  /** Last row of the table that was read. */
  lastRow: number;
  /** Whether the table may hold deltas of this run. */
  isWritten: boolean;
  owner?: OwnedRun;
}

/** Interval of writes to the table: the maximum delay for readers in other processes. */
const writeEveryMs = 30;

/**
 * E2: the deltas of messages and tool calls that are not recorded yet. Readers in this process get them from memory.
 * For other processes they are written to a side table in batches; the commit that records the message removes them.
 */
export class DeltaBoard {
  readonly #tables: Tables;
  readonly #runs = new Map<RunId, RunDeltas>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Returns `false` if this process knows that the lease is lost. */
  put(lease: Lease, delta: Delta): boolean {
    const owner = this.#tables.owned.get(lease.runId);
    if (owner?.epoch !== lease.epoch || owner.workerId !== lease.workerId) return false;
    const deltas = this.#of(lease.runId);
    deltas.owner = owner;
    deltas.shown.push({ id: ++this.#count, about: keyOfDelta(delta), delta });
    this.#timer ??= setTimeout(this.#write, writeEveryMs).unref();
    return true;
  }

  after(runId: RunId, id: number): readonly ShownDelta[] {
    const shown = this.#runs.get(runId)?.shown ?? [];
    // Readers are usually near the end.
    let first = shown.length;
    while (first > 0 && (shown[first - 1]?.id ?? 0) > id) first--;
    return shown.slice(first);
  }

  /** Whether deltas of the run are in the table `deltas`, so that a commit with these events has to delete them. */
  isWritten(runId: RunId, events: readonly Event[]): boolean {
    return (
      this.#runs.get(runId)?.isWritten === true && events.some((event) => keyOfEvent(event) !== undefined)
    );
  }

  /**
   * Removes the deltas of recorded messages, inside the transaction of the commit. Memory is cleared first: a batch
   * that is written later must not contain them.
   */
  removeNow({ id, runId }: RunKey, events: readonly Event[]): void {
    const isWritten = this.#runs.get(runId)?.isWritten === true;
    this.recorded(runId, events);
    if (!isWritten) return;
    for (const event of events) {
      const about = keyOfEvent(event);
      if (about === undefined) continue;
      this.#tables.database.run("DELETE FROM deltas WHERE run = ? AND about = ?", id, about);
    }
  }

  /** Removes all deltas of a run that this process owns. Call inside a transaction. */
  clearNow({ id, runId }: RunKey): void {
    if (this.#runs.get(runId)?.isWritten === true)
      this.#tables.database.run("DELETE FROM deltas WHERE run = ?", id);
  }

  /** Drops the deltas of messages and tool calls that these events record. */
  recorded(runId: RunId, events: readonly Event[]): void {
    const deltas = this.#runs.get(runId);
    if (deltas === undefined) return;
    for (const event of events) {
      const about = keyOfEvent(event);
      if (about !== undefined) deltas.shown = deltas.shown.filter((each) => each.about !== about);
    }
  }

  /** Reads the deltas that other processes wrote. Returns whether there were any. */
  readNow({ id, runId }: RunKey): boolean {
    const known = this.#runs.get(runId);
    const rows = this.#tables.database.all<{
      readonly id: number;
      readonly about: string;
      readonly body: string;
    }>("SELECT id, about, body FROM deltas WHERE run = ? AND id > ? ORDER BY id", id, known?.lastRow ?? 0);
    const last = rows.at(-1);
    if (last === undefined) return false;
    const deltas = this.#of(runId);
    deltas.lastRow = last.id;
    for (const { about, body } of rows) {
      for (const delta of JSON.parse(body) as Delta[]) deltas.shown.push({ id: ++this.#count, about, delta });
    }
    deltas.writtenThrough = this.#count;
    return true;
  }

  forget(runId: RunId): void {
    this.#runs.delete(runId);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#runs.clear();
  }

  #of(runId: RunId): RunDeltas {
    const known = this.#runs.get(runId);
    if (known !== undefined) return known;
    const deltas: RunDeltas = { shown: [], writtenThrough: 0, lastRow: 0, isWritten: false };
    this.#runs.set(runId, deltas);
    return deltas;
  }

  readonly #write = (): void => {
    this.#timer = undefined;
    if (this.#isClosed) return;
    // If the write fails, readers in this process still get the deltas, and all readers get the recorded message.
    this.#tables.write({ apply: () => this.#writeNow() }).catch(() => undefined);
  };

  #writeNow(): void {
    for (const deltas of this.#runs.values()) {
      const batch = deltas.shown.filter(({ id }) => id > deltas.writtenThrough);
      if (batch.length === 0) continue;
      for (const [about, shown] of Map.groupBy(batch, (each) => each.about)) {
        this.#writeBatch(deltas, about, JSON.stringify(joined(shown)));
      }
      deltas.writtenThrough = batch.at(-1)?.id ?? deltas.writtenThrough;
    }
  }

  /** Writes only if this store still owns the run. */
  #writeBatch(deltas: RunDeltas, about: string, body: string): void {
    if (deltas.owner === undefined) return;
    const { id, epoch, workerId } = deltas.owner;
    const { changes, lastInsertRowid } = this.#tables.database
      .statement(
        `INSERT INTO deltas (run, about, body)
         SELECT ?1, ?2, ?3 FROM runs WHERE id = ?1 AND epoch = ?4 AND owner = ?5`,
      )
      .run(id, about, body, epoch, workerId);
    if (changes === 0) return;
    deltas.isWritten = true;
    deltas.lastRow = Number(lastInsertRowid);
  }
}

function joined(shown: readonly ShownDelta[]): Delta[] {
  const list: JoinedDelta[] = [];
  for (const { delta } of shown) if (list.at(-1)?.join(delta) !== true) list.push(new JoinedDelta(delta));
  return list.map(({ whole }) => whole);
}
