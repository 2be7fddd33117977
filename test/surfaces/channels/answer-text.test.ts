import { expect, it } from "vitest";
import type { PendingApproval, RunId } from "../../../src/kernel/index.ts";
import { answerText, questionForm } from "../../../src/surfaces/channels/answer-text.ts";

const nothing = { maxCostUsd: 0, maxTurns: 0, maxTokens: 0, deadlineMs: 0 };
const runId = "run_1" as RunId;

it.each([
  ["costUsd", 0.05, nothing, "stopped at its budget of $0.05; only an admin of the server can raise it"],
  ["turns", 5, nothing, "stopped at its limit of 5 turns; only an admin of the server can raise it"],
  [
    "turns",
    5,
    { ...nothing, maxTurns: 3 },
    "stopped at its limit of 5 turns; you can add up to 3 turns here or on the page of the server, and an admin any amount",
  ],
  ["tokens", 2_000, { ...nothing, maxTurns: 3 }, "stopped at its limit of 2,000 tokens; only an admin"],
] as const)(
  "the answer in a channel for a run that stopped at %s of %d says what is missing and who may add it",
  (dimension, limit, left, text) => {
    const error = {
      code: "budget_exhausted",
      message: "",
      details: { dimension, limit, used: limit },
    } as const;
    expect(answerText({ status: "budget_exhausted", output: "Half.", runId, error }, left)).toContain(
      `[${text}`,
    );
  },
);

it("the answer in a channel for a run that stopped at its deadline says who may add time", () => {
  const ended = { status: "deadline_exceeded", output: null, runId, error: null } as const;
  expect(answerText(ended, { ...nothing, deadlineMs: 60_000 })).toBe(
    "[stopped at its deadline; you can add up to 1 min here or on the page of the server, and an admin any amount: run_1]",
  );
});

it("the question in a channel about a merge offers Merge only if the whole diff is shown", () => {
  const form = (lines: number, isCut?: true): ReturnType<typeof questionForm> => {
    const hunk = `@@ -0,0 +1,${lines} @@\n${"+line\n".repeat(lines)}`;
    const diff = `diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n${hunk}`;
    const input = { message: "Merge the work of t1", merge: { sources: [] }, diff, ...(isCut && { isCut }) };
    return questionForm({
      kind: "merge",
      toolName: "merge_worktrees",
      reason: "",
      agentId: "lead",
      input,
    } as unknown as PendingApproval);
  };
  const labels = (found: ReturnType<typeof questionForm>): unknown =>
    found?.choices.map(({ label }) => label);
  expect(form(1)?.text).toBe("lead: Merge the work of t1\n\na.txt:\n@@ -0,0 +1,1 @@\n+line");
  expect(labels(form(1))).toEqual(["Merge", "Decline"]);
  expect(labels(form(1, true))).toEqual(["Decline"]);
  expect(labels(form(10_000))).toEqual(["Decline"]);
  expect(form(10_000)?.text).toContain("too long to be merged from here");
});
