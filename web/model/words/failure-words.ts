import type { ExhaustedCap, Failure, RefusedReservation } from "../../../src/kernel/index.ts";
import { capUsd, grouped, usd, usdApart } from "../../base/format.ts";

/** What an error of an exhausted budget tells. Fields are absent in errors of other stores and versions. */
interface ExhaustionDetails {
  readonly dimension?: string;
  readonly limit?: number;
  readonly used?: number;
  readonly reason?: string;
  readonly refused?: RefusedReservation;
  readonly cap?: ExhaustedCap;
}

/** Why a run ended without completing, in words. An error other than that of a budget says it in its own message. */
export function failureWords({ code, message, details }: Failure): string {
  if (code !== "budget_exhausted") return message;
  const { dimension = "", limit, used, reason, refused, cap } = (details ?? {}) as ExhaustionDetails;
  if (cap !== undefined) {
    const [needed, left] = usdApart(cap.neededUsd, cap.limitUsd - cap.spentUsd - cap.heldUsd);
    return `The next call needed at least ${needed}, and ${left} was left of the ${capUsd(cap.limitUsd)} per day of ${cap.name}. It was not started. The cap resets at ${cap.resetsAt}.`;
  }
  if (limit === undefined || used === undefined) return message;
  const whole = dimension === "costUsd" ? capUsd(limit) : amount(dimension, limit);
  if (reason !== undefined) return `The answer was cut at what was left of ${whole}.`;
  if (refused === undefined) return `${amount(dimension, used)} of ${whole} is used. No further call starts.`;
  const { reserved, remaining } = refused;
  const [needed, left] =
    dimension === "costUsd"
      ? usdApart(reserved, remaining)
      : [amount(dimension, reserved), amount(dimension, remaining)];
  return `The next call needed at least ${needed}, and ${left} was left of ${whole}. It was not started.`;
}

function amount(dimension: string, value: number): string {
  return dimension === "costUsd" ? usd(value) : `${grouped(value)} ${dimension}`;
}
