import { addSpend, findExcess, findRefusal } from "./account.ts";
import type { Account, Exhaustion, ReserveCommand, Spend } from "./ledger.ts";
import { toNanoUsdBound } from "../base/money.ts";

/** Whether the price of the call is known (B4). */
export function isPriced({ input, output }: ReserveCommand): boolean {
  return input.costUsd !== null && output.usdPerToken !== null;
}

/** B1: the maximum cost of the call if it may write `outputTokens`. */
export function boundOf({ input, output, turns = 1 }: ReserveCommand, outputTokens: number): Spend {
  const { costUsd } = input;
  const { usdPerToken } = output;
  const priced = costUsd !== null && usdPerToken !== null;
  return {
    tokens: input.tokens + outputTokens,
    nanoUsd: priced ? toNanoUsdBound(costUsd + outputTokens * usdPerToken) : 0,
    turns,
  };
}

/**
 * The output limit that the call could send if every open reservation were returned unspent: `maxTokens`, clamped to
 * what each account of the chain has left. Below `minTokens` the result is an exhaustion, because waiting cannot help.
 */
export function clampOutput(chain: readonly Account[], request: ReserveCommand): number | Exhaustion {
  const { maxTokens, minTokens = 1 } = request.output;
  const minimum = Math.min(minTokens, maxTokens);
  const floor = boundOf(request, minimum);
  let outputTokens = maxTokens;
  for (const account of chain) {
    const refusal = findRefusal(account, floor);
    if (refusal !== undefined) return refusal;
    const fits = (tokens: number): boolean =>
      findExcess(account, addSpend(account.spent, boundOf(request, tokens))) === undefined;
    outputTokens = largestOutput(fits, minimum, outputTokens);
  }
  return outputTokens;
}

/** The accounts in which the bound does not fit beside the current reservations. */
export function findTight(chain: readonly Account[], bound: Spend): readonly Account[] {
  return chain.filter((account) => !bears(account, bound));
}

/** Whether the bound fits in all accounts of the chain. */
export function isBearable(chain: readonly Account[], bound: Spend): boolean {
  for (const account of chain) if (!bears(account, bound)) return false;
  return true;
}

function bears(account: Account, bound: Spend): boolean {
  const { spent, reserved } = account;
  return findExcess(account, addSpend(addSpend(spent, reserved), bound)) === undefined;
}

/** The largest output limit that fits, found by bisection. The minimum is known to fit. */
export function largestOutput(
  fits: (outputTokens: number) => boolean,
  minimum: number,
  maximum: number,
): number {
  if (fits(maximum)) return maximum;
  let low = minimum;
  let high = maximum;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}
