import { Fault, type Middleware, type MiddlewareFunction } from "../../kernel/index.ts";
import type { Stage } from "./layer.ts";

interface Answered {
  result?: unknown;
}

/** One layer at one level, with the name it goes by in faults. */
export interface NamedStage<Context> {
  readonly name: string;
  readonly stage: Stage<Context>;
}

/**
 * The layers as one, first outermost. Linked once, here (F1): of none nothing is made, and a call walks no list. M1 and M2 are
 * held for each layer by itself.
 */
export function onion<Context extends Answered>(
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

function guarded<Context extends Answered>({
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
      await turnstile.close();
    }
    turnstile.check();
  };
}

/** M2: the `next` of one layer in one call, which lets through one at a time, and nobody after it was closed. */
class Turnstile {
  readonly #name: string;
  readonly #context: Answered;
  readonly #next: () => Promise<void>;
  #open: Promise<void> | undefined;
  #passed = false;
  #closed = false;
  #misuse: Fault | undefined;

  constructor(name: string, context: Answered, next: () => Promise<void>) {
    this.#name = name;
    this.#context = context;
    this.#next = next;
  }

  readonly pass = (): Promise<void> => {
    if (this.#closed) return Promise.reject(this.#fault("called next after it had returned"));
    if (this.#open !== undefined)
      return Promise.reject(this.#fault("called next again while the earlier call was open"));
    // What an earlier call left must not pass for the answer of this one.
    if (this.#passed) delete this.#context.result;
    this.#passed = true;
    this.#open = this.#through();
    return this.#open;
  };

  async #through(): Promise<void> {
    try {
      await this.#next();
    } finally {
      this.#open = undefined;
    }
  }

  /** Nothing goes on behind a layer that is done: what it left open is waited for, and counts against it. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#open !== undefined) {
      const misuse = this.#fault("returned before its call of next had settled; await it");
      await this.#open.catch((error: unknown) => {
        misuse.cause ??= error;
      });
    }
    if (this.#misuse !== undefined) throw this.#misuse;
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
