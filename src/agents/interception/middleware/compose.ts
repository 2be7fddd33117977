import { Fault, type Middleware, type MiddlewareFunction } from "../../../kernel/index.ts";
import type { Stage } from "./layer.ts";

/** The fields that the contexts of all levels share and that middleware may replace for the middleware inside it. */
interface Callable {
  result?: unknown;
  request?: unknown;
  arguments?: unknown;
  readonly filters?: unknown[];
}

/** Middleware of one level, with the name used in faults. */
export interface NamedStage<Context> {
  readonly name: string;
  readonly stage: Stage<Context>;
}

/**
 * Composes middleware into one function, the first one outermost. F1: this happens only once, and an empty list
 * gives `undefined`. M1, M2 and M4 are checked for each middleware separately.
 */
export function compose<Context extends Callable>(
  stages: readonly NamedStage<Context>[],
): Middleware<Context> | undefined {
  let linked: MiddlewareFunction<Context> | undefined;
  for (const named of stages.toReversed()) {
    const outer = guarded(named);
    const inner = linked;
    linked = inner === undefined ? outer : (context, next) => outer(context, () => inner(context, next));
  }
  return linked === undefined ? undefined : { process: linked };
}

function guarded<Context extends Callable>({
  name,
  stage,
}: NamedStage<Context>): MiddlewareFunction<Context> {
  const process: MiddlewareFunction<Context> =
    typeof stage === "function" ? stage : (context, next) => stage.process(context, next);
  return async (context, next) => {
    const turnstile = new Turnstile(name, context, next);
    try {
      await process(context, turnstile.pass);
    } finally {
      if (!turnstile.close()) await turnstile.settle();
    }
    turnstile.check();
  };
}

/**
 * M2: implements the function `next` of one middleware in one call. It allows one call at a time, and none after it
 * is closed.
 */
class Turnstile {
  readonly #name: string;
  readonly #context: Callable;
  readonly #next: () => Promise<void>;
  #open: Promise<void> | undefined;
  #passed = false;
  /** M4: the range of filters that middleware inside this one added. */
  #added: readonly [from: number, to: number] = [0, 0];
  #closed = false;
  #misuse: Fault | undefined;

  constructor(name: string, context: Callable, next: () => Promise<void>) {
    this.#name = name;
    this.#context = context;
    this.#next = next;
  }

  readonly pass = (): Promise<void> => {
    if (this.#closed) return Promise.reject(this.#fault("called next after it had returned"));
    if (this.#open !== undefined)
      return Promise.reject(this.#fault("called next again while the earlier call was in flight"));
    if (this.#passed) this.#startOver();
    this.#passed = true;
    this.#open = this.#through();
    return this.#open;
  };

  async #through(): Promise<void> {
    const context = this.#context;
    const { request, arguments: input, filters } = context;
    const from = filters?.length ?? 0;
    try {
      await this.#next();
    } finally {
      this.#open = undefined;
      if (context.request !== request) context.request = request;
      if (context.arguments !== input) context.arguments = input;
      this.#added = [from, filters?.length ?? 0];
    }
  }

  /** Removes the result and the filters of an earlier call. */
  #startOver(): void {
    delete this.#context.result;
    const [from, to] = this.#added;
    if (to > from) this.#context.filters?.splice(from, to - from);
  }

  /** Waits for a call that was still in flight when the middleware returned. This counts as misuse. */
  async settle(): Promise<void> {
    if (this.#open !== undefined) {
      const misuse = this.#fault("returned before its call of next had settled; await it");
      await this.#open.catch((error: unknown) => {
        misuse.cause ??= error;
      });
    }
    if (this.#misuse !== undefined) throw this.#misuse;
  }

  /**
   * Closes the function. Returns `true` if no call is in flight and nothing is wrong. This common case needs no
   * extra tick of the event loop.
   */
  close(): boolean {
    this.#closed = true;
    return this.#open === undefined && this.#misuse === undefined;
  }

  check(): void {
    if (!this.#passed && this.#context.result === undefined)
      throw this.#fault("neither called next nor set context.result");
  }

  /** Creates a misuse fault. The first one counts, even if the middleware catches it. */
  #fault(what: string): Fault {
    this.#misuse ??= new Fault("middleware_misuse", `middleware ${this.#name} ${what}`, {
      details: { middleware: this.#name },
    });
    return this.#misuse;
  }
}
