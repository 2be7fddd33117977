import type { Priority } from "../../../kernel/index.ts";
import { ReadyQueue, type Ready } from "./ready-queue.ts";

/** A ready run with its `turnKey`. */
interface Waiting extends Ready {
  readonly turn: string;
}

/**
 * Number of empty queues that a line keeps. Creating a queue again for each run would cost more than claiming the
 * run.
 */
const mostIdle = 64;

/** L5: the ready runs of one tenant and priority. Pairs of user and agent take turns. */
export class ReadyLine<Row extends Waiting> {
  readonly priority: Priority;
  /** Queues by `turnKey`. The queue that was served longest ago comes first. */
  readonly #queues = new Map<string, ReadyQueue<Row>>();
  #size = 0;

  constructor(priority: Priority) {
    this.priority = priority;
  }

  get size(): number {
    return this.#size;
  }

  add(row: Row): void {
    let queue = this.#queues.get(row.turn);
    if (queue === undefined) this.#queues.set(row.turn, (queue = new ReadyQueue()));
    queue.add(row);
    this.#size++;
  }

  remove(row: Row): void {
    const queue = this.#queues.get(row.turn);
    queue?.remove(row);
    this.#size--;
    if (queue?.size === 0 && this.#queues.size > mostIdle) this.#queues.delete(row.turn);
  }

  /** Records that a run of this pair was claimed. The pair's next run comes after one run of each other pair. */
  served({ turn }: Row): void {
    const queue = this.#queues.get(turn);
    if (queue === undefined || this.#queues.size === 1) return;
    this.#queues.delete(turn);
    this.#queues.set(turn, queue);
  }

  /** Iterates over the runs in the order in which they are claimed. */
  inOrder(): Iterator<Row, undefined> {
    const [only] = this.#queues.values();
    return only !== undefined && this.#queues.size === 1 ? only.inOrder() : inTurn(this.#queues.values());
  }
}

/** Yields one run of each queue in turn. It is lazy, so that a claim reads only as many queues as it takes runs. */
function* inTurn<Row extends Waiting>(queues: Iterable<ReadyQueue<Row>>): Generator<Row, undefined> {
  let round: Iterator<Row, undefined>[] = [];
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
