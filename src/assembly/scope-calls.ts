import { Fault, type JsonObject } from "../kernel/index.ts";

/** What is known of a call of `ctx`. */
class Call {
  readonly #method: string;
  readonly #about: unknown;
  #state: "open" | "fulfilled" | "rejected" = "open";
  #error: unknown;
  /** Whether the code has awaited the promise of the call, or has called one of its methods. */
  isRead = false;

  /** `about` is the first argument of the method, such as the name of a step. */
  constructor(method: string, about: unknown) {
    this.#method = method;
    this.#about = about;
  }

  readonly fulfilled = (): void => {
    this.#state = "fulfilled";
  };

  readonly rejected = (error: unknown): void => {
    this.#state = "rejected";
    this.#error = error;
  };

  /** Whether the call has ended, and the code has read its error, if there is one. */
  get isOver(): boolean {
    return this.#state === "fulfilled" || (this.#state === "rejected" && this.isRead);
  }

  /** Returns the fault for code that ends although this call is not over. `end` names the place. */
  problemAt(end: string): Fault {
    const name = `ctx.${this.#method}(${typeof this.#about === "string" ? JSON.stringify(this.#about) : ""})`;
    if (this.#state === "open")
      return new Fault(
        "journal_ambiguous",
        `${name} was in flight at ${end}; await it, or use ctx.parallel, ctx.map, ctx.race or ctx.any`,
      );
    const failure = Fault.from(this.#error);
    return new Fault(
      "journal_ambiguous",
      `${name} had failed at ${end}, and nothing awaited it: ${failure.message}; await it`,
      { cause: this.#error, details: { failure: failure.toJSON() as unknown as JsonObject } },
    );
  }
}

const callKey = Symbol("call");

/**
 * The prototype for the promises of calls. `await` and all methods of a promise read its constructor, so the call
 * notices that it is read, without an additional microtask.
 */
const followed = Object.create(Promise.prototype, {
  constructor: {
    get(this: { readonly [callKey]: Call }): PromiseConstructor {
      this[callKey].isRead = true;
      return Promise;
    },
  },
}) as object;

/**
 * The calls of one scope of a workflow (rule J2). If code ends while a call is in progress, or after a call has
 * failed that it does not await, it may end differently in a replay.
 */
export class ScopeCalls {
  #last: Call | undefined;
  /** Calls that were not over when the next one began. Created only when there is such a call. */
  #earlier: Call[] | undefined;

  /** Follows a call to its end and returns its promise. `about` is the first argument of the method. */
  follow<Value>(method: string, about: unknown, work: Promise<Value> & { [callKey]?: Call }): Promise<Value> {
    const call = new Call(method, about);
    // With a handler, a call that fails and that nothing reads does not end the process, with all other runs of it.
    work.then(call.fulfilled, call.rejected);
    work[callKey] = call;
    Object.setPrototypeOf(work, followed);
    if (this.#last?.isOver === false) (this.#earlier ??= []).push(this.#last);
    this.#last = call;
    return work;
  }

  /**
   * Throws `journal_ambiguous` if the code has not awaited its calls. `end` names the place, such as `the end of
   * the function`.
   */
  requireAwaited(end: string): void {
    const open = this.#earlier?.find(({ isOver }) => !isOver) ?? this.#last;
    if (open?.isOver === false) throw open.problemAt(end);
  }
}
