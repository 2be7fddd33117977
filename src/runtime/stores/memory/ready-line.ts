import type { Priority } from "../../../kernel/index.ts";
import { ReadyQueue } from "./ready-queue.ts";
import type { RunRow } from "./run-row.ts";

/** Number of queues that a line keeps although they are empty. Creating a queue for each run would cost more than claiming the run. */
const mostIdle = 64;

/** L5: the ready runs of one tenant and priority. Pairs of user and agent take turns. */
export class ReadyLine {
  readonly priority: Priority;
  /** By `turnKey`. The queue that was served longest ago comes first. */
  readonly #queues = new Map<string, ReadyQueue<RunRow>>();
  #size = 0;

  constructor(priority: Priority) {
    this.priority = priority;
  }

  get size(): number {
    return this.#size;
  }

  add(row: RunRow): void {
    let queue = this.#queues.get(row.turn);
    if (queue === undefined) this.#queues.set(row.turn, (queue = new ReadyQueue()));
    queue.add(row);
    this.#size++;
  }

  remove(row: RunRow): void {
    const queue = this.#queues.get(row.turn);
    queue?.remove(row);
    this.#size--;
    if (queue?.size === 0 && this.#queues.size > mostIdle) this.#queues.delete(row.turn);
  }

  /** Notes that a run of this pair was claimed: its next run comes after one run of each other pair. */
  served({ turn }: RunRow): void {
    const queue = this.#queues.get(turn);
    if (queue === undefined || this.#queues.size === 1) return;
    this.#queues.delete(turn);
    this.#queues.set(turn, queue);
  }

  /** Iterates over the runs in the order in which they are claimed. */
  inOrder(): Iterator<RunRow, undefined> {
    const [only] = this.#queues.values();
    return only !== undefined && this.#queues.size === 1 ? only.inOrder() : inTurn(this.#queues.values());
  }
}

/** Yields one run of each queue in turn. Lazy: a claim reads as many queues as it takes runs. */
function* inTurn(queues: Iterable<ReadyQueue<RunRow>>): Generator<RunRow, undefined> {
  let round: Iterator<RunRow, undefined>[] = [];
  for (const queue of queues) {
    const rows = queue.inOrder();
    const row = rows.next().value;
    if (row === undefined) continue;
    yield row;
    round.push(rows);
  }
  while (round.length > 0) {
    const next: typeof round = [];
    for (const rows of round) {
      const row = rows.next().value;
      if (row === undefined) continue;
      yield row;
      next.push(rows);
    }
    round = next;
  }
  return undefined;
}
