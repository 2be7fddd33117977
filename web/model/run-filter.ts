import { unfinishedStatuses } from "../../src/kernel/index.ts";
import type { Run } from "../api/types.ts";
import { figures } from "./run-figures.ts";

/** The groups of the list of runs. */
export const groups = ["all", "live", "waits", "failed", "done"] as const;
export type Group = (typeof groups)[number];

type Status = Run["status"];

const failed: readonly Status[] = [
  "failed",
  "budget_exhausted",
  "deadline_exceeded",
  "guardrail_tripped",
  "max_turns",
  "max_output",
];

/** The statuses of a group, for the server's filter. `null`: all. */
export function statusesOf(group: Group): readonly Status[] | null {
  switch (group) {
    case "all":
      return null;
    case "live":
      return unfinishedStatuses;
    case "waits":
      return ["waiting", "running"];
    case "failed":
      return failed;
    case "done":
      return ["completed", "cancelled"];
  }
}

type Test = (run: Run) => boolean;

const numbers: Readonly<Record<string, (run: Run) => number>> = {
  cost: ({ runId, costUsd }) => figures.value.get(runId)?.costUsd ?? costUsd ?? 0,
  agents: ({ runId }) => figures.value.get(runId)?.agents ?? 0,
  steps: ({ runId }) => figures.value.get(runId)?.steps ?? 0,
  turns: ({ turns }) => turns,
  minutes: ({ createdAt, endedAt, updatedAt }) => ((endedAt ?? updatedAt) - createdAt) / 60_000,
  crashes: ({ recoveries }) => recoveries,
};

/** Reads a filter: words that id, agent or title contain, and comparisons such as `cost>1`. All must hold. */
export function parseFilter(text: string): Test {
  const tests = text
    .trim()
    .split(/\s+/u)
    .filter((word) => word !== "")
    .map(testOf);
  return (run) => tests.every((test) => test(run));
}

function testOf(word: string): Test {
  const [, name = "", sign, value] = /^(\w+)([<>])(\d+(?:\.\d+)?)$/u.exec(word) ?? [];
  const read = numbers[name];
  if (read !== undefined && value !== undefined)
    return (run) => (sign === ">" ? read(run) > Number(value) : read(run) < Number(value));
  // A filter of the server, which counts once it is entered.
  if (/^[^=<>\s]+=/u.test(word)) return () => true;
  const wanted = word.toLowerCase();
  return ({ runId, agentId, title, sessionId }) =>
    [runId, agentId, title ?? "", sessionId ?? ""].some((field) => field.toLowerCase().includes(wanted));
}
