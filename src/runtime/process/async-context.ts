import { AsyncLocalStorage } from "node:async_hooks";
import {
  deepFreeze,
  type CancellationError,
  type CancellationToken,
  type CancelListener,
  type RunFacts,
  type TaskRecord,
} from "../../kernel/index.ts";

/** A task whose code may wait for the result of another run. */
export interface SlotYielder {
  /**
   * Waits for `work` without holding a slot, because the awaited run may need it. The task takes a slot again
   * before its code continues.
   */
  yieldSlotWhile<Value>(work: Promise<Value>): Promise<Value>;
  /**
   * Waits for `work` like `yieldSlotWhile`, and rejects if the task is cancelled. It does not reject if `work` is
   * part of the cleanup after a cancel. Default of `isCleanup`: whether the task is already cancelled.
   */
  yieldSlotUnlessCancelled<Value>(work: Promise<Value>, isCleanup?: boolean): Promise<Value>;
  readonly isCancelled: boolean;
  /**
   * Calls the listener once when the code is cancelled, but not when the process drops its task. The returned
   * function removes the listener.
   */
  onCancel(listener: CancelListener): () => void;
  /** Returns the same task for code that is also cancelled with `token`. */
  within(token: CancellationToken): SlotYielder;
}

/**
 * J6: numbers the runs that the body of a step submits, so that a body that starts again after a crash finds the
 * runs of its earlier execution. If middleware repeats a body in one process, the numbers continue.
 */
export class BodySubmissions {
  /** The idempotency key of the step. */
  readonly key: string;
  readonly #counts = new Map<string, number>();

  constructor(key: string) {
    this.key = key;
  }

  /** Returns the number of the next run with this agent and input, counted from 1. */
  next(asked: string): number {
    const count = (this.#counts.get(asked) ?? 0) + 1;
    this.#counts.set(asked, count);
    return count;
  }
}

/** The values that agent code finds in its async context (`AsyncLocalStorage`). */
export interface AsyncContext {
  readonly facts: RunFacts;
  /** The task, until it ends. */
  readonly task: SlotYielder | undefined;
  /** Present in the body of a tool or a step. */
  readonly submissions?: BodySubmissions | undefined;
}

/** The context of the code of a whole task. */
export interface TaskAsyncContext extends AsyncContext {
  /**
   * The task. Cleared when the task ends, because a socket or timer that the code made may keep this object in
   * memory.
   */
  task: SlotYielder | undefined;
}

/**
 * The async context of the body of a tool or a step. If the body is cancelled, its waits for other runs are
 * cancelled too.
 */
export class BodyContext implements AsyncContext {
  readonly #outer: AsyncContext;
  readonly #submissions: () => BodySubmissions;
  #body: { readonly token: CancellationToken } | undefined;

  /**
   * The token of `body` and its submissions are created only when they are used, because most bodies wait for no
   * run.
   */
  constructor(
    outer: AsyncContext,
    body: { readonly token: CancellationToken },
    submissions: () => BodySubmissions,
  ) {
    this.#outer = outer;
    this.#body = body;
    this.#submissions = submissions;
  }

  get submissions(): BodySubmissions | undefined {
    return this.#body === undefined ? undefined : this.#submissions();
  }

  get facts(): RunFacts {
    return this.#outer.facts;
  }

  get task(): SlotYielder | undefined {
    const { task } = this.#outer;
    return this.#body === undefined ? task : task?.within(this.#body.token);
  }

  /** Ends the body of a step or tool. Work that the body has left running then belongs to the task. */
  end(): void {
    this.#body = undefined;
  }
}

const storage = new AsyncLocalStorage<AsyncContext>();

/**
 * Returns the facts of the run in which it is called: user, session, run and metadata. Returns `undefined` outside a
 * run.
 */
export function getRunContext(): RunFacts | undefined {
  return storage.getStore()?.facts;
}

/** Returns the task whose code calls this function. `undefined` outside a task. */
export function currentTask(): SlotYielder | undefined {
  return storage.getStore()?.task;
}

/** Whether the caller is the code of a task. */
export function isInsideTask(): boolean {
  return currentTask() !== undefined;
}

/**
 * Returns the counter for submissions of the body that calls this function. `undefined` outside the body of a tool
 * or a step.
 */
export function bodySubmissions(): BodySubmissions | undefined {
  return storage.getStore()?.submissions;
}

/** Runs the code of a task in its context. */
export function insideTask<Result>(context: AsyncContext, body: () => Result): Result {
  return storage.run(context, body);
}

/**
 * Runs a branch of a task's code. With `token`, its waits for other runs are cancelled. A branch in the body of a
 * tool starts again together with the body, so that its submissions count as those of the body (J6).
 */
export function insideBranch<Result>(
  inside: AsyncContext,
  token: CancellationToken,
  body: () => Result,
): Result {
  const { facts } = inside;
  const around = storage.getStore();
  const branch: AsyncContext = {
    facts,
    get submissions() {
      return around?.submissions;
    },
    get task() {
      return inside.task?.within(token);
    },
  };
  return storage.run(branch, body);
}

/**
 * Runs a call that submits a run and waits for it. Whether the call is part of the cleanup of a cancelled task is
 * decided at its start and not when it begins to wait. So if its task is cancelled while it submits the run, the
 * call rejects, like a call that already waits.
 */
export function insideCall<Value>(body: () => Promise<Value>): Promise<Value> {
  const inside = storage.getStore();
  const { task } = inside ?? {};
  if (inside === undefined || task === undefined || task.isCancelled) return body();
  let stop: CancellationError | undefined;
  const forget = task.onCancel((error) => {
    stop = error;
  });
  const call: AsyncContext = {
    facts: inside.facts,
    submissions: inside.submissions,
    get task() {
      if (stop !== undefined) return cancelledTask(stop);
      return inside.task && beforeCancel(inside.task);
    },
  };
  return storage.run(call, body).finally(forget);
}

/** Returns the task for code that started before the task was cancelled. */
function beforeCancel(task: SlotYielder): SlotYielder {
  return {
    yieldSlotWhile: (work) => task.yieldSlotWhile(work),
    yieldSlotUnlessCancelled: (work, isCleanup = false) => task.yieldSlotUnlessCancelled(work, isCleanup),
    isCancelled: false,
    onCancel: (listener) => task.onCancel(listener),
    within: (token) => task.within(token),
  };
}

/** Returns a cancelled task, for code that started before the cancel. The task may have ended since then. */
function cancelledTask(stop: CancellationError): SlotYielder {
  const task: SlotYielder = {
    yieldSlotWhile: (work) => work,
    yieldSlotUnlessCancelled: (work, isCleanup = false) => (isCleanup ? work : Promise.reject(stop)),
    isCancelled: false,
    onCancel: (listener) => {
      listener(stop);
      return () => undefined;
    },
    within: () => task,
  };
  return task;
}

/** Runs code that observes a run, such as a hook, in the context of the run. The code belongs to no task. */
export function withRunFacts<Result>(facts: RunFacts, body: () => Result): Result {
  const current = storage.getStore()?.facts;
  return current !== undefined && areEqual(current, facts)
    ? body()
    : storage.run({ facts, task: undefined }, body);
}

function areEqual(one: RunFacts, other: RunFacts): boolean {
  return (
    one.runId === other.runId &&
    one.sessionId === other.sessionId &&
    one.userId === other.userId &&
    one.metadata === other.metadata &&
    one.context === other.context
  );
}

/**
 * Creates the facts of the run to which a task belongs. They are frozen, because tools and middleware receive them,
 * and because memory and permissions depend on the user in them. `live` contains the context of the run, which may
 * be created later and belongs to its caller.
 */
export function factsOf(
  tenantId: string | null,
  { supervision, userId, metadata }: TaskRecord,
  live?: { readonly value: unknown },
): RunFacts {
  const { sessionId, runId } = supervision;
  deepFreeze(metadata);
  if (live === undefined)
    return Object.freeze({ tenantId, userId, sessionId, runId, metadata, context: undefined });
  return Object.freeze({
    tenantId,
    userId,
    sessionId,
    runId,
    metadata,
    get context() {
      return live.value;
    },
  });
}
