import { randomUUID } from "node:crypto";
import { canonicalJson, type JsonValue } from "../../../../kernel/index.ts";

/** The queue of a run to which an input was sent. */
export interface InputPlace {
  readonly queue: "steer" | "follow-up";
  readonly runId: string;
}

/** Where an input was sent: it started a run, or it went to a queue. */
type Destination = "run" | InputPlace;

interface Attempt {
  readonly key: string;
  readonly to: Destination;
}

/**
 * The inputs of which it is unknown whether the server has received them, because its answer was lost. If the same
 * input is sent again, it goes to the same place with the same key. The server executes an input only once per key,
 * even after a restart.
 */
export class UnsureInputs {
  readonly #attempts = new Map<string, Attempt>();

  /** Where an input went of which it is not known whether it has arrived. `undefined` for any other input. */
  find(input: JsonValue): Destination | undefined {
    return this.#attempts.get(canonicalJson(input))?.to;
  }

  /** Sends an input under the key of its earlier attempt, or under a new one. */
  async deliver<Answer>(
    input: JsonValue,
    to: Destination,
    send: (key: string) => Promise<Answer>,
  ): Promise<Answer> {
    const before = this.#attempts.get(canonicalJson(input));
    const key = before?.key ?? randomUUID();
    try {
      const answer = await send(key);
      // After another text, a person who writes an earlier one means a new input.
      if (before === undefined) this.clear();
      else this.forget(input);
      return answer;
    } catch (error) {
      // A refused request has had no effect, so that its key may be used again.
      this.#attempts.set(canonicalJson(input), { key, to });
      throw error;
    }
  }

  forget(input: JsonValue): void {
    this.#attempts.delete(canonicalJson(input));
  }

  clear(): void {
    this.#attempts.clear();
  }
}
