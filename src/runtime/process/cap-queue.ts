import {
  capScopes,
  type CapName,
  type Clock,
  type ExhaustedCap,
  type RunRecord,
} from "../../kernel/index.ts";

/**
 * Milliseconds after which the first call of a queue asks the store again, because a run of another process may
 * have returned an amount.
 */
const askAgainMs = 1_000;

type Owner = Pick<RunRecord, "tenantId" | "userId"> & Pick<ExhaustedCap, "agent">;

/**
 * B7: the calls of this process that wait until other runs return amounts of a cap. There is one queue per cap, and
 * one per tenant, user or agent if the cap counts by them. Only the first call of a queue asks the store again, so
 * that a returned amount does not cause a draw for every waiting call.
 */
export class CapQueue {
  readonly #clock: Clock;
  readonly #queues = new Map<string, Set<CapPlace>>();
  /** The keys of the queues of caps by agent. */
  readonly #byAgent = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds a call to the queue of an exhausted cap. `until` is the time at which the call stops waiting. */
  join(cap: ExhaustedCap, until: number): CapPlace {
    const name = cap.name as CapName;
    const key = keyOf(name, cap);
    if (capScopes[name].of === "agent") this.#byAgent.add(key);
    const queue = this.#queueOf(key);
    const place = new CapPlace(this.#clock, queue, until);
    queue.add(place);
    return place;
  }

  /** Wakes the queues after a run of this owner has returned a part of the cap shares of its agents. */
  returned(owner: Owner): void {
    if (this.#queues.size === 0) return;
    for (const name of Object.keys(capScopes) as CapName[])
      if (capScopes[name].of !== "agent") this.#wakeFirst(keyOf(name, owner));
    for (const key of this.#byAgent) this.#wakeFirst(key);
  }

  #wakeFirst(key: string): void {
    const queue = this.#queues.get(key);
    if (queue?.size === 0) {
      this.#queues.delete(key);
      this.#byAgent.delete(key);
    }
    first(queue)?.wake();
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

  /** Whether the time in which the call may wait is over. */
  get isOver(): boolean {
    return this.#clock.now() >= this.#until;
  }

  /**
   * Makes amounts that are returned from here on end the next wait. Call it before the draw whose answer decides
   * about the wait.
   */
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

  /** Ends a wait, and lets the next call of the queue draw, because it may need less. */
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

function keyOf(name: CapName, { tenantId, userId, agent }: Owner): string {
  switch (capScopes[name].of) {
    case "store":
      return name;
    case "agent":
      return JSON.stringify([name, agent]);
    case "tenant":
      return JSON.stringify([name, tenantId]);
    case "user":
      return JSON.stringify([name, tenantId, userId]);
  }
}
