import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  canonicalJson,
  eventDraft,
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  parseSessionId,
  stepAt,
  userMessage,
  type AssistantMessage,
  type Commit,
  type Event,
  type EventDraft,
  type JsonValue,
  type LlmReply,
  type SessionChange,
  type StepRecord,
} from "../../../../src/kernel/index.ts";
import {
  decodeCommit,
  encodeCommit,
  type CommitFrame,
} from "../../../../src/runtime/stores/codec/commit-codec.ts";
import type { FindEntries } from "../../../../src/runtime/stores/codec/stored-change.ts";
import type { StoredCommit } from "../../../../src/runtime/stores/codec/stored-commit.ts";
import { idAfter } from "../../../../src/runtime/stores/codec/entry-batch.ts";
import { propertyRuns } from "../../../effort.ts";

const run = {
  runId: formatRunId("8c6f1f0e-7a53-4f6b-9a2e-000000000001"),
  agentId: formatAgentId({ name: "writer" }),
  sessionId: formatSessionId("1"),
};
const hash = (content: string | Uint8Array): string => `hash of ${content.length}`;
const json = fc.jsonValue() as fc.Arbitrary<JsonValue>;

function textOf(commit: Commit, of: Parameters<typeof encodeCommit>[1] = run): string {
  return JSON.stringify(encodeCommit(commit, of, hash));
}

function commitOf(text: string, frame: CommitFrame, find: FindEntries = () => []): Commit {
  return decodeCommit(JSON.parse(text) as StoredCommit, frame, find);
}

/** Encodes the commit as a row's text and decodes it again. */
function through(commit: Commit): Commit {
  const seqs = commit.events?.map(({ seq }) => seq) ?? [];
  const body = textOf(commit);
  const frame = { ...run, number: commit.number, at: commit.at, nextEvent: (seqs.at(-1) ?? 4) + 1 };
  const entries = new Map(
    commit.sessions?.flatMap((change) => (change.type === "append" ? [[change.entry.id, change.entry]] : [])),
  );
  return commitOf(body, frame, (_session, first, count) =>
    Array.from({ length: count }, (_, index) => entries.get(idAfter(first, index)) ?? []).flat(),
  );
}

const event = fc
  .record({
    task: fc.nat(2),
    agent: fc.constantFrom("writer", "reader"),
    parent: fc.option(fc.nat(1)),
    at: fc.nat(100),
    input: json,
  })
  .map(({ task, agent, parent, at, input }): Omit<Event<"input">, "seq"> => ({
    runId: run.runId,
    taskId: formatTaskId(task),
    agentId: formatAgentId({ name: agent }),
    parentId: parent === null ? null : formatTaskId(parent),
    type: "input",
    at,
    data: { input },
  }));

const step = fc
  .record({ task: fc.nat(2), index: fc.nat(9), value: json, fails: fc.boolean() })
  .map(({ task, index, value, fails }): StepRecord => ({
    taskId: formatTaskId(task),
    address: stepAt("", index),
    kind: "step",
    name: "work",
    digest: "d",
    outcome: fails
      ? { kind: "failed", failure: { code: "internal", message: "no", details: { value } } }
      : { kind: "ok", value },
  }));

test("a decoded commit equals the commit that was encoded, for the first commit of a run and for later commits", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(0, 3),
      fc.array(step, { maxLength: 3 }),
      fc.array(event, { maxLength: 4 }),
      json,
      (number, steps, drafts, value) => {
        const events = drafts.map((draft, index) => ({ seq: 5 + index, ...draft }));
        const resolves = [{ taskId: formatTaskId(0), wait: "w", value }];
        const commit: Commit = { number, at: 50, steps, events, resolves };
        expect(through(commit)).toEqual(JSON.parse(JSON.stringify(commit)));
      },
    ),
    { numRuns: propertyRuns(500) },
  );
});

test("a commit is stored as JSON under its own member names, without its number and its time", () => {
  const rest = {
    events: [],
    tasks: [{ type: "wake", taskId: formatTaskId(1) }],
    resolves: [{ taskId: formatTaskId(0), wait: "w", value: { a: [1, "x"] } }],
    mailThrough: 4,
  } as unknown as Omit<Commit, "number" | "at">;
  expect(JSON.parse(textOf({ number: 0, at: 50, ...rest }))).toEqual(rest);
});

test("a digest that is computed late is computed when its commit is encoded", () => {
  const record: StepRecord = {
    taskId: formatTaskId(0),
    address: stepAt("", 0),
    kind: "step",
    name: "work",
    digest: { digest: (of) => of("abc") },
    outcome: { kind: "ok", value: null },
  };
  expect(through({ number: 1, at: 1, steps: [record] }).steps).toEqual([{ ...record, digest: "hash of 3" }]);
});

const text = "a long answer, ".repeat(100);
const message: AssistantMessage = { role: "assistant", content: [{ type: "text", text }] };
const usage = {
  inputTokens: 1,
  outputTokens: 2,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: null,
};
const reply: LlmReply = { message, stopReason: "stop", usage, model: { provider: "p", modelId: "m" } };

function eventAt(seq: number, draft: EventDraft): Event {
  const { runId, agentId } = run;
  return { seq, runId, taskId: formatTaskId(0), agentId, parentId: null, at: 9, ...draft };
}

function recordOf(kind: "llm" | "tool", value: unknown): StepRecord {
  return {
    taskId: formatTaskId(0),
    address: stepAt("", 0),
    kind,
    name: "main",
    digest: "d",
    outcome: { kind: "ok", value: value as JsonValue },
  };
}

test.each<[string, Commit]>([
  [
    "a message that the step of its model call holds",
    {
      number: 1,
      at: 9,
      steps: [recordOf("llm", reply)],
      events: [eventAt(5, eventDraft("message_end", { ...reply }))],
    },
  ],
  [
    "a message that equals the message of its step, but is another object",
    {
      number: 1,
      at: 9,
      steps: [recordOf("llm", structuredClone(reply))],
      events: [eventAt(5, eventDraft("message_end", { ...reply }))],
    },
  ],
  [
    "a message whose usage was corrected",
    {
      number: 1,
      at: 9,
      steps: [recordOf("llm", reply)],
      events: [eventAt(5, eventDraft("message_end", { message, usage: { ...usage, costUsd: 1 } }))],
    },
  ],
  [
    "a result that the step of its tool call holds",
    {
      number: 1,
      at: 9,
      steps: [recordOf("tool", { output: { type: "text", text }, isError: false })],
      events: [
        eventAt(
          5,
          eventDraft("tool_execution_end", {
            callId: "c",
            toolName: "t",
            result: { output: { type: "text", text }, isError: false },
            durationMs: 3,
          }),
        ),
      ],
    },
  ],
  [
    "an entry that its session holds",
    {
      number: 1,
      at: 9,
      sessions: [
        {
          type: "append",
          sessionId: run.sessionId,
          agentId: run.agentId,
          visibility: "hidden",
          entry: {
            type: "message",
            id: "e",
            parentId: null,
            at: 9,
            runId: run.runId,
            taskId: formatTaskId(0),
            message: userMessage(text),
          },
        },
      ],
      steps: [recordOf("tool", text)],
    },
  ],
])("the commit codec stores %s once and restores it", (_what, commit) => {
  const body = textOf(commit);
  expect(body.split("a long answer, ").length - 1).toBe(100);
  const back = through(commit);
  expect(back).toEqual(commit);
  expect(back.events?.map(canonicalJson)).toEqual(commit.events?.map(canonicalJson));
});

test("the commit codec stores a message in its event when no step of the commit has the same message", () => {
  const other = { ...reply, message: { ...message, content: [] } };
  const events = [eventAt(5, eventDraft("message_end", { ...reply }))];
  for (const steps of [[recordOf("llm", other)], [recordOf("tool", reply)], []]) {
    const commit: Commit = { number: 1, at: 9, steps, events };
    expect(through(commit).events).toEqual(events);
  }
});

test("the commit codec restores ledger commands and opened steps unchanged, for the root task and for children", () => {
  const label = { agentId: run.agentId, provider: "p", modelId: "m" };
  const [root, child] = [formatTaskId(0), formatTaskId(1)];
  const reserve = {
    type: "reserve",
    id: "t0 3 1",
    taskId: root,
    attempt: 1,
    input: { tokens: 5, costUsd: 0.25 },
    output: { maxTokens: 9, usdPerToken: null },
    turns: 1,
    label,
  } as const;
  const commit: Commit = {
    number: 1,
    at: 9,
    opens: [
      { taskId: root, address: stepAt("", 3), seq: 7 },
      { taskId: child, address: stepAt("", 0), seq: 8 },
    ],
    ledger: [
      reserve,
      { ...reserve, taskId: child },
      { ...reserve, label: { ...label, agentId: formatAgentId({ name: "reader" }) } },
      { ...reserve, output: { ...reserve.output, minTokens: 2 } },
      { type: "reserve", id: "bare", taskId: root, attempt: 2, input: reserve.input, output: reserve.output },
      { ...reserve, day: "2026-11-16" },
      { ...reserve, day: "2026-11-16", taskId: child },
      { type: "settle", id: "t0 3 1", tokens: 15, costUsd: null },
      { type: "settle", id: "t0 3 1", tokens: 15, costUsd: 0.5, outputTokens: 5, cachedTokens: 3 },
      { type: "lose", id: "t0 3 2" },
      { type: "close", taskId: child },
    ],
  };
  expect(through(commit)).toEqual(commit);
});

test("the commit codec stores tool_execution_start as the position of its call in the model's message", () => {
  const call = (callId: string, input: string) =>
    ({ type: "tool_call", callId, toolName: "t", input: { input } }) as const;
  const asking = { ...message, content: [...message.content, call("a", "one input"), call("a", "another")] };
  const start = (seq: number, input: string): Event =>
    eventAt(seq, eventDraft("tool_execution_start", { callId: "a", toolName: "t", input: { input } }));
  const commit: Commit = {
    number: 1,
    at: 9,
    steps: [recordOf("llm", { ...reply, message: asking })],
    events: [start(5, "another"), start(6, "one input"), start(7, "edited")],
  };
  const body = textOf(commit);
  expect(["one input", "another", "edited"].map((input) => body.split(input).length - 1)).toEqual([1, 1, 1]);
  expect(through(commit)).toEqual(commit);
  const astray = body.replace('"tool_execution_start",0,2', '"tool_execution_start",0,0');
  expect(() => commitOf(astray, { ...run, number: 1, at: 9, nextEvent: 8 }, () => [])).toThrow(SyntaxError);
});

test("the commit codec stores events of a turn without member names, and restores additional or missing members", () => {
  const model = { provider: "p", modelId: "m" };
  const result = { output: { type: "text", text: "x" }, isError: false } as const;
  const call = { callId: "c", toolName: "t", result, durationMs: 3 };
  const drafts: EventDraft[] = [
    eventDraft("turn_start", { turn: 2 }),
    eventDraft("message_start", { role: "assistant", attempt: 1, model }),
    eventDraft("message_start", { role: "assistant", attempt: 1, model, modelRole: "judge" }),
    eventDraft("message_start", { role: "assistant", attempt: 1 }),
    eventDraft("message_end", { ...reply, durationMs: 5 }),
    eventDraft("message_end", { ...reply }),
    eventDraft("tool_execution_end", { ...call, status: "ok" }),
    eventDraft("tool_execution_end", { ...call, status: "ok", metadata: { a: 1 } }),
    eventDraft("tool_execution_end", { ...call, status: "ok", result: { ...result, isError: true } }),
    eventDraft("turn_end", { turn: 2, stopReason: "stop", toolCalls: 0 }),
    { type: "turn_end", data: { turn: 2, stopReason: "stop", toolCalls: 0, more: true } } as EventDraft,
  ];
  const events = drafts.map((draft, index) => eventAt(5 + index, draft));
  const commit: Commit = {
    number: 1,
    at: 9,
    steps: [recordOf("llm", reply), recordOf("tool", result)],
    events,
  };
  const body = textOf(commit);
  expect(body).toContain('["turn_start",2],["message_start","assistant",1,');
  expect(body.split("toolCalls").length - 1).toBe(1);
  expect(through(commit)).toEqual(commit);
});

test("the commit codec restores the value of a model call step unchanged, whatever its shape", () => {
  const values = [
    reply,
    { ...reply, more: 1 },
    { ...reply, usage: { ...usage, costUsd: 0.5 } },
    { message },
    [reply],
    [],
    null,
    "x",
  ];
  for (const value of values) {
    const commit: Commit = { number: 1, at: 9, steps: [recordOf("llm", value)] };
    expect(through(commit)).toEqual(commit);
  }
  expect(textOf({ number: 1, at: 9, steps: [recordOf("llm", reply)] })).not.toContain("inputTokens");
});

test("the commit codec stores successive session entries as one reference, for any number of entries", () => {
  const { runId, sessionId, agentId } = run;
  const append = (index: number): SessionChange => ({
    type: "append",
    sessionId,
    agentId,
    visibility: "visible",
    entry: {
      type: "message",
      id: index === 0 ? runId : `${runId}/t0/${index}`,
      parentId: index === 0 ? null : index === 1 ? runId : `${runId}/t0/${index - 1}`,
      at: index,
      runId,
      taskId: formatTaskId(0),
      message: userMessage(`${index}`),
    },
  });
  const sessions = Array.from({ length: 600 }, (_, index) => append(index));
  const commit: Commit = { number: 1, at: 9, sessions: [...sessions, { type: "reveal", sessionId, runId }] };
  expect(textOf(commit).length).toBeLessThan(400);
  expect(through(commit)).toEqual(commit);
});

test("a decoded commit leaves out an entry that was removed from its session", () => {
  const entry = {
    type: "session_info",
    id: "e",
    parentId: null,
    at: 9,
    runId: null,
    taskId: null,
    name: "n",
  } as const;
  const { sessionId, agentId } = run;
  const commit: Commit = {
    number: 1,
    at: 9,
    sessions: [{ type: "append", sessionId, agentId, visibility: "visible", entry }],
  };
  const frame = { ...run, number: 1, at: 9, nextEvent: 0 };
  expect(commitOf(textOf(commit), frame, () => []).sessions).toEqual([]);
});

test("the commit codec restores an input unchanged when the session and the agent have the same long name", () => {
  const name = "customer-support-agent";
  const twins = { ...run, agentId: formatAgentId({ name }), sessionId: parseSessionId(name) };
  const [asked, said] = ["please refund order number 4711", "another rather long text"];
  const input = { asked, again: asked, said, more: said };
  const commit: Commit = {
    number: 0,
    at: 1,
    resolves: [{ taskId: formatTaskId(0), wait: name, value: input }],
  };
  const frame = { ...twins, number: 0, at: 1, nextEvent: 0 };
  const back = commitOf(textOf(commit, twins), frame, () => []);
  expect(JSON.stringify(back.resolves)).toBe(JSON.stringify(commit.resolves));
});

test("the commit codec keeps the order of members in a user's value, even if it looks like a record of the runtime", () => {
  const limits = { deadlineMs: null, maxTurns: null, maxCostUsd: null, maxTokens: null };
  const commit: Commit = {
    number: 0,
    at: 1,
    resolves: [{ taskId: formatTaskId(0), wait: "w", value: { limits } }],
  };
  expect(JSON.stringify(through(commit).resolves)).toBe(JSON.stringify(commit.resolves));
});
