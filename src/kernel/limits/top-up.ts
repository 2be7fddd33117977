import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { checkOptions, optionNames } from "../base/option-check.ts";
import type { Spend, TopUp } from "./ledger.ts";
import { toNanoUsdLimit } from "../base/money.ts";

const dimensions = optionNames<TopUp>({ maxTokens: true, maxCostUsd: true, maxTurns: true });

/**
 * Converts a top-up to the ledger's units. It throws for an invalid top-up, so that the caller is refused before
 * anything is stored.
 */
export function spendOfTopUp(add: Partial<TopUp>): Spend {
  checkOptions("topUp()", add, dimensions);
  const { maxTokens = 0, maxCostUsd = 0, maxTurns = 0 } = add;
  for (const [name, count] of Object.entries({ maxTokens, maxTurns })) {
    if (Number.isSafeInteger(count) && count >= 0) continue;
    throw new Fault(
      "invalid_argument",
      `invalid ${name} ${describeValue(count)}: expected an integer from 0`,
    );
  }
  return { tokens: maxTokens, nanoUsd: toNanoUsdLimit(maxCostUsd), turns: maxTurns };
}
