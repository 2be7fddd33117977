import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { toNanoUsdLimit } from "../base/money.ts";
import { checkOptions, optionNames } from "../base/option-check.ts";

/**
 * B7: caps on what the runs of a store may spend on one UTC day, in USD. `null` or absent means no cap; zero means that
 * nothing may be spent.
 */
export interface SpendingCaps {
  /** All runs together. */
  readonly perDayUsd?: number | null;
  /** The runs of one tenant. Runs without a tenant count as those of one tenant. */
  readonly perTenantPerDayUsd?: number | null;
  /** The runs of one user of one tenant. Runs without a user count as those of one user. */
  readonly perUserPerDayUsd?: number | null;
}

/** The name of a cap. */
export type CapName = keyof SpendingCaps;

/** The caps in nano-dollars. */
export type CapLimits = Readonly<Record<CapName, number | null>>;

const knownCaps = optionNames<SpendingCaps>({
  perDayUsd: true,
  perTenantPerDayUsd: true,
  perUserPerDayUsd: true,
});

/** Checks the caps. Returns `undefined` if there is none. Throws `invalid_argument`. */
export function capLimits(caps: SpendingCaps = {}): CapLimits | undefined {
  checkOptions("caps", caps, knownCaps);
  const limits = {
    perDayUsd: limitOf("perDayUsd", caps),
    perTenantPerDayUsd: limitOf("perTenantPerDayUsd", caps),
    perUserPerDayUsd: limitOf("perUserPerDayUsd", caps),
  };
  return Object.values(limits).every((limit) => limit === null) ? undefined : limits;
}

/** One US dollar too many for `toNanoUsdLimit`. */
const tooManyUsd = 9_000_000;

function limitOf(name: CapName, caps: SpendingCaps): number | null {
  const usd: unknown = caps[name] ?? null;
  if (usd === null) return null;
  if (typeof usd === "number" && usd >= 0 && usd < tooManyUsd) return toNanoUsdLimit(usd);
  throw new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(usd)} of caps: expected a number of US dollars from 0 and below 9 million, or null for no cap`,
  );
}
