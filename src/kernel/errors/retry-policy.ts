import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { AgentId } from "../base/identity.ts";

/** A plain ceiling on how often a crashed agent is started again; no delay, no chance. */
export class RetryPolicy {
  readonly maxRetries: number;
  readonly #counts = new Map<AgentId, number>();

  constructor(maxRetries = 3) {
    if (!Number.isSafeInteger(maxRetries) || maxRetries < 0) {
      throw new Fault(
        "invalid_argument",
        `maxRetries is ${describeValue(maxRetries)}: it must be an integer from 0`,
      );
    }
    this.maxRetries = maxRetries;
  }

  /** Counts the attempt it allows. */
  shouldRetry(agentId: AgentId): boolean {
    const count = this.#counts.get(agentId) ?? 0;
    if (count >= this.maxRetries) return false;
    this.#counts.set(agentId, count + 1);
    return true;
  }

  /** After a clean run: the next failure starts from a fresh count. */
  reset(agentId: AgentId): void {
    this.#counts.delete(agentId);
  }
}
