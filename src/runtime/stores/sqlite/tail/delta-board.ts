import type { Delta, Event, Lease, RunId } from "../../../../kernel/index.ts";
import { aboutDelta, aboutEvent } from "../../delta-about.ts";
import { JoinedDelta } from "../../joined-delta.ts";
import type { RunKey } from "../db/run-row.ts";
import type { OwnedRun, Tables } from "../db/tables.ts";

export interface ShownDelta {
  /** Counts over all runs of this process. */
  readonly id: number;
  readonly about: string;
  readonly delta: Delta;
}

interface RunDeltas {
  shown: ShownDelta[];
  /** Up to this id they are in the table, or came from it. */
  writtenThrough: number;
  /** Up to this row the table has been read. */
  lastRow: number;
  /** The table may hold some of them. */
  isWritten: boolean;
  owner?: OwnedRun;
}

/** So long, at most, watchers in other processes wait for what those in this one see at once. */
const writeEveryMs = 30;

/**
 * E2: what is shown of messages and tools until they are recorded. Watchers in this process read it from memory; for those in others it
 * goes into a side table, a batch at a time, from which the commit that records the whole removes it.
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

  /** False: the lease is lost, as far as this process knows. */
  put(lease: Lease, delta: Delta): boolean {
    const owner = this.#tables.owned.get(lease.runId);
    if (owner?.epoch !== lease.epoch || owner.workerId !== lease.workerId) return false;
    const deltas = this.#of(lease.runId);
    deltas.owner = owner;
    deltas.shown.push({ id: ++this.#count, about: aboutDelta(delta), delta });
    this.#timer ??= setTimeout(this.#write, writeEveryMs).unref();
    return true;
  }

  after(runId: RunId, id: number): readonly ShownDelta[] {
    const shown = this.#runs.get(runId)?.shown ?? [];
    // From the end, where those who watch are.
    let first = shown.length;
    while (first > 0 && (shown[first - 1]?.id ?? 0) > id) first--;
    return shown.slice(first);
  }

  /** Whether a commit with these events has something to remove from the table. */
  isWritten(runId: RunId, events: readonly Event[]): boolean {
    return (
      this.#runs.get(runId)?.isWritten === true && events.some((event) => aboutEvent(event) !== undefined)
    );
  }

  /** For the journal, inside its transaction. Forgotten at once: a batch that is written after it must not hold them. */
  removeNow({ id, runId }: RunKey, events: readonly Event[]): void {
    const isWritten = this.#runs.get(runId)?.isWritten === true;
    this.recorded(runId, events);
    if (!isWritten) return;
    for (const event of events) {
      const about = aboutEvent(event);
      if (about === undefined) continue;
      this.#tables.database.run("DELETE FROM deltas WHERE run = ? AND about = ?", id, about);
    }
  }

  /** All of a run that this process owns, inside a transaction. */
  clearNow({ id, runId }: RunKey): void {
    if (this.#runs.get(runId)?.isWritten === true)
      this.#tables.database.run("DELETE FROM deltas WHERE run = ?", id);
  }

  /** These events are in the log: what was shown of them is no longer needed. */
  recorded(runId: RunId, events: readonly Event[]): void {
    const deltas = this.#runs.get(runId);
    if (deltas === undefined) return;
    for (const event of events) {
      const about = aboutEvent(event);
      if (about !== undefined) deltas.shown = deltas.shown.filter((each) => each.about !== about);
    }
  }

  /** What other processes have written since; whether there was anything. */
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
    // What cannot be written is seen in this process all the same, and by all once it is recorded.
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

  /** Fenced like a commit. */
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
