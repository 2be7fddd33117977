import { AsyncLocalStorage } from "node:async_hooks";
import type { ElicitResult } from "@modelcontextprotocol/client";
import type { Elicitation } from "./elicitation.ts";

/** Answers what the server asks a person while a call is open. */
export type ModelAttempts = (elicitation: Elicitation) => Promise<ElicitResult>;

/**
 * The calls a server has open, to tell which of them a question belongs to. The protocol does not say. What comes in on the stream of an
 * HTTP answer is known by the stream; otherwise the only open call is meant, and among several none: a person is not shown what
 * may be another's.
 */
export class InFlightCalls {
  readonly #open = new Set<ModelAttempts>();
  readonly #storage = new AsyncLocalStorage<ModelAttempts>();

  async during<Value>(asking: ModelAttempts, work: () => Promise<Value>): Promise<Value> {
    this.#open.add(asking);
    try {
      return await this.#storage.run(asking, work);
    } finally {
      this.#open.delete(asking);
    }
  }

  /** For what outlives the call that happens to start it. */
  outside<Value>(work: () => Value): Value {
    return this.#storage.exit(work);
  }

  /** `undefined` also when it cannot be told. */
  find(): ModelAttempts | undefined {
    const known = this.#storage.getStore();
    if (known !== undefined && this.#open.has(known)) return known;
    const [only, ...others] = this.#open;
    return others.length === 0 ? only : undefined;
  }

  get size(): number {
    return this.#open.size;
  }
}
