import type { Event, JsonObject } from "../../src/kernel/index.ts";
import { capUsd } from "../base/format.ts";

/** The name of the agents of gateway runs. Their key is the name of the program. */
export const gatewayAgent = "reeve:gateway";

/** One request of a program behind the gateway, as the log has it. */
export interface RequestRow {
  readonly seq: number;
  readonly at: number;
  /** `budget` and `cap`: the request was refused before it left. `provider`: the provider refused it, and billed nothing. */
  readonly outcome: "done" | "budget" | "cap" | "provider" | "cut";
  /** The model. `null` for a request that was refused for money: the log does not name it. */
  readonly model: string | null;
  readonly words: string;
  readonly isBad: boolean;
  readonly tokens: { readonly input: number; readonly output: number } | null;
  readonly durationMs: number | null;
  readonly costUsd: number | null;
}

/** The request that an event tells of. `undefined` if it tells of none. */
export function requestOf(event: Event): RequestRow | undefined {
  const { seq, at } = event;
  const none = { model: null, tokens: null, durationMs: null, costUsd: null };
  if (event.type === "budget_exhausted") {
    const { cap } = event.data;
    const words = cap === undefined ? "402, above the budget, not sent" : "402, above the cap, not sent";
    return { seq, at, outcome: cap === undefined ? "budget" : "cap", words, isBad: true, ...none };
  }
  if (event.type !== "metered_call") return undefined;
  const { model, usage, durationMs, status } = event.data;
  const own = { seq, at, model: model.modelId, durationMs };
  if (usage !== null) {
    const tokens = { input: usage.inputTokens, output: usage.outputTokens };
    return { ...own, outcome: "done", words: "done", isBad: false, tokens, costUsd: usage.costUsd };
  }
  if (status === "error")
    return {
      ...own,
      outcome: "cut",
      words: "cut before its usage was known, charged at its bound",
      isBad: true,
      tokens: null,
      costUsd: null,
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

/** The budget with which a gateway run was created, in words. `null` if its metadata has none. */
export function gatewayBudget({ maxBudgetUsd, per }: JsonObject): string | null {
  if (typeof maxBudgetUsd !== "number") return null;
  return typeof per === "string" ? `${capUsd(maxBudgetUsd)} per ${per}` : capUsd(maxBudgetUsd);
}
