import {
  capScopes,
  type CapName,
  type Clock,
  type ExhaustedCap,
  type RunRecord,
} from "../../kernel/index.ts";

/** Milliseconds after which the first call of a queue asks again: a run of another process may have returned something. */
const askAgainMs = 1_000;

type Owner = Pick<RunRecord, "tenantId" | "userId">;

/**
 * B7: the calls of this process that wait until other runs return what they hold of a cap, one queue per cap. Only the
 * first call of a queue asks the store again, so that a returned amount costs as many draws as it serves, and one.
 */
export class CapQueue {
  readonly #clock: Clock;
  readonly #queues = new Map<string, Set<CapPlace>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Joins the queue of an exhausted cap. `until` is the time at which the call stops waiting. */
  join(cap: ExhaustedCap, until: number): CapPlace {
    const queue = this.#queueOf(keyOf(cap.name as CapName, cap));
    const place = new CapPlace(this.#clock, queue, until);
    queue.add(place);
    return place;
  }

  /** A run of this owner has returned a part of its allotment. */
  returned(owner: Owner): void {
    if (this.#queues.size === 0) return;
    for (const name of Object.keys(capScopes) as CapName[]) {
      const key = keyOf(name, owner);
      const queue = this.#queues.get(key);
      if (queue?.size === 0) this.#queues.delete(key);
      first(queue)?.wake();
    }
  }

  #queueOf(key: string): Set<CapPlace> {
    const queue = this.#queues.get(key) ?? new Set();
    this.#queues.set(key, queue);
    return queue;
  }
}

/** The place of a call in the queue of a cap. */
export class CapPlace {
  readonly #clock: Clock;
  readonly #queue: Set<CapPlace>;
  readonly #until: number;
  #woken = Promise.withResolvers<void>();

  constructor(clock: Clock, queue: Set<CapPlace>, until: number) {
    this.#clock = clock;
    this.#queue = queue;
    this.#until = until;
  }

  /** Whether the call was abandoned. */
  get hasLeft(): boolean {
    return !this.#queue.has(this);
  }

  /** Whether the call must not wait any longer. */
  get isOver(): boolean {
    return this.#clock.now() >= this.#until;
  }

  /** From here on, a returned amount ends the next wait. Call it before the draw whose answer decides about the wait. */
  reset(): void {
    this.#woken = Promise.withResolvers();
  }

  /** Resolves when it is worth to draw again. */
  async wait(): Promise<void> {
    const isFirst = first(this.#queue) === this;
    const at = isFirst ? Math.min(this.#until, this.#clock.now() + askAgainMs) : this.#until;
    const cancel = this.#clock.schedule(at, this.#woken.resolve);
    await this.#woken.promise;
    cancel();
  }

  wake(): void {
    this.#woken.resolve();
  }

  /** Ends a wait, and lets the next call of the queue draw: it may need less. */
  leave(): void {
    const wasFirst = first(this.#queue) === this;
    this.#queue.delete(this);
    this.#woken.resolve();
    if (wasFirst) first(this.#queue)?.wake();
  }
}

function first(queue: Set<CapPlace> | undefined): CapPlace | undefined {
  return queue?.values().next().value;
}

/** The queue of a cap. Calls of all agents share that of a cap by agent: the first of them asks the store. */
function keyOf(name: CapName, { tenantId, userId }: Owner): string {
  const { of } = capScopes[name];
  if (of === "store" || of === "agent") return name;
  return JSON.stringify(of === "tenant" ? [name, tenantId] : [name, tenantId, userId]);
}
