import {
  amountWords,
  isStoppedAtLimit,
  topUpNames,
  type TopUpName,
} from "../../src/surfaces/view/top-up-offer.ts";
import type { TaskView } from "../../src/surfaces/view/run-view.ts";
import { signal } from "@preact/signals";
import { get, type Result } from "../api/client.ts";
import { connected } from "../api/runs-feed.ts";
import { useRead } from "../api/use-read.ts";
import { capUsd, counted, grouped, took, usd } from "../base/format.ts";

/** The rights of the person at the page. `null` until the server has sent them. */
export const access = signal<Result<"GET", "/api/access"> | null>(null);

/**
 * Asks the server for the rights of the person, at the start and when the server answers again. Until then, the
 * page offers no top-ups.
 */
export function followAccess(): void {
  connected.subscribe(() => void readAccess());
}

async function readAccess(): Promise<void> {
  try {
    access.value = await get("/api/access", {});
  } catch {
    // The page says that the server does not answer, or needs a token, and asks again when it does.
  }
}

/** The amounts that the person may add to the limits of a run, and what a stopped run needs to continue. */
export interface TopUpRight {
  /** The amount that the person may add to each limit: `Infinity` without a limit, 0 until the server has sent it. */
  readonly left: Readonly<Record<TopUpName, number>>;
  readonly lacks: { readonly taskId: string; readonly name: TopUpName; readonly amount: number } | null;
}

/** The status of a run and its limits. The rights of the person are read again when one of them changes. */
export interface LimitedRun {
  readonly status: string | undefined;
  readonly budget: Partial<Record<TopUpName, number | null>> | null | undefined;
}

export function useTopUp(runId: string, { status, budget }: LimitedRun): TopUpRight {
  const scope = access.value?.scope;
  const isAdmin = scope === "admin";
  const isRead = isAdmin ? isStoppedAtLimit(status ?? "") : scope !== undefined;
  const { value } = useRead(
    async (stop) => (isRead ? get("/api/runs/{runId}/top-up", { params: { runId }, signal: stop }) : null),
    [runId, isRead, status, ...topUpNames.map((name) => budget?.[name])],
  );
  const leftOf = (name: TopUpName): number =>
    isAdmin ? Infinity : value === null ? 0 : (value[name] ?? Infinity);
  const left = {
    maxCostUsd: leftOf("maxCostUsd"),
    maxTurns: leftOf("maxTurns"),
    maxTokens: leftOf("maxTokens"),
    deadlineMs: leftOf("deadlineMs"),
  };
  return { left, lacks: value?.lacks ?? null };
}

/** Returns the limits of a task that the person may raise. */
export function raisable(budget: TaskView["budget"] | undefined, { left }: TopUpRight): readonly TopUpName[] {
  return topUpNames.filter((name) => budget?.[name] != null && left[name] > 0);
}

/**
 * Describes how much of a limit of a task is used. `time` is the time that a run has used that stopped at its
 * deadline.
 */
export function limitWords(
  { total, budget }: Pick<TaskView, "total" | "budget">,
  name: TopUpName,
  time: { readonly limit: number; readonly used: number } | null,
): string {
  const limit = budget?.[name] ?? 0;
  switch (name) {
    case "maxCostUsd":
      return `${usd(total.costUsd)} of ${capUsd(limit)} is spent.`;
    case "maxTurns":
      return usedWords(total.calls, limit, "turn");
    case "maxTokens":
      return usedWords(total.tokens, limit, "token");
    case "deadlineMs":
      return time === null
        ? `The limit is ${amountWords(name, limit)} of time.`
        : `${took(time.used)} of ${took(time.limit)} of time is used.`;
  }
}

function usedWords(used: number, limit: number, noun: string): string {
  return `${grouped(used)} of ${counted(limit, noun)} ${limit === 1 ? "is" : "are"} used.`;
}

/** Describes who may raise a limit of a run. Empty if the person may raise it without a limit. */
export function topUpWords(name: TopUpName, { left }: TopUpRight): string {
  const most = left[name];
  if (most === Infinity) return "";
  return most > 0
    ? `You may add ${amountWords(name, most)} in all. A person with the scope admin may add more.`
    : `Only a person with the scope admin may raise the ${limitNouns[name]} of this run.`;
}

const limitNouns: Readonly<Record<TopUpName, string>> = {
  maxCostUsd: "budget",
  maxTurns: "limit of turns",
  maxTokens: "limit of tokens",
  deadlineMs: "deadline",
};
