import { describe, expect, it } from "vitest";
import { HookManager, type HookFailure } from "../../../../src/agents/index.ts";
import {
  eventDraft,
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  HookEvent,
  noUsage,
  type Event,
  type EventData,
  type EventDraft,
  type EventType,
  type JsonValue,
  type ObservedTask,
} from "../../../../src/kernel/index.ts";
import { FakeClock } from "../../../../src/testing/index.ts";
import { gate, settle } from "../../../runtime/runtime-setup.ts";

const [runId, taskId, agentId] = [formatRunId("1"), formatTaskId(0), formatAgentId({ name: "scout" })];
const sessionId = formatSessionId("1");
const base = { agentName: "scout", agentId, runId, taskId, sessionId, at: 7 };
const unlimited = { maxTokens: null, maxCostUsd: null, maxTurns: null, deadlineMs: null };

function event<Type extends EventType>(type: Type, data: EventData[Type], run = runId): Event {
  return {
    seq: 0,
    runId: run,
    taskId,
    agentId,
    parentId: null,
    at: 7,
    ...eventDraft(type, data),
  } as unknown as Event;
}

function setUp(
  options: ConstructorParameters<typeof HookManager>[0] = {},
  input: JsonValue = { question: "where" },
) {
  const [hooks, clock, told] = [new HookManager(options), new FakeClock(), [] as EventDraft[]];
  const task: ObservedTask = {
    facts: { tenantId: null, userId: null, sessionId, runId, metadata: {}, context: undefined },
    input,
    sharesPrompt: false,
    clock,
    get extensionPort(): never {
      throw new Error("hooks use no extension port");
    },
    emitEvent: (draft) => told.push(draft),
  };
  const show = (...events: readonly Event[]): void => events.forEach((each) => hooks.observe(each, task));
  return { hooks, clock, told, show };
}

const usage = { ...noUsage, inputTokens: 5, outputTokens: 2 };
const model = { provider: "acme", modelId: "m" };
const message = { role: "assistant", content: [] } as const;
const turnEnd = event("turn_end", { turn: 1, stopReason: "stop", toolCalls: 0 });

it.each<[HookEvent, Event, object]>([
  ["run_start", event("task_start", { priority: 2, budget: unlimited }), { input: { question: "where" } }],
  ["run_end", event("task_end", { status: "completed", usage }), { status: "completed", usage }],
  [
    "run_end",
    event("task_end", { status: "failed", usage, failure: { code: "tool_failed", message: "no" } }),
    { status: "failed", usage, error: { code: "tool_failed", message: "no" } },
  ],
  ["step_start", event("turn_start", { turn: 3 }), { step: 3 }],
  ["step_end", event("turn_end", { turn: 3, stopReason: "stop", toolCalls: 0 }), { step: 3 }],
  ["llm_start", event("message_start", { role: "assistant", attempt: 1, model }), { ...model, attempt: 1 }],
  [
    "llm_end",
    event("message_end", { message, model, usage, stopReason: "stop", durationMs: 4 }),
    { ...model, usage, stopReason: "stop", durationMs: 4 },
  ],
  [
    "tool_start",
    event("tool_execution_start", { callId: "c", toolName: "look", input: [1] }),
    { callId: "c", toolName: "look", input: [1] },
  ],
  [
    "tool_end",
    event("tool_execution_end", {
      callId: "c",
      toolName: "look",
      result: { output: { type: "text", text: "" }, isError: true },
      durationMs: 9,
      status: "denied",
    }),
    { callId: "c", toolName: "look", status: "denied", durationMs: 9 },
  ],
  [
    "handoff",
    event("handoff", { target: agentId, childTaskId: formatTaskId(1), task: "dig" }),
    { target: agentId, childTaskId: "t1", task: "dig" },
  ],
  ["flow_start", event("flow_start", { flow: "f" }), { flow: "f" }],
  ["flow_end", event("flow_end", { flow: "f", status: "completed" }), { flow: "f", status: "completed" }],
])("a callback for %s receives the event's data", async (hook, told, payload) => {
  const { hooks, show } = setUp();
  const seen: unknown[] = [];
  hooks.on(hook, (each) => {
    seen.push(each);
  });
  show(told);
  await hooks.settled(runId);
  expect(seen).toEqual([{ ...base, ...payload }]);
});

describe("the hook guardrail_trip", () => {
  const tripped = (details: Record<string, string>): Event =>
    event("task_end", {
      status: "guardrail_tripped",
      failure: { code: "guardrail_tripped", message: "no cards", details },
    });
  const watch = async (...events: readonly Event[]): Promise<unknown[]> => {
    const { hooks, show } = setUp();
    const seen: unknown[] = [];
    hooks.on(HookEvent.GUARDRAIL_TRIP, ({ guardrail, reason }) => {
      seen.push(`${guardrail}: ${reason}`);
    });
    show(...events);
    await hooks.settled(runId);
    return seen;
  };
  const decision = (what: "warn" | "block" | "halt", stage: "tool_call" | "output" = "tool_call"): Event =>
    event("guardrail_decision", { guardrail: "pii", stage, decision: what, reason: "a card" });

  it("guardrail_trip fires once for a task that a guardrail or middleware stopped", async () => {
    expect(await watch(tripped({ by: "audit" }))).toEqual(["audit: no cards"]);
    expect(await watch(decision("halt"), tripped({ by: "pii" }))).toEqual(["pii: a card"]);
    const interruption = { status: "guardrail_tripped", reason: "withheld" } as const;
    const withheld = event("task_end", { status: "guardrail_tripped", interruption });
    expect(await watch(decision("block", "output"), withheld)).toEqual(["pii: a card"]);
  });

  it("guardrail_trip does not fire for a warning or a blocked call, because neither stops the task", async () => {
    const end = event("task_end", { status: "completed" });
    expect(await watch(decision("warn"), decision("block"), end)).toEqual([]);
  });
});

it("R13: the hook run_end fires once per task, even if the task is resumed or topped up", async () => {
  const { hooks, show } = setUp();
  const seen: string[] = [];
  hooks.on(HookEvent.RUN_END, ({ status }) => {
    seen.push(status);
  });
  const failure = { code: "budget_exhausted", message: "" } as const;
  show(
    event("task_end", { status: "budget_exhausted", failure }),
    event("task_end", { status: "completed", again: true }),
  );
  await hooks.settled(runId);
  expect(seen).toEqual(["budget_exhausted"]);
});

it("different hook callbacks run concurrently, and each callback receives its events in order", async () => {
  const { hooks, show } = setUp();
  const [slow, seen] = [gate(), [] as string[]];
  hooks.on(HookEvent.STEP_START, async ({ step }) => {
    if (step === 1) await slow.promise;
    seen.push(`slow ${step}`);
  });
  hooks.on(HookEvent.STEP_START, ({ step }) => {
    seen.push(`quick ${step}`);
  });
  show(event("turn_start", { turn: 1 }), event("turn_start", { turn: 2 }));
  expect(seen).toEqual([]);
  await settle();
  expect(seen).toEqual(["quick 1", "quick 2"]);
  slow.resolve();
  await hooks.settled(runId);
  expect(seen).toEqual(["quick 1", "quick 2", "slow 1", "slow 2"]);
});

it("a slow hook callback of one run does not delay other runs", async () => {
  const { hooks, show } = setUp();
  const [slow, other, seen] = [gate(), formatRunId("2"), [] as string[]];
  hooks.on(HookEvent.STEP_START, async (payload) => {
    if (payload.runId === runId) await slow.promise;
    seen.push(payload.runId);
  });
  show(event("turn_start", { turn: 1 }), event("turn_start", { turn: 1 }, other));
  await hooks.settled(other);
  expect(seen).toEqual([other]);
  slow.resolve();
  await hooks.settled(runId);
});

it("S4: an error thrown by a hook callback is recorded as hook_error, and later events still reach the callback", async () => {
  const failures: HookFailure[] = [];
  const { hooks, show, told } = setUp({ onError: (failure) => failures.push(failure) });
  const seen: number[] = [];
  hooks.on(HookEvent.STEP_END, function metrics({ step }) {
    seen.push(step);
    throw new TypeError("no socket");
  });
  hooks.on(HookEvent.STEP_END, () => Promise.reject(new Error("later")));
  show(turnEnd, turnEnd);
  await hooks.settled(runId);
  expect(seen).toEqual([1, 1]);
  const errors = told.map(
    (draft) => draft.type === "hook_error" && `${draft.data.hook}: ${draft.data.failure.message}`,
  );
  expect(new Set(errors)).toEqual(new Set(["step_end metrics: no socket", "step_end: later"]));
  expect(errors).toHaveLength(4);
  expect(failures.map(({ hook, callback }) => `${hook} ${callback}`)).toContain("step_end metrics");
});

it("an error thrown by the hook onError is recorded too and does no further harm", async () => {
  const { hooks, show, told } = setUp({
    onError: () => {
      throw new Error("also broken");
    },
  });
  hooks.on(HookEvent.STEP_END, () => {
    throw new Error("broken");
  });
  show(turnEnd);
  await hooks.settled(runId);
  expect(told.map((draft) => draft.type === "hook_error" && draft.data.failure.message)).toEqual([
    "broken",
    "also broken",
  ]);
});

it("a hook callback that exceeds timeoutMs is abandoned, so that it never holds back a result forever", async () => {
  const { hooks, show, told, clock } = setUp({ timeoutMs: 500 });
  const seen: number[] = [];
  hooks.on(HookEvent.STEP_START, ({ step }) => {
    seen.push(step);
    return step === 1 ? new Promise<void>(() => {}) : undefined;
  });
  show(event("turn_start", { turn: 1 }), event("turn_start", { turn: 2 }));
  await clock.advance(499);
  expect(seen).toEqual([1]);
  await clock.advance(1);
  await hooks.settled(runId);
  expect(seen).toEqual([1, 2]);
  expect(told).toMatchObject([{ type: "hook_error", data: { hook: "step_start" } }]);
});

it("a hook callback that times out twice in a row skips the events queued meanwhile and receives later events", async () => {
  const { hooks, show, told, clock } = setUp({ timeoutMs: 500 });
  const seen: number[] = [];
  hooks.on(HookEvent.STEP_START, ({ step }) => {
    seen.push(step);
    return step < 50 ? new Promise<void>(() => {}) : undefined;
  });
  show(...Array.from({ length: 20 }, (_, index) => event("turn_start", { turn: index + 1 })));
  await clock.advance(500);
  await clock.advance(500);
  await hooks.settled(runId);
  expect(seen).toEqual([1, 2]);
  expect(told).toHaveLength(2);
  show(event("turn_start", { turn: 50 }));
  await hooks.settled(runId);
  expect(seen).toEqual([1, 2, 50]);
});

it("a hook callback receives a frozen copy, and its changes reach neither the run nor other callbacks", async () => {
  const { hooks, show, told } = setUp();
  const input = { deep: { list: [1] } };
  hooks.on(HookEvent.TOOL_START, (payload) => {
    const { deep } = payload.input as typeof input;
    expect([Object.isFrozen(payload), Object.isFrozen(deep.list)]).toEqual([true, true]);
    deep.list.push(2);
  });
  show(event("tool_execution_start", { callId: "c", toolName: "look", input }));
  await hooks.settled(runId);
  expect(Object.isFrozen(input.deep)).toBe(false);
  expect(input.deep.list).toEqual([1]);
  expect(told).toMatchObject([
    { data: { failure: { message: expect.stringContaining("not extensible") as string } } },
  ]);
});

it("the hook run_start receives a deep copy of the task's input, even if the input is only shallowly frozen", async () => {
  const amount = { of: 10 };
  const { hooks, show, told } = setUp({}, Object.freeze({ amount }));
  hooks.on(HookEvent.RUN_START, ({ input }) => {
    (input as { readonly amount: typeof amount }).amount.of = 1_000;
  });
  show(event("task_start", { priority: 2, budget: unlimited }));
  await hooks.settled(runId);
  expect(amount).toEqual({ of: 10 });
  expect(told).toHaveLength(1);
});

it("a hook callback that was removed receives neither queued nor later events", async () => {
  const { hooks, show } = setUp();
  const seen: number[] = [];
  const off = hooks.on(HookEvent.STEP_START, ({ step }) => {
    seen.push(step);
  });
  show(event("turn_start", { turn: 1 }));
  await hooks.settled(runId);
  show(event("turn_start", { turn: 2 }));
  off();
  show(event("turn_start", { turn: 3 }));
  await settle();
  expect(seen).toEqual([1]);
});

it("HookManager refuses unknown hooks, callbacks that are no functions, and timeoutMs: 0", () => {
  const { hooks } = setUp();
  expect(() => hooks.on("run_begin" as HookEvent, () => undefined)).toThrow("run_begin");
  expect(() => hooks.on(HookEvent.RUN_END, 5 as never)).toThrow("expected a function");
  expect(() => new HookManager({ timeoutMs: 0 })).toThrow("invalid timeoutMs 0");
});
