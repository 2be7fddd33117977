import { Fault, type Middleware, type MiddlewareFunction } from "../../kernel/index.ts";
import type { Stage } from "./layer.ts";

/** What the levels' contexts have in common, and what a layer may replace for those further in. */
interface Callable {
  result?: unknown;
  request?: unknown;
  arguments?: unknown;
  readonly filters?: unknown[];
}

/** One layer at one level, with the name it goes by in faults. */
export interface NamedStage<Context> {
  readonly name: string;
  readonly stage: Stage<Context>;
}

/**
 * The layers as one, first outermost. Linked once, here (F1): of none nothing is made, and a call walks no list. M1, M2 and M4
 * are held for each layer by itself.
 */
export function onion<Context extends Callable>(
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

/** M2: the `next` of one layer in one call, which lets through one at a time, and nobody after it was closed. */
class Turnstile {
  readonly #name: string;
  readonly #context: Callable;
  readonly #next: () => Promise<void>;
  #open: Promise<void> | undefined;
  #passed = false;
  /** M4: the filters that were added further in. */
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
      return Promise.reject(this.#fault("called next again while the earlier call was open"));
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

  /** What an earlier call left is neither the answer of this one nor in its way. */
  #startOver(): void {
    delete this.#context.result;
    const [from, to] = this.#added;
    if (to > from) this.#context.filters?.splice(from, to - from);
  }

  /** Nothing goes on behind a layer that is done: what it left open is waited for, and counts against it. */
  async settle(): Promise<void> {
    if (this.#open !== undefined) {
      const misuse = this.#fault("returned before its call of next had settled; await it");
      await this.#open.catch((error: unknown) => {
        misuse.cause ??= error;
      });
    }
    if (this.#misuse !== undefined) throw this.#misuse;
  }

  /** Closed with nothing open and nothing wrong: the common case, which costs no turn of the event loop. */
  close(): boolean {
    this.#closed = true;
    return this.#open === undefined && this.#misuse === undefined;
  }

  check(): void {
    if (!this.#passed && this.#context.result === undefined)
      throw this.#fault("neither called next nor set context.result");
  }

  /** The first stands, also when the layer catches it. */
  #fault(what: string): Fault {
    this.#misuse ??= new Fault("middleware_misuse", `middleware ${this.#name} ${what}`, {
      details: { middleware: this.#name },
    });
    return this.#misuse;
  }
}
