import type { Event, JsonObject } from "../../../src/kernel/index.ts";
import { capUsd } from "../../base/format.ts";
import type { GatewayRun, Run } from "../../api/types.ts";

/** The name of the agents of gateway runs. Their key is the name of the program. */
export const gatewayAgent = "reeve:gateway";

/** Types of events that tell of requests. */
export const requestTypes = ["metered_call", "gateway_request", "budget_exhausted"] as const;

/** One request of a program behind the gateway, as the log has it. */
export interface RequestRow {
  readonly seq: number;
  readonly at: number;
  /**
   * `budget`, `cap` and `refused`: the gateway refused the request before it left. `provider`: the provider refused it, and
   * billed nothing. `cut`: it ended without usage. `counted`: it counted tokens, which is free.
   */
  readonly outcome: "done" | "budget" | "cap" | "refused" | "provider" | "cut" | "counted";
  /** The model. `null` if the log does not name it. */
  readonly model: string | null;
  readonly words: string;
  readonly isBad: boolean;
  readonly tokens: { readonly input: number; readonly output: number } | null;
  /** The output limit that the program asked for, `null` if none, and the one that was sent. */
  readonly limit: { readonly asked: number | null; readonly sent: number } | null;
  readonly durationMs: number | null;
  /** What was reserved before the request left, in dollars. */
  readonly reservedUsd: number | null;
  /** What it cost. `null` if the log does not say. */
  readonly costUsd: number | null;
}

const nothing: Omit<RequestRow, "seq" | "at" | "outcome" | "words" | "isBad"> = {
  model: null,
  tokens: null,
  limit: null,
  durationMs: null,
  reservedUsd: null,
  costUsd: null,
};

/** The request that an event tells of. `undefined` if it tells of none. */
export function requestOf(event: Event): RequestRow | undefined {
  const { seq, at } = event;
  switch (event.type) {
    case "budget_exhausted": {
      const { cap, model } = event.data;
      const about = cap === undefined ? "budget" : "cap";
      const words = `402, above the ${about}, not sent`;
      return { ...nothing, seq, at, outcome: about, words, isBad: true, model: model?.modelId ?? null };
    }
    case "gateway_request":
      return { ...nothing, seq, at, ...unpaid(event.data) };
    case "metered_call":
      return { seq, at, ...paid(event.data) };
    default:
      return undefined;
  }
}

/** A request that no one paid for: the gateway refused it, or it counted tokens. */
function unpaid({
  status,
  model,
  reason,
  skipped = 0,
}: Event<"gateway_request">["data"]): Pick<RequestRow, "outcome" | "words" | "isBad" | "model"> {
  const more = skipped === 0 ? "" : ` (${skipped} more before it are not in the log)`;
  if (reason === undefined)
    return { outcome: "counted", words: `counted tokens, free${more}`, isBad: false, model };
  const why = reason === "" ? "the reason was erased" : reason;
  return { outcome: "refused", words: `${status}, not sent: ${why}${more}`, isBad: true, model };
}

function paid({
  model,
  usage,
  durationMs,
  status,
  limit,
  reserved,
  charged,
}: Event<"metered_call">["data"]): Omit<RequestRow, "seq" | "at"> {
  const own = {
    model: model.modelId,
    durationMs,
    limit: limit ?? null,
    reservedUsd: reserved?.costUsd ?? null,
  };
  if (usage !== null) {
    const tokens = { input: usage.inputTokens, output: usage.outputTokens };
    return { ...own, outcome: "done", words: "done", isBad: false, tokens, costUsd: usage.costUsd };
  }
  if (status === "error")
    return {
      ...own,
      outcome: "cut",
      words: "cut before its usage was known, charged in full",
      isBad: true,
      tokens: null,
      costUsd: charged?.costUsd ?? null,
    };
  return {
    ...own,
    outcome: "provider",
    words: "refused by the provider, not charged",
    isBad: false,
    tokens: null,
    costUsd: 0,
  };
}

/** Whether the gateway refused the request before it left. */
export function isRefused({ outcome }: RequestRow): boolean {
  return outcome === "budget" || outcome === "cap" || outcome === "refused";
}

/** The budget with which a gateway run was created, in words. `null` if its metadata has none. */
export function gatewayBudget({ maxBudgetUsd, per }: JsonObject): string | null {
  if (typeof maxBudgetUsd !== "number") return null;
  return typeof per === "string" ? `${capUsd(maxBudgetUsd)} per ${per}` : capUsd(maxBudgetUsd);
}

/** What holds for a gateway run as a whole. `null` if its programs are served. `result` is the beginning of the output. */
export function gatewayState(
  { status, endedAt }: Pick<Run, "status" | "endedAt">,
  { figures, tokens, others }: GatewayRun,
  result: string | null,
): string | null {
  if (status === "completed")
    return result?.includes('"expired"') === true
      ? "The run has expired. Its tokens are refused."
      : "The run has ended.";
  if (status === "cancelled")
    return tokens.length === 0 ? "The tokens are revoked." : "The run was cancelled. Its tokens are refused.";
  if (endedAt !== null || figures !== null || status === "paused") return null;
  const where = others.length === 0 ? "no other gateway is announced" : `others are at ${others.join(", ")}`;
  return `This server does not execute the run, and answers its requests with 503: ${where}.`;
}
