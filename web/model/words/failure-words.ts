import {
  visibleText,
  type ExhaustedCap,
  type Failure,
  type RefusedReservation,
} from "../../../src/kernel/index.ts";
import { timeOf } from "../../../src/surfaces/view/top-up-offer.ts";
import { capUsd, counted, grouped, span, took, usd, usdApart } from "../../base/format.ts";

/** What an error of an exhausted budget tells. Fields are absent in errors of other stores and versions. */
interface ExhaustionDetails {
  readonly dimension?: string;
  readonly limit?: number;
  readonly used?: number;
  readonly reason?: string;
  readonly refused?: RefusedReservation;
  readonly cap?: ExhaustedCap;
}

/**
 * Describes why a run ended without completing. For an error that is not about a budget, the error's own message is
 * used.
 */
export function failureWords({ code, message, details }: Failure): string {
  if (details?.["status"] === "deadline_exceeded") return deadlineWords(message, timeOf({ details }));
  if (code !== "budget_exhausted") return plainMessage(message);
  const { dimension = "", limit, used, reason, refused, cap } = (details ?? {}) as ExhaustionDetails;
  if (cap !== undefined) {
    const [needed, left] = usdApart(cap.neededUsd, cap.limitUsd - cap.spentUsd - cap.heldUsd);
    const per = cap.name.includes("Month") ? "month" : "day";
    const agent = cap.agent === undefined ? "" : ` for ${cap.agent}`;
    return `The next call needed at least ${needed}, and ${left} was left of the ${capUsd(cap.limitUsd)} per ${per}${agent} of ${cap.name}. It was not started. The cap resets at ${cap.resetsAt}.`;
  }
  if (limit === undefined || used === undefined) return plainMessage(message);
  const whole = dimension === "costUsd" ? capUsd(limit) : amount(dimension, limit);
  if (reason !== undefined) return `The answer was cut at what was left of ${whole}.`;
  if (refused === undefined) return `${amount(dimension, used)} of ${whole} is used. No further call starts.`;
  const { reserved, remaining } = refused;
  const [needed, left] =
    dimension === "costUsd"
      ? usdApart(reserved, remaining)
      : [amount(dimension, reserved), amount(dimension, remaining)];
  const verb = dimension === "costUsd" || remaining === 1 ? "was" : "were";
  return `The next call needed at least ${needed}, and ${left} ${verb} left of ${whole}. It was not started.`;
}

/** Describes why a run stopped at its deadline. The last error of a model explains why there was no answer in time. */
function deadlineWords(message: string, time: ReturnType<typeof timeOf>): string {
  const last = /; the last error was: (?<error>.+)$/su.exec(message)?.groups?.["error"];
  const words =
    time === null ? "Its time is over." : `It used ${took(time.used)} of ${took(time.limit)} of time.`;
  return `${words} No further call starts.${last === undefined ? "" : ` The last error was: ${plainMessage(last)}`}`;
}

/** The code of an error as the page shows it. A run that stopped at its deadline was cancelled by it. */
export function shownCode({ code, details }: Pick<Failure, "code" | "details">): string {
  return details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : code;
}

const timeout = /^(?<model>\S+) timed out: (?<what>.+) within (?<ms>\d+) ms \(modelTimeouts\.\w+\)$/u;

/**
 * A message of the runtime without the names of options, which mean nothing to a person who reads the page. Messages quote
 * tools and models, and the person decides whether the run continues, so hidden characters are shown.
 */
export function plainMessage(source: string): string {
  const message = visibleText(source);
  const { model, what, ms } = timeout.exec(message)?.groups ?? {};
  if (model === undefined || what === undefined) return message;
  return `${model} stopped answering: ${what.replace("chunk", "part")} within ${span(Number(ms))}.`;
}

const units: Readonly<Record<string, string>> = { tokens: "token", turns: "turn", seats: "seat" };

/** An amount of a budget: `$0.050`, `1 turn`, `40 turns`. */
export function amount(dimension: string, value: number): string {
  if (dimension === "costUsd") return usd(value);
  const unit = units[dimension];
  return unit === undefined ? `${grouped(value)} ${dimension}` : counted(value, unit);
}

/** Describes what a person can do after a run has ended without an answer. */
export function nextWords(failure: Pick<Failure, "code" | "details">): string {
  switch (shownCode(failure)) {
    case "budget_exhausted":
    case "deadline_exceeded":
      return "Open the run to top it up. It continues where it stopped and pays for nothing again.";
    case "guardrail_tripped":
      return "Change the message, or the guardrail that stopped it.";
    case "permission_denied":
    case "model_auth":
    case "model_auth_permanent":
      return "Check the key and the permissions of the agent, then send the message again.";
    case "unknown_price":
      return "Give the model a price, or the agent no limit in dollars, then send the message again.";
    case "context_missing":
    case "version_mismatch":
    case "journal_mismatch":
      return "Start a worker that has this version of the agent, then resume the run.";
    default:
      return "Send the message again, or open the run to see what happened before.";
  }
}
