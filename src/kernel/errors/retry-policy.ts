import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { AgentId } from "../base/identity.ts";

/** Limits how often an agent that crashed is started again. It uses neither delays nor randomness. */
export class RetryPolicy {
  readonly maxRetries: number;
  readonly #counts = new Map<AgentId, number>();

  constructor(maxRetries = 3) {
    if (!Number.isSafeInteger(maxRetries) || maxRetries < 0) {
      throw new Fault(
        "invalid_argument",
        `invalid maxRetries ${describeValue(maxRetries)}: expected an integer from 0`,
      );
    }
    this.maxRetries = maxRetries;
  }

  /** Whether another attempt is allowed. Each allowed attempt is counted. */
  shouldRetry(agentId: AgentId): boolean {
    const count = this.#counts.get(agentId) ?? 0;
    if (count >= this.maxRetries) return false;
    this.#counts.set(agentId, count + 1);
    return true;
  }

  /** Resets the count after a successful run. */
  reset(agentId: AgentId): void {
    this.#counts.delete(agentId);
  }
}
