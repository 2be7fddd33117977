import { addLatency, noLatency, type LatencyCounts } from "./latency.ts";

/** The usage of a run in one hour with one agent and one model. All amounts are whole numbers. @advanced */
export interface UsageDelta {
  /** The UTC day on which the calls were reserved, as `2026-11-16`. */
  readonly day: string;
  /** The UTC hour of that day, from 0 to 23. Absent if the calls were reserved before hours were stored. */
  readonly hour?: number;
  /** Name of the agent that made the calls. */
  readonly agent: string;
  /** `provider/modelId`. `null` for a run that called no model. */
  readonly model: string | null;
  /** Reported input tokens, including those that the provider read from its cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The part of `inputTokens` that the provider read from its cache. */
  readonly cachedTokens: number;
  /** Number of model calls with reported usage. The attempts of one step count as one call. */
  readonly turns: number;
  /** Total charge in nano-dollars, including `lostNanoUsd`. */
  readonly nanoUsd: number;
  /** B3: tokens that were charged without reported usage. */
  readonly lostTokens: number;
  readonly lostNanoUsd: number;
  /** Number of calls that were charged without reported usage. */
  readonly lostCalls: number;
  /** Number of calls that were charged zero dollars because their price is unknown. */
  readonly unpriced: number;
  /** 1 in the row in which the run is counted, otherwise 0. */
  readonly runs: number;
  /**
   * 1 in the row of the hour in which the run ended as `failed`, otherwise 0. A run that fails again after a resume
   * is counted again.
   */
  readonly failedRuns: number;
  /** Number of attempts that the model or the connection to it ended without a reply. */
  readonly failedCalls: number;
  /** Durations of the calls with a reply: the number of calls by `latencyBucket`. A bucket without calls is absent. */
  readonly latency: LatencyCounts;
}

export const noUsageDelta: Omit<UsageDelta, "day" | "agent" | "model"> = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  turns: 0,
  nanoUsd: 0,
  lostTokens: 0,
  lostNanoUsd: 0,
  lostCalls: 0,
  unpriced: 0,
  runs: 0,
  failedRuns: 0,
  failedCalls: 0,
  latency: noLatency,
});

/** Adds two rows of the same agent and model. The result has the day and the hour of `one`. @advanced */
export function addUsageDelta(one: UsageDelta, other: UsageDelta): UsageDelta {
  return {
    agent: one.agent,
    model: one.model,
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
    turns: one.turns + other.turns,
    nanoUsd: one.nanoUsd + other.nanoUsd,
    lostTokens: one.lostTokens + other.lostTokens,
    lostNanoUsd: one.lostNanoUsd + other.lostNanoUsd,
    lostCalls: one.lostCalls + other.lostCalls,
    unpriced: one.unpriced + other.unpriced,
    runs: one.runs + other.runs,
    failedRuns: one.failedRuns + other.failedRuns,
    failedCalls: one.failedCalls + other.failedCalls,
    latency: addLatency(one.latency, other.latency),
    day: one.day,
    ...(one.hour !== undefined && { hour: one.hour }),
  };
}
