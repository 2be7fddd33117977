import { describe, expect, it } from "vitest";
import { Agent, OrchestratorAgent, tool, type AgentOptions } from "../../../src/entries/index.ts";
import {
  parseSessionId,
  type HistoryProvider,
  type Model,
  type RunHandle,
  type SubmitOptions,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type FakeClock } from "../../../src/testing/index.ts";
import { settle, until } from "../../runtime/runtime-setup.ts";
import { company, type Company } from "../company.ts";

/** Code that starts and never settles, even if its signal aborts. */
class Hang {
  begun = 0;
  readonly forever = (): Promise<never> => {
    this.begun++;
    return new Promise(() => {});
  };
}

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "rain",
});
const looks = { text: "Let me see.", toolCalls: [{ name: "look", input: {} }] };

function hangingTool({ forever }: Hang) {
  return tool({ name: "look", description: "Looks", inputSchema: { type: "object" }, execute: forever });
}

function hangingModel({ forever }: Hang): Model {
  return {
    provider: "own",
    modelId: "own",
    generate: forever,
    stream: async function* () {
      yield { type: "text_delta", text: "Well" } as const;
      await forever();
    },
  };
}

function hangingHistory({ forever }: Hang, at: "read" | "append"): HistoryProvider {
  const done = async (): Promise<void> => {};
  return {
    read: at === "read" ? forever : async () => [],
    append: at === "append" ? forever : done,
    count: async () => 0,
    clearRun: done,
    clear: done,
  };
}

interface Kind {
  readonly options: (hang: Hang) => Partial<AgentOptions>;
  readonly submit?: SubmitOptions;
  /** Whether the code hangs before the agent's invocation has begun. */
  readonly unbegun?: boolean;
}

/** Places where the code of an agent may hang, by name. */
const kinds: Readonly<Record<string, Kind>> = {
  tool: { options: (hang) => ({ tools: [hangingTool(hang)] }) },
  "one tool of two": {
    options: (hang) => ({
      model: scriptedModel([{ toolCalls: [looks, { name: "see", input: {} }].map(callOf) }, "no"]),
      tools: [
        look,
        tool({ name: "see", description: "Sees", inputSchema: { type: "object" }, execute: hang.forever }),
      ],
    }),
  },
  model: { options: (hang) => ({ model: hangingModel(hang) }) },
  stream: { options: (hang) => ({ model: hangingModel(hang) }), submit: { streaming: true } },
  instructions: { options: (hang) => ({ instructions: { build: hang.forever } }), unbegun: true },
  "history.read()": { options: (hang) => ({ history: hangingHistory(hang, "read") }), unbegun: true },
  "history.append()": { options: (hang) => ({ history: hangingHistory(hang, "append") }) },
  "agent middleware": { options: (hang) => ({ middleware: [{ agent: hang.forever }] }) },
  "agent middleware after next()": {
    options: ({ forever }) => ({
      middleware: [{ agent: async (_context, next) => (await next(), forever()) }],
    }),
  },
  "chat middleware": { options: (hang) => ({ middleware: [{ chat: hang.forever }] }) },
  "chat middleware around a model": {
    options: (hang) => ({
      model: hangingModel(hang),
      middleware: [{ chat: async (_context, next) => next() }],
    }),
  },
  "function middleware": { options: (hang) => ({ middleware: [{ function: hang.forever }] }) },
  guardrail: {
    options: (hang) => ({ guardrails: [{ name: "slow", beforeCall: hang.forever }] }),
  },
  "ephemeral messages": { options: (hang) => ({ ephemeral: [{ name: "screen", messages: hang.forever }] }) },
  "stop hook": { options: (hang) => ({ stopHooks: [{ name: "slow", shouldContinue: hang.forever }] }) },
  architecture: {
    options: ({ forever }) => ({
      architecture: {
        name: "own",
        declaredWorkers: () => ({}),
        // oxlint-disable-next-line require-yield -- it hangs before it has anything to say
        async *run() {
          await forever();
        },
      },
    }),
  },
};

function callOf(each: { readonly name: string; readonly input: object } | typeof looks) {
  return "name" in each ? { name: each.name, input: {} } : { name: "look", input: {} };
}

/** Ways to stop a run, by name. */
const stops = {
  cancel: {
    status: "cancelled",
    options: {},
    submit: {},
    stop: (run: RunHandle, _clock: FakeClock) => run.cancel("enough"),
  },
  "the timeout of the run": {
    status: "deadline_exceeded",
    options: {},
    submit: { budget: { deadlineMs: 1_000 } },
    stop: (_run: RunHandle, clock: FakeClock) => clock.advance(1_001),
  },
  "the agent's deadline": {
    status: "deadline_exceeded",
    options: { budget: { deadlineMs: 1_000 } },
    submit: {},
    stop: (_run: RunHandle, clock: FakeClock) => clock.advance(1_001),
  },
} as const;

async function ends({ clock, events }: Company, run: RunHandle, graceMs: number): Promise<void> {
  await settle();
  await clock.advance(graceMs - 1);
  expect((await events(run.runId)).map(({ type }) => type)).not.toContain("run_end");
  await clock.advance(1);
  await until(async () => (await events(run.runId)).at(-1)?.type === "run_end");
}

describe.each(Object.entries(stops))(
  "a hanging run that is stopped by: %s",
  (_stop, { status, options, submit, stop }) => {
    it.each(Object.entries(kinds))(
      "C1, S1: a stopped run ends after the grace period although its code hangs in: %s",
      async (_kind, kind) => {
        const firm = await company();
        const { runtime, clock, store, errors } = firm;
        const hang = new Hang();
        const worker = new Agent({
          name: "scout",
          model: scriptedModel([looks, "It rains."]),
          tools: [look],
          ...options,
          ...kind.options(hang),
        });
        const sessionId = parseSessionId("talk");
        const run = await runtime.submit(worker, "Where?", { sessionId, ...kind.submit, ...submit });
        await until(() => hang.begun === 1);
        await stop(run, clock);
        await ends(firm, run, 5_000);
        const { result, events } = await firm.ended(run);
        expect(result.status).toBe(status);
        const types = events.map(({ type }) => type);
        // S1: the invocation is closed as usual, wherever the code hangs.
        const closing = kind.unbegun === true ? ["task_end", "run_end"] : ["settled", "task_end", "run_end"];
        expect(types.slice(-closing.length)).toEqual(closing);
        expect(types.filter((type) => type === "agent_end")).toHaveLength(kind.unbegun === true ? 0 : 1);
        const said = await store.sessions.read(sessionId);
        expect(said[0]?.entry).toMatchObject({ type: "message", message: { role: "user" } });
        const open = openCalls(
          said.map(({ entry }) => (entry.type === "message" ? entry.message : undefined)),
        );
        expect(open).toEqual([]);
        // No code of the run starts again, and no timer of the run remains.
        expect(hang.begun).toBe(1);
        expect(clock.pending).toBeLessThanOrEqual(2);
        expect(errors).toEqual([]);
        // The session accepts further runs.
        const next = new Agent({ name: "scout2", model: scriptedModel(["Hello."]) });
        const after = await firm.run(next, "And now?", { sessionId });
        expect(after.result.status).toBe("completed");
        await runtime.close();
      },
    );
  },
);

type Said = { readonly role: string; readonly content: unknown } | undefined;

/** Returns the ids of tool calls without a result. */
function openCalls(messages: readonly Said[]): readonly string[] {
  const parts = messages.flatMap((message) =>
    Array.isArray(message?.content) ? (message.content as { type: string; callId?: string }[]) : [],
  );
  const of = (type: string) => parts.flatMap((part) => (part.type === type ? [part.callId ?? ""] : []));
  const results = new Set(of("tool_result"));
  return of("tool_call").filter((callId) => !results.has(callId));
}

it("S1: a stopped batch keeps finished results and marks the abandoned call as not executed", async () => {
  const firm = await company();
  const hang = new Hang();
  const see = tool({
    name: "see",
    description: "Sees",
    inputSchema: { type: "object" },
    execute: hang.forever,
  });
  const calls = [
    { name: "look", input: {}, callId: "1" },
    { name: "see", input: {}, callId: "2" },
  ];
  const worker = new Agent({
    name: "scout",
    model: scriptedModel([{ toolCalls: calls }, "no"]),
    tools: [look, see],
  });
  const run = await firm.runtime.submit(worker, "Where?");
  await until(() => hang.begun === 1);
  await run.cancel("enough");
  await ends(firm, run, 5_000);
  const { sessionId } = await run.result();
  const said = await firm.store.sessions.read(sessionId);
  expect(JSON.stringify(said)).toContain('"rain"');
  expect(JSON.stringify(said)).toContain("[not executed: enough]");
  await firm.runtime.close();
});

it("H5: a run completes although the tool of a sub-agent hangs after its hand-off timed out", async () => {
  const firm = await company();
  const hang = new Hang();
  const kid = new Agent({
    name: "kid",
    model: scriptedModel([looks, "no"]),
    tools: [hangingTool(hang)],
  });
  const lead = new OrchestratorAgent({
    name: "lead",
    model: scriptedModel([
      { toolCalls: [{ name: "handoff_kid", input: { task: "look" } }] },
      "It is unknown.",
    ]),
    subAgents: [{ agent: kid, askTimeoutMs: 1_000 }],
  });
  const run = await firm.runtime.submit(lead, "Where?");
  await until(() => hang.begun === 1);
  await settle();
  await firm.clock.advance(1_000);
  await ends(firm, run, 5_000);
  const { result, events } = await firm.ended(run);
  expect(result).toMatchObject({ status: "completed", output: "It is unknown." });
  const end = (taskId: string) =>
    events.find((event) => event.type === "task_end" && event.taskId === taskId)?.data;
  expect(end("t1")).toMatchObject({ status: "cancelled" });
  await firm.runtime.close();
});

it("C1: the timeout of a run ends the run and its sub-agent although the sub-agent's tool hangs", async () => {
  const firm = await company();
  const hang = new Hang();
  const kid = new Agent({ name: "kid", model: scriptedModel([looks, "no"]), tools: [hangingTool(hang)] });
  const lead = new OrchestratorAgent({
    name: "lead",
    model: scriptedModel([{ toolCalls: [{ name: "handoff_kid", input: { task: "look" } }] }, "no"]),
    subAgents: [{ agent: kid }],
  });
  const run = await lead.submit("Where?", { runtime: firm.runtime, timeoutMs: 1_000 });
  await until(() => hang.begun === 1);
  await settle();
  await firm.clock.advance(1_001);
  await ends(firm, run, 5_000);
  expect((await run.result()).status).toBe("deadline_exceeded");
  await firm.runtime.close();
});
