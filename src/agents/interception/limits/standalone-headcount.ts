import {
  BudgetExhaustedError,
  CancellationError,
  Fault,
  seatHeadcount,
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  type JsonValue,
  type Priority,
  type TaskId,
} from "../../../kernel/index.ts";

/** A headcount outside any run, with the callers that wait for a seat. */
export class StandaloneHeadcount {
  readonly #headcount: Headcount;
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();

  constructor(headcount: Headcount) {
    this.#headcount = headcount;
  }

  get headcount(): Headcount {
    return this.#headcount;
  }

  acquire(id: string, parent: string, priority: Priority): Promise<void> {
    const command = { type: "acquire", taskId: id as TaskId, parentId: parent as TaskId, priority } as const;
    const outcome = this.#step(command);
    if (outcome.kind === "refused") throw refusal(id, parent, outcome, this.#headcount);
    if (outcome.kind !== "pending") return Promise.resolve();
    const seat = Promise.withResolvers<void>();
    this.#waiting.set(id, seat);
    return seat.promise;
  }

  release(id: string): void {
    if (id === this.#headcount.rootId) return;
    this.#step({ type: "release", taskId: id as TaskId });
    this.#waiting.get(id)?.reject(new CancellationError(`${id} was released before it had a seat`));
    this.#waiting.delete(id);
  }

  settle(id: string): void {
    this.#step({ type: "settle", taskId: id as TaskId });
  }

  reprioritize(id: string, priority: Priority): void {
    this.#step({ type: "reprioritize", taskId: id as TaskId, priority });
  }

  #step(command: HeadcountCommand): HeadcountOutcome {
    const outcome = seatHeadcount(this.#headcount, command);
    for (const { taskId, change } of "changes" in outcome ? outcome.changes : []) {
      if (change !== "granted") continue;
      this.#waiting.get(taskId)?.resolve();
      this.#waiting.delete(taskId);
    }
    return outcome;
  }
}

function refusal(
  id: string,
  parent: string,
  { reason, holders }: Extract<HeadcountOutcome, { kind: "refused" }>,
  headcount: Headcount,
): Fault {
  if (reason === "already_hired")
    return new Fault("already_exists", `task ${id} already has a seat; use a different id for each task`);
  if (reason === "unknown_parent")
    return new Fault("not_found", `parent ${parent} of task ${id} has no seat or has ended`);
  const { maxAgents: limit } = headcount.budget;
  const details = { reason, holders: holders as unknown as JsonValue };
  return new BudgetExhaustedError({
    dimension: "agents",
    limit,
    used: headcount.taken + 1,
    details,
  });
}
