import type { Delta, Event, Lease, RunId } from "../../../../kernel/index.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import { keyOfDelta, keyOfEvent } from "../../delta-key.ts";
import { JoinedDelta } from "../../joined-delta.ts";
import type { Queries } from "../db/queries.ts";
import type { OwnedRun, Tables } from "../db/tables.ts";

export interface ShownDelta {
  /** Counter over all runs of this process. */
  readonly id: number;
  readonly about: string;
  readonly delta: Delta;
}

/** A row of the table that another process wrote. */
export interface DeltaRow {
  readonly id: number;
  readonly about: string;
  readonly body: string;
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

/** A part of the deltas of a run that one row stores. */
interface Batch {
  readonly deltas: RunDeltas;
  readonly owner: OwnedRun;
  readonly about: string;
  readonly body: string;
}

/** Interval of writes to the table: the maximum delay for readers in other processes, apart from their polling. */
const writeEveryMs = 30;

/** Writes only if this store still owns the run. */
const insertDeltas = `INSERT INTO {deltas} (run, about, body)
  SELECT id, $4, $5 FROM {runs} WHERE id = $1 AND epoch = $2 AND owner = $3`;
const readDeltas = "SELECT id, about, body FROM {deltas} WHERE run = $1 AND id > $2 ORDER BY id";

/**
 * E2: the deltas of messages and tool calls that are not recorded yet. Readers in this process get them from memory.
 * For other processes they are written to an unlogged table in batches; the commit that records the message removes them.
 */
export class DeltaBoard {
  readonly #tables: Tables;
  readonly #runs = new Map<RunId, RunDeltas>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Returns `false` if this process knows that the lease is lost. */
  put(lease: Lease, delta: Delta): boolean {
    const owner = this.#tables.known(lease);
    if (owner === undefined) return false;
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

  /** Returns the keys of the stored deltas that a commit with these events has to delete. */
  storedKeys(runId: RunId, events: readonly Event[] | undefined): readonly string[] {
    if (events === undefined || this.#runs.get(runId)?.isWritten !== true) return [];
    return events.flatMap((event) => keyOfEvent(event) ?? []);
  }

  /**
   * Drops the deltas of messages and tool calls that these events record. Call it before their commit is written: a batch that
   * is written later must not contain them.
   */
  recorded(runId: RunId, events: readonly Event[] | undefined): void {
    const deltas = this.#runs.get(runId);
    if (deltas === undefined || events === undefined) return;
    for (const event of events) {
      const about = keyOfEvent(event);
      if (about !== undefined) deltas.shown = deltas.shown.filter((each) => each.about !== about);
    }
  }

  /** Waits for a batch that is being written, so that a commit deletes it. Returns `undefined` if there is none. */
  settled(): Promise<void> | undefined {
    return this.#writing;
  }

  /** Removes all deltas of a run that this process owns. Call inside a transaction. */
  async clear(queries: Queries, { id, runId }: RunKey): Promise<void> {
    if (this.#runs.get(runId)?.isWritten === true)
      await queries.run("DELETE FROM {deltas} WHERE run = $1", id);
  }

  /** Returns the last row that was read or written. */
  lastRowOf(runId: RunId): number {
    return this.#runs.get(runId)?.lastRow ?? 0;
  }

  /** Reads the deltas that other processes wrote since the last call. `add` shows them. */
  rowsOf(queries: Queries, { id, runId }: RunKey): Promise<readonly DeltaRow[]> {
    return queries.all<DeltaRow>(readDeltas, id, this.lastRowOf(runId));
  }

  /** Shows deltas that other processes wrote. Returns whether there were any. */
  add({ runId }: RunKey, rows: readonly DeltaRow[]): boolean {
    const last = rows.at(-1);
    if (last === undefined) return false;
    const deltas = this.#of(runId);
    const news = rows.filter(({ id }) => id > deltas.lastRow);
    deltas.lastRow = last.id;
    for (const { about, body } of news)
      for (const delta of JSON.parse(body) as Delta[]) deltas.shown.push({ id: ++this.#count, about, delta });
    deltas.writtenThrough = this.#count;
    return news.length > 0;
  }

  forget(runId: RunId): void {
    this.#runs.delete(runId);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#runs.clear();
    await this.#writing;
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
    if (this.#writing !== undefined) {
      this.#timer = setTimeout(this.#write, writeEveryMs).unref();
      return;
    }
    this.#writing = this.#writeBatches(this.#takeBatches()).finally(() => {
      this.#writing = undefined;
    });
  };

  #takeBatches(): readonly Batch[] {
    const batches: Batch[] = [];
    for (const deltas of this.#runs.values()) {
      const { owner } = deltas;
      const news = deltas.shown.filter(({ id }) => id > deltas.writtenThrough);
      if (owner === undefined || news.length === 0) continue;
      deltas.writtenThrough = news.at(-1)?.id ?? deltas.writtenThrough;
      deltas.isWritten = true;
      for (const [about, shown] of Map.groupBy(news, (each) => each.about))
        batches.push({ deltas, owner, about, body: JSON.stringify(joined(shown)) });
    }
    return batches;
  }

  /** If the write fails, readers in this process still get the deltas, and all readers get the recorded message. */
  async #writeBatches(batches: readonly Batch[]): Promise<void> {
    for (const { owner, about, body } of batches)
      try {
        const { id, epoch, workerId } = owner;
        await this.#tables.database.once(insertDeltas, id, epoch, workerId, about, body);
      } catch {
        return;
      }
  }
}

function joined(shown: readonly ShownDelta[]): Delta[] {
  const list: JoinedDelta[] = [];
  for (const { delta } of shown) if (list.at(-1)?.join(delta) !== true) list.push(new JoinedDelta(delta));
  return list.map(({ whole }) => whole);
}
