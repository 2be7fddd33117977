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

/** What the person at the page may do. `null` until the server has said it. */
const access = signal<Result<"GET", "/api/access"> | null>(null);

/** Asks the server what the person may do, at the start and when it answers again. Until then, the page offers no top-ups. */
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

/** What the person may add to the limits of a run, and what a stopped run needs to continue. */
export interface TopUpRight {
  /** What the person may add to each limit: `Infinity` without a limit, 0 until the server has said it. */
  readonly left: Readonly<Record<TopUpName, number>>;
  readonly lacks: { readonly taskId: string; readonly name: TopUpName; readonly amount: number } | null;
}

/** The status of a run and its limits. The right of the person is read again when one of them changes. */
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

/** The limits of a task that the person may raise. */
export function raisable(budget: TaskView["budget"] | undefined, { left }: TopUpRight): readonly TopUpName[] {
  return topUpNames.filter((name) => budget?.[name] != null && left[name] > 0);
}

/** Says who may raise a limit of a run. Empty if the person may do so without a limit. */
export function topUpWords(name: TopUpName, { left }: TopUpRight): string {
  const most = left[name];
  if (most === Infinity) return "";
  return most > 0
    ? `You may add ${amountWords(name, most)} in all. A person with the scope admin may add more.`
    : `Only a person with the scope admin may raise the ${limitNouns[name]} of this run.`;
}

const limitNouns: Readonly<Record<TopUpName, string>> = {
  maxCostUsd: "allowance",
  maxTurns: "limit of turns",
  maxTokens: "limit of tokens",
  deadlineMs: "deadline",
};
