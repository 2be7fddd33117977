import { AsyncLocalStorage } from "node:async_hooks";
import type { ElicitResult } from "@modelcontextprotocol/client";
import type { Elicitation } from "./elicitation.ts";

/** Answers a question that the server asks a person during a call. */
export type ElicitationHandler = (elicitation: Elicitation) => Promise<ElicitResult>;

/**
 * The calls of a server that are in flight, to find the call to which a question belongs. The protocol does not name
 * the call. A question on the response stream of an HTTP request belongs to that request; any other question belongs to
 * the only call in flight. With several calls it belongs to none, so that a person never sees a question of another
 * user's run.
 */
export class InFlightCalls {
  readonly #open = new Set<ElicitationHandler>();
  readonly #storage = new AsyncLocalStorage<ElicitationHandler>();

  /** Runs a call and answers questions during it with `asking`. */
  async during<Value>(asking: ElicitationHandler, work: () => Promise<Value>): Promise<Value> {
    this.#open.add(asking);
    try {
      return await this.#storage.run(asking, work);
    } finally {
      this.#open.delete(asking);
    }
  }

  /** Runs work that outlives the current call, such as the start of a server, outside the call's context. */
  outside<Value>(work: () => Value): Value {
    return this.#storage.exit(work);
  }

  /** Returns the handler of the call to which the current question belongs, or `undefined` if that is not known. */
  find(): ElicitationHandler | undefined {
    const known = this.#storage.getStore();
    if (known !== undefined && this.#open.has(known)) return known;
    const [only, ...others] = this.#open;
    return others.length === 0 ? only : undefined;
  }

  /** Number of calls in flight. */
  get size(): number {
    return this.#open.size;
  }
}
