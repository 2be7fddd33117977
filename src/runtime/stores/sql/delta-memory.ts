import { JoinedDelta, type Delta, type Event, type RunId } from "../../../kernel/index.ts";
import { keyOfDelta, keyOfEvent } from "../delta-key.ts";

export interface ShownDelta {
  /** Counter over all runs of this process. */
  readonly id: number;
  readonly about: string;
  readonly delta: Delta;
}

/** A row of the table `deltas`. */
export interface DeltaRow {
  readonly id: number;
  readonly about: string;
  readonly body: string;
}

/** The deltas of a run that one row stores. */
export interface DeltaBatch<Owner> {
  readonly runId: RunId;
  readonly owner: Owner;
  readonly about: string;
  readonly body: string;
}

interface RunDeltas<Owner> {
  shown: ShownDelta[];
  /** Highest id of a delta that is stored in the table or was read from it. */
  writtenThrough: number;
  /** Last row of the table that was read or written. */
  lastRow: number;
  /** Whether the table may contain deltas of this run. */
  isWritten: boolean;
  owner?: Owner;
}

/** Interval of writes to the table, in milliseconds. It is the maximum delay for readers in other processes. */
export const writeEveryMs = 30;

/** E2: the deltas of messages and tool calls that are not recorded yet and that this process knows. */
export class DeltaMemory<Owner> {
  readonly #runs = new Map<RunId, RunDeltas<Owner>>();
  #count = 0;

  /** Adds a delta of a run that this store owns. */
  put(runId: RunId, owner: Owner, delta: Delta): void {
    const deltas = this.#of(runId);
    deltas.owner = owner;
    deltas.shown.push({ id: ++this.#count, about: keyOfDelta(delta), delta });
  }

  after(runId: RunId, id: number): readonly ShownDelta[] {
    const shown = this.#runs.get(runId)?.shown ?? [];
    // Readers are usually near the end.
    let first = shown.length;
    while (first > 0 && (shown[first - 1]?.id ?? 0) > id) first--;
    return shown.slice(first);
  }

  /** Whether the table may contain deltas of the run. */
  isWritten(runId: RunId): boolean {
    return this.#runs.get(runId)?.isWritten === true;
  }

  /** Returns the keys of the stored deltas that a commit with these events must delete. */
  storedKeys(runId: RunId, events: readonly Event[] | undefined): readonly string[] {
    if (events === undefined || !this.isWritten(runId)) return [];
    return events.flatMap((event) => keyOfEvent(event) ?? []);
  }

  /** Drops the deltas of messages and tool calls that these events record. */
  recorded(runId: RunId, events: readonly Event[] | undefined): void {
    const deltas = this.#runs.get(runId);
    if (deltas === undefined || events === undefined) return;
    for (const event of events) {
      const about = keyOfEvent(event);
      if (about !== undefined) deltas.shown = deltas.shown.filter((each) => each.about !== about);
    }
  }

  /** Returns the last row of the run that was read or written. */
  lastRowOf(runId: RunId): number {
    return this.#runs.get(runId)?.lastRow ?? 0;
  }

  /** Records the last row that this process wrote, so that it is not read again. */
  wrote(runId: RunId, row: number): void {
    this.#of(runId).lastRow = row;
  }

  /** Shows deltas that other processes wrote. Returns whether any of them is new. */
  add(runId: RunId, rows: readonly DeltaRow[]): boolean {
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

  /** Returns the deltas that no batch has contained yet. */
  takeBatches(): readonly DeltaBatch<Owner>[] {
    const batches: DeltaBatch<Owner>[] = [];
    for (const [runId, deltas] of this.#runs) {
      const { owner } = deltas;
      const news = deltas.shown.filter(({ id }) => id > deltas.writtenThrough);
      if (owner === undefined || news.length === 0) continue;
      deltas.writtenThrough = news.at(-1)?.id ?? deltas.writtenThrough;
      deltas.isWritten = true;
      for (const [about, shown] of Map.groupBy(news, (each) => each.about))
        batches.push({ runId, owner, about, body: JSON.stringify(joined(shown)) });
    }
    return batches;
  }

  forget(runId: RunId): void {
    this.#runs.delete(runId);
  }

  clear(): void {
    this.#runs.clear();
  }

  #of(runId: RunId): RunDeltas<Owner> {
    const known = this.#runs.get(runId);
    if (known !== undefined) return known;
    const deltas: RunDeltas<Owner> = { shown: [], writtenThrough: 0, lastRow: 0, isWritten: false };
    this.#runs.set(runId, deltas);
    return deltas;
  }
}

function joined(shown: readonly ShownDelta[]): Delta[] {
  const list: JoinedDelta[] = [];
  for (const { delta } of shown) if (list.at(-1)?.join(delta) !== true) list.push(new JoinedDelta(delta));
  return list.map(({ whole }) => whole);
}
