import { expect, it } from "vitest";
import {
  eventDraft,
  Fault,
  noUsage,
  Transcript,
  userMessage,
  type Architecture,
  type EventDraft,
  type LlmRequest,
  type EmittableEvent,
  type Turn,
} from "../../../src/kernel/index.ts";
import { Agent } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, setUp, simpleTool } from "../runtime-setup.ts";

const request: LlmRequest = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 100 };
const decision = { decision: "approved", by: "alice" } as const;
const runEnd = eventDraft("run_end", {
  status: "completed",
  usage: noUsage,
  costUsd: 0,
  turns: 0,
  lost: { tokens: 0, costUsd: 0 },
});
/** Drafts that code may not emit: events of the runtime, and values that are not events. */
const refusedDrafts: readonly EventDraft[] = [
  runEnd,
  eventDraft("approval_decision", { approvalId: "t0/0/x", decision }),
  eventDraft("budget_top_up", { taskId: "t0" as never, add: { maxTokens: 1 }, by: "alice" }),
  eventDraft("message_end", { message: userMessage("forged") }),
  { type: "made_up", data: {} } as never,
  {} as never,
  null as never,
  undefined as never,
  "run_end" as never,
];
const agentEnd = eventDraft("agent_end", {
  status: "completed",
  output: "",
  turns: 0,
  usage: noUsage,
  interruptionReason: null,
});
const note = eventDraft("architecture_event", { architecture: "own", name: "own.seen", data: {} });

/** The type already refuses the drafts above, so the tests cast them. */
type Emit = (event: EmittableEvent) => void;

it("E1: emitEvent() refuses events of the runtime at every place where user code can call it", async () => {
  const { runtime, events } = await setUp({ unknownPrice: "ignore" });
  const refused = new Map<string, string[]>();
  const tryAll = (place: string, emit: Emit): void => {
    if (refused.has(place)) return;
    const faults: string[] = [];
    refused.set(place, faults);
    for (const draft of [...refusedDrafts, agentEnd])
      try {
        emit(draft as EmittableEvent);
      } catch (error) {
        faults.push(Fault.from(error).code);
      }
    emit(note);
  };
  const look = simpleTool({
    name: "look",
    execute: async (_input, { ctx }) => {
      tryAll("tool", (draft) => ctx.emitEvent(draft));
      return { output: { type: "text", text: "seen" }, isError: false };
    },
  });
  const worker = agent(
    "worker",
    async (ctx) => {
      tryAll("agent", (draft) => ctx.emitEvent(draft));
      await ctx.step("own", async (step) => {
        tryAll("step", (draft) => step.ctx.emitEvent(draft));
        return null;
      });
      await ctx.parallel({ one: async (branch) => tryAll("branch", (draft) => branch.emitEvent(draft)) });
      await ctx.llm(request);
      await ctx.tool({ callId: "c", toolName: "look", input: {} });
    },
    {
      models: { main: scriptedModel(["hello"]) },
      tools: [look],
      callPath: {
        model: {
          around: {
            process: async (context, next) => {
              tryAll("chat layer", (draft) => context.emitEvent(draft));
              await next();
            },
          },
        },
        tool: {
          before: [
            { name: "gate", decide: (call) => (tryAll("gate", (draft) => call.emitEvent(draft)), undefined) },
          ],
          around: {
            process: async (context, next) => {
              tryAll("function layer", (draft) => context.emitEvent(draft));
              await next();
            },
          },
        },
        observer: {
          observe: (event, task) => {
            if (event.type === "task_start") tryAll("observer", (draft) => task.emitEvent(draft));
          },
          settled: async () => undefined,
        },
      },
    },
  );
  const run = await runtime.submit(worker, null);
  expect((await run.result()).status).toBe("completed");
  const places = [
    "agent",
    "step",
    "branch",
    "chat layer",
    "function layer",
    "gate",
    "tool",
    "observer",
  ].toSorted();
  expect([...refused.keys()].toSorted()).toEqual(places);
  for (const faults of refused.values())
    expect(faults).toEqual([...refusedDrafts, agentEnd].map(() => "invalid_argument"));
  const log = await events(run.runId);
  expect(log.filter(({ type }) => type === "run_end")).toHaveLength(1);
  expect(log.at(-1)?.type).toBe("run_end");
  for (const type of ["approval_decision", "budget_top_up", "agent_end", "made_up"])
    expect(log.filter((event) => event.type === type)).toEqual([]);
  expect(log.filter(({ type }) => type === "architecture_event")).toHaveLength(places.length);
});

it("emitEvent() accepts agent_end only together with the turn of the same invocation", async () => {
  const { runtime, events } = await setUp();
  const usedTurns: Turn[] = [];
  const noTurns = [null, undefined, "t0", 7] as unknown as readonly Turn[];
  const worker = agent("worker", async (ctx) => {
    const turn = await ctx.turn(({ input }) => ({ input, instructions: "", tools: [] }));
    for (const other of [...usedTurns, { ...turn }, ...noTurns])
      expect(() => ctx.emitEvent(agentEnd, other)).toThrow(/^only the agent may emit agent_end/u);
    usedTurns.push(turn);
    expect(() => ctx.emitEvent(runEnd as EventDraft as EmittableEvent, turn)).toThrow(
      /^code may not emit "run_end"\. Events that code may emit: architecture_event, /u,
    );
    ctx.emitEvent(agentEnd, turn);
  });
  for (let round = 0; round < 2; round++) {
    const run = await runtime.submit(worker, null);
    expect(await run.result()).toMatchObject({ status: "completed", error: null });
    expect((await events(run.runId)).filter(({ type }) => type === "agent_end")).toHaveLength(1);
  }
});

it("J10: emitEvent() in chat middleware refuses data that is not JSON", async () => {
  const { runtime } = await setUp({ unknownPrice: "ignore" });
  const faults: unknown[] = [];
  const chat = {
    process: async (context: { emitEvent: Emit }, next: () => Promise<void>) => {
      const data = { at: new Date(0) } as never;
      try {
        context.emitEvent(eventDraft("architecture_event", { architecture: "own", name: "own.odd", data }));
      } catch (error) {
        faults.push(error);
      }
      await next();
    },
  };
  const models = { main: scriptedModel(["hello"]) };
  const worker = agent("worker", async (ctx) => void (await ctx.llm(request)), {
    models,
    callPath: { model: { around: chat } },
  });
  expect((await (await runtime.submit(worker, null)).result()).status).toBe("completed");
  expect(faults).toMatchObject([{ code: "not_json" }]);
});

it.each([
  [undefined, "undefined"],
  [null, "null"],
  ["turn_start", '"turn_start"'],
])(
  "a run whose architecture yields %j as an event fails with a message that names the value",
  async (value, shown) => {
    const architecture: Architecture = {
      name: "own",
      requiresModel: false,
      declaredWorkers: () => ({}),
      run: async function* () {
        yield value as never;
      },
    };
    const { runtime } = await setUp();
    const run = await runtime.submit(new Agent({ name: "a", architecture }), "Go.");
    expect((await run.result()).error).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(
        `cannot emit ${shown}: emitEvent takes, and an architecture yields, an event { type, data }`,
      ) as unknown,
    });
  },
);
