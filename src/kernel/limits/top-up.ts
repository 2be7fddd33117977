import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { Spend, TopUp } from "./ledger.ts";
import { toNanoUsdLimit } from "../base/money.ts";

const dimensions: ReadonlySet<string> = new Set<keyof TopUp>(["maxTokens", "maxCostUsd", "maxTurns"]);

/** What a top-up adds, in the ledger's units. Throws for what is none, so that it can be refused where it is given. */
export function spendOfTopUp(add: Partial<TopUp>): Spend {
  for (const key of Object.keys(add)) {
    if (!dimensions.has(key)) {
      throw new Fault(
        "invalid_argument",
        `${key} cannot be topped up: use ${[...dimensions].join(", ")}, each as how much more there is to be`,
      );
    }
  }
  const { maxTokens = 0, maxCostUsd = 0, maxTurns = 0 } = add;
  for (const [name, count] of Object.entries({ maxTokens, maxTurns })) {
    if (Number.isSafeInteger(count) && count >= 0) continue;
    throw new Fault("invalid_argument", `${name} is ${describeValue(count)}: it must be an integer from 0`);
  }
  return { tokens: maxTokens, nanoUsd: toNanoUsdLimit(maxCostUsd), turns: maxTurns };
}
