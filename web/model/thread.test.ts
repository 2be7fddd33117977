import { expect, test } from "vitest";
import type { Event } from "../../src/kernel/index.ts";
import { threadOf } from "./thread.ts";

function events(kind: string): readonly Event[] {
  const call = { callId: "c1", toolName: "ask_human", input: { question: "How much?" } };
  const result = { output: { type: "text", text: "in full" }, isError: false };
  return [
    { type: "tool_execution_start", data: call },
    { type: "approval_request", data: { ...call, kind, approvalId: "a1" } },
    { type: "approval_decision", data: { approvalId: "a1", decision: { decision: "approved" } } },
    { type: "tool_execution_start", data: call },
    { type: "tool_execution_end", data: { ...call, result, durationMs: 5 } },
  ].map((event, seq) => ({ ...event, seq, at: seq }) as unknown as Event);
}

test("a conversation on the page shows the question of a tool once, and a call that needs approval with its card", () => {
  expect(threadOf(events("input"), Infinity).map(({ kind }) => kind)).toEqual(["question"]);
  expect(threadOf(events("tool_call"), Infinity).map(({ kind }) => kind)).toEqual(["tool", "question"]);
});

test("a conversation on the page shows for a call that a person edited the original and the executed arguments", () => {
  const call = { callId: "c1", toolName: "send", input: { to: "ada" } };
  const other = { callId: "c2", toolName: "send", input: { to: "eve" } };
  const result = { output: { type: "text", text: "sent" }, isError: false };
  const decision = { decision: "approved", input: { to: "bob" }, by: "ann" };
  const log = [
    { type: "tool_execution_start", data: call },
    { type: "tool_execution_start", data: other },
    { type: "approval_request", data: { ...call, kind: "tool_call", approvalId: "a1" } },
    { type: "approval_request", data: { ...other, kind: "tool_call", approvalId: "a2" } },
    { type: "approval_decision", data: { approvalId: "a1", decision } },
    { type: "tool_execution_end", data: { ...call, result, durationMs: 5 } },
  ].map((event, seq) => ({ ...event, seq, at: seq }) as unknown as Event);
  expect(threadOf(log, Infinity).filter(({ kind }) => kind === "tool")).toMatchObject([
    { input: { to: "ada" }, edit: { input: { to: "bob" }, by: "ann" }, status: "ok" },
    // The decision about one call leaves the other one waiting.
    { input: { to: "eve" }, edit: null, status: "asks" },
  ]);
});

test("a conversation on the page of a fork at the first event shows one task description, that of the agent", () => {
  const log = [
    { type: "run_start", data: { input: "Sort by date" } },
    { type: "run_fork", data: { origin: "run_1", at: 0, by: "api" } },
    { type: "agent_start", data: { input: "Sort by name" } },
  ].map((event, seq) => ({ ...event, seq, at: seq }) as unknown as Event);
  expect(threadOf(log, Infinity)).toMatchObject([
    { kind: "note" },
    { kind: "input", from: "Brief", text: "Sort by name" },
  ]);
});

test("a conversation on the page shows what a program reported at the start and at the end of its call", () => {
  const call = { callId: "c1", toolName: "edit", input: { path: "a.txt" } };
  const result = { output: { type: "text", text: "done" }, isError: false };
  const [location, other] = [
    { path: "/w/a.txt", isOutside: false },
    { path: "/etc/hosts", isOutside: true },
  ];
  const diffs = [{ ...location, diff: "@@\n+x" }];
  const log = [
    { type: "tool_execution_start", data: { ...call, source: "acp", foreign: { title: "Edit", diffs } } },
    { type: "tool_execution_start", data: { ...call, callId: "c2" } },
    { type: "tool_execution_end", data: { ...call, result, durationMs: 5, foreign: { locations: [other] } } },
    { type: "tool_execution_end", data: { ...call, callId: "c2", result, durationMs: 5 } },
  ].map((event, seq) => ({ ...event, seq, at: seq }) as unknown as Event);
  expect(threadOf(log, Infinity)).toMatchObject([
    { callId: "c1", status: "ok", foreign: { title: "Edit", diffs, locations: [other] } },
    { callId: "c2", status: "ok", foreign: null },
  ]);
});

/** An event of a hired agent. */
function hired(name: string, data: object): object {
  return { type: "architecture_event", data: { architecture: "hired", name, data } };
}

test("a conversation on the page says that a hired agent's prompt was sent again, and that its cost differs", () => {
  const log = [
    hired("session_loaded", { agent: "coder", version: "1" }),
    hired("prompt_resent", { from: "input" }),
    hired("cost_differs", { reportedUsd: 0.2, ledgerUsd: 0.1 }),
    hired("plan", { entries: [] }),
  ].map((event, seq) => ({ ...event, seq, at: seq }) as unknown as Event);
  expect(threadOf(log, Infinity)).toMatchObject([
    { kind: "note", tone: "plain", text: "Works as coder 1, in its earlier session" },
    { kind: "note", tone: "hold", text: "Gets its prompt again, because its session does not have it" },
    { kind: "note", tone: "hold", text: "Reports a cost of 0.2 USD, and the ledger has 0.1 USD" },
  ]);
});
