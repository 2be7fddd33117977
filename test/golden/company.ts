import { setImmediate } from "node:timers/promises";
import {
  Agent,
  END,
  HistoryRetention,
  START,
  tool,
  Graph,
  type RuntimeOptions,
} from "../../src/entries/index.ts";
import {
  formatAgentId,
  messageText,
  parseRunId,
  parseSessionId,
  Fault,
  toolCallsOf,
  Transcript,
  userMessage,
  type HostedAgent,
  type Event,
  type JsonValue,
  type ModelRequest,
  type PriceTable,
  type RunContext,
  type RunHandle,
  type RunId,
  type Runtime,
} from "../../src/kernel/index.ts";
import {
  FatalError,
  object,
  update,
  workflow,
  type HostedObject,
  type Workflow,
} from "../../src/entries/workflow.ts";
import { scriptedModel, sequentialIds, type FakeClock, type ScriptedReply } from "../../src/testing/index.ts";

/** A run that is started, stops at some point, and is resumed from its file. */
interface GoldenRun {
  readonly begin: (desk: Desk) => Promise<RunHandle>;
  /**
   * Returns whether this is the last event before the file is saved. If absent, the run ends before the file is saved.
   */
  readonly rests?: (event: Event) => boolean;
  /** Resumes the run from the file, also if the run has ended. */
  readonly goOn: (handle: RunHandle, desk: Desk) => Promise<RunHandle>;
  /** The first format whose file contains the run. Default: the run is in every file. */
  readonly since?: number;
}

export interface Desk {
  readonly runtime: Runtime;
  readonly clock: FakeClock;
  readonly company: Company;
}

/** The agents of the golden runs and the requests that their models received. */
export interface Company {
  readonly asked: string[];
  readonly clerk: Agent;
  readonly beggar: Agent;
  readonly lead: HostedAgent;
  readonly panel: Graph;
  readonly sleeper: HostedAgent;
  readonly durable: Workflow<{ cents: number }>;
  readonly retried: Workflow;
  readonly updated: Workflow;
  readonly undone: Workflow;
  readonly called: Workflow;
  readonly calling: Workflow;
  readonly patched: Workflow;
  readonly promised: Workflow;
  readonly tally: HostedObject;
  readonly outsider: HostedAgent;
}

const hourMs = 3_600_000;
const add = update("add", { input: { type: "integer" }, output: { type: "integer" } } as const);
const prices: PriceTable = { find: () => ({ inputUsd: 1e-6, outputUsd: 4e-6 }) };

/** Runtime options with a fixed clock and counting ids, so that a file is the same each time it is generated. */
export function goldenOptions(clock: FakeClock, prefix: string): RuntimeOptions {
  const random = { next: () => 0.25 };
  return { clock, prices, ids: sequentialIds(prefix), random, workerId: prefix, host: "golden" };
}

export function company(): Company {
  const asked: string[] = [];
  const look = tool({
    name: "look",
    description: "The weather in a town",
    inputSchema: { type: "object", properties: { town: { type: "string" } } },
    execute: (input) => `rain in ${JSON.stringify(input)}`,
  });
  const send = tool({
    name: "send",
    description: "Sends a letter",
    inputSchema: { type: "object" },
    needsApproval: true,
    execute: () => "sent",
  });
  /** Answers that depend on the request alone. */
  const answer = ({ messages }: ModelRequest): ScriptedReply => {
    const texts = messages.map((message) => `${message.role}: ${messageText(message)}`);
    asked.push(texts.join("\n"));
    const question = messages.findLast(({ role }) => role === "user");
    const text = question === undefined ? "" : messageText(question);
    const usage = { inputTokens: 100, outputTokens: 10 };
    if (messages.at(-1)?.role === "user" && text.includes("weather"))
      return { toolCalls: [call("look", { town: "Sens" }), call("look", { town: "Troyes" })], usage };
    if (messages.at(-1)?.role === "user" && text.includes("letter"))
      return { text: "I will.", toolCalls: [call("send", { to: "Ada" })], usage };
    return { text: `the answer to ${text} after ${texts.length} messages`, usage };
  };
  const model = scriptedModel(Array.from({ length: 100 }, () => answer));
  const clerk = new Agent({ name: "clerk", model, tools: [look, send], instructions: "Be brief." });
  const beggar = new Agent({
    name: "beggar",
    model,
    tools: [look],
    instructions: "Be brief.",
    budget: { maxTurns: 1 },
    onBudget: "ask",
  });
  const helper: HostedAgent = {
    id: formatAgentId({ name: "helper" }),
    models: { main: model },
    run: async (ctx) => {
      // Long enough that the parent's wait is always recorded, each time a file is generated.
      await ctx.step("breathe", async () => {
        for (let round = 0; round < 20; round++) await setImmediate();
        return null;
      });
      const { message } = await ctx.llm({ transcript: Transcript.of([userMessage("What is it?")]) });
      return messageText(message);
    },
  };
  const lead: HostedAgent = {
    id: formatAgentId({ name: "lead" }),
    subAgents: [helper],
    models: { main: model },
    tools: [look, send],
    run: (ctx) => everyStep(ctx, helper),
  };
  const patient: HostedAgent = {
    id: formatAgentId({ name: "patient" }),
    run: async (ctx) => (await ctx.waitForSignal("go")) ?? null,
  };
  const panel = new Graph({
    name: "panel",
    nodes: { patient, clerk, both: (input) => ({ both: input }) },
    edges: [
      [START, "patient"],
      [START, "clerk"],
      ["patient", "both"],
      ["clerk", "both"],
      ["both", END],
    ],
    // The two tasks share one seat besides the root's, so the second waits for it.
    spawnBudget: { maxAgents: 2 },
  });
  const sleeper: HostedAgent = {
    id: formatAgentId({ name: "sleeper" }),
    run: async (ctx) => {
      const from = await ctx.now();
      await ctx.sleepUntil(from + hourMs);
      return { slept: (await ctx.now()) - from };
    },
  };
  const durable = workflow(
    "durable",
    {
      input: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] } as const,
      agents: [clerk],
    },
    async (ctx, { cents }) => {
      const reserved = await ctx.step("reserve", ({ idempotencyKey }) => ({ cents, idempotencyKey }));
      const said = await ctx.agent(clerk, "Is it paid?");
      const paid = await ctx.waitForSignal("paid");
      return { reserved, said, paid: paid ?? null };
    },
  );
  const retried = workflow("retried", async (ctx) => {
    const retry = { baseDelayMs: hourMs, maxDelayMs: hourMs, maxMs: null };
    return ctx.step(
      "flaky",
      ({ attempt, idempotencyKey }) => {
        if (attempt < 3) throw new Error(`attempt ${attempt} failed`);
        return { attempt, idempotencyKey };
      },
      { retry },
    );
  });
  const updated = workflow("updated", async (ctx) => {
    const sums: number[] = [];
    while (sums.length < 2) {
      ctx.publish("sums", sums);
      const handled = await ctx.handleUpdate(add, (by) => ctx.step("add", () => by + 1));
      if (handled?.status === "completed") sums.push(handled.reply);
    }
    return sums;
  });
  const undone = workflow("undone", async (ctx) => {
    const retry = { baseDelayMs: hourMs, maxDelayMs: hourMs, maxMs: null };
    for (const name of ["first", "second"]) {
      await ctx.step(name, () => name);
      await ctx.compensate(
        `undo ${name}`,
        ({ attempt }) => {
          if (attempt === 1) throw new Error("not yet");
        },
        { retry, timeoutMs: 24 * hourMs },
      );
    }
    throw new FatalError("declined");
  });
  const called = workflow("called", async (ctx) => ({ called: await ctx.step("work", () => "done") }));
  const calling = workflow("calling", { agents: [called] }, async (ctx) => {
    const run = await ctx.start(called, null, { id: goldenId("called"), delayMs: hourMs });
    const mapped = await ctx.map([1, 2], (item, branch) =>
      branch.step(
        "item",
        () => {
          if (item === 2) throw new Error("two");
          return item;
        },
        { retry: false },
      ),
    );
    return { mapped: mapped.map(({ status }) => status), output: await run.result() };
  });
  const patched = workflow("patched", async (ctx) => {
    const isNew = ctx.patched("new");
    await ctx.step(isNew ? "new" : "old", () => isNew);
    await ctx.sleep(hourMs);
    return [isNew, ctx.patched("new"), ctx.patched("newer")];
  });
  const promised = workflow("promised", async (ctx) => {
    const { id, promise } = ctx.promise();
    ctx.publish("id", id);
    return [await promise.result(), await promise.result()];
  });
  const outsider: HostedAgent = {
    id: formatAgentId({ name: "outsider" }),
    run: (ctx) =>
      ctx.attempt(
        "work",
        async (attempt) => {
          const write = { callId: "c1", toolName: "write", input: { path: "a.txt" } };
          if (attempt.number === 1) {
            await attempt.keep("session 1");
            attempt.tell({ type: "text", text: "I write." });
            attempt.tell({ type: "call_start", ...write, view: { title: "Write a.txt", kind: "edit" } });
          }
          const { decision } = await attempt.permit(write);
          return [decision, ...attempt.earlier.kept];
        },
        { program: { name: "scribe", source: "acp", staysOnHost: true } },
      ),
  };
  const tally = object(
    "tally",
    {},
    {
      add: async (ctx, by: number) => {
        ctx.setState([ctx.state, by]);
        const more = await ctx.waitForSignal("more");
        ctx.setState([ctx.state, more ?? null]);
        return ctx.state;
      },
    },
  );
  return {
    asked,
    clerk,
    beggar,
    lead,
    panel,
    sleeper,
    durable,
    retried,
    updated,
    undone,
    called,
    calling,
    patched,
    promised,
    tally,
    outsider,
  };
}

/** Executes steps of every kind and then waits. */
async function everyStep(ctx: RunContext, helper: HostedAgent): Promise<JsonValue> {
  const facts = [await ctx.now(), await ctx.random(), await ctx.uuid()];
  const noted = await ctx.step("note", async () => ({ noted: [1, "two", null] }), { input: "a note" });
  const failed = await ctx
    .step("fail", async () => {
      throw new Error("no luck");
    })
    .catch((error: unknown) => (error as Error).message);
  const question = Transcript.of([userMessage("How is the weather?")]);
  const { message } = await ctx.llm({ transcript: question, instructions: "Look first." });
  const results = await ctx.tools(toolCallsOf(message));
  const { left, right } = await ctx.parallel({
    left: (own) => own.step("left", async () => "left"),
    right: (own) => own.step("right", async () => "right"),
  });
  const { winner } = await ctx.race({
    quick: (own) => own.step("quick", async () => "first"),
    slow: (own) => own.waitForSignal("never"),
  });
  const hired = await ctx.spawn(helper.id, null);
  const outcome = hired.kind === "spawned" ? await ctx.join(hired.handle) : null;
  const { transcript } = await ctx.compact({
    transcript: question.append(message, userMessage("And now?")),
    contextTokens: 100,
    compact: async () => [userMessage("In short: weather.")],
  });
  const word = await ctx.waitForSignal("go");
  const last = await ctx.llm({ transcript });
  return {
    facts,
    noted,
    failed,
    results: results.map(({ output }) => output as unknown as JsonValue),
    sides: [left, right, winner],
    hired: outcome?.output ?? null,
    word: word ?? null,
    last: messageText(last.message),
  };
}

function call(name: string, input: JsonValue) {
  return { name, input };
}

const conversation = parseSessionId("conversation");

/** The golden runs in the order in which the file generator starts them. */
export const goldenRuns: Readonly<Record<string, GoldenRun>> = {
  told: {
    begin: ({ runtime, company: { clerk } }) =>
      runtime.submit(clerk, "How is the weather?", {
        runId: goldenId("told"),
        sessionId: conversation,
        userId: "ada",
        tenantId: "house",
        streaming: true,
      }),
    goOn: ({ runId }, { runtime, company: { clerk } }) =>
      runtime.submit(clerk, "And tomorrow?", {
        runId: parseRunId(`${runId}_next`),
        sessionId: conversation,
        userId: "ada",
        tenantId: "house",
      }),
  },
  asked: {
    begin: ({ runtime, company: { clerk } }) =>
      runtime.submit(clerk, "Write a letter.", { runId: goldenId("asked"), budget: { maxCostUsd: 1 } }),
    rests: ({ type }) => type === "task_suspend",
    goOn: async (handle) => {
      for await (const event of handle.events()) {
        if (!("seq" in event) || event.type !== "approval_request") continue;
        await handle.approve(event.data.approvalId, { decision: "approved" });
        break;
      }
      return handle;
    },
  },
  halted: {
    begin: ({ runtime, company: { lead } }) => runtime.submit(lead, null, { runId: goldenId("halted") }),
    rests: (event) => event.type === "task_suspend" && event.data.waitsFor.includes("signal go"),
    goOn: async (handle) => {
      await handle.signal("go", "now").catch((error: unknown) => {
        // A journal that does not match may have ended the run before.
        if (Fault.from(error).code !== "not_found") throw error;
      });
      return handle;
    },
  },
  crowded: {
    begin: ({ runtime, company: { panel } }) =>
      runtime.submit(panel, "Who has a seat?", { runId: goldenId("crowded") }),
    rests: (event) => event.type === "task_suspend" && event.taskId !== "t0",
    goOn: async (handle) => {
      const { headcount } = await handle.snapshot();
      const [, patient] = Object.values(headcount.tasks);
      await handle.signal("go", "here", patient?.taskId);
      return handle;
    },
  },
  asleep: {
    begin: ({ runtime, company: { sleeper } }) =>
      runtime.submit(sleeper, null, { runId: goldenId("asleep") }),
    rests: ({ type }) => type === "task_suspend",
    goOn: untilEnded,
  },
  spent: {
    begin: ({ runtime, company: { clerk } }) =>
      runtime.submit(clerk, "How is the weather?", { runId: goldenId("spent"), budget: { maxTurns: 1 } }),
    goOn: async (handle) => {
      await handle.topUp({ maxTurns: 1 });
      return handle;
    },
  },
  erased: {
    begin: ({ runtime, company: { clerk } }) =>
      runtime.submit(clerk, "Forget this.", { runId: goldenId("erased"), retention: HistoryRetention.NONE }),
    goOn: async (handle) => handle,
  },
  durable: {
    begin: async ({ runtime, company: { durable } }) => {
      const { runId } = await runtime.start(durable, { cents: 900 }, { runId: goldenId("durable") });
      return (await runtime.find(runId)) as RunHandle;
    },
    rests: (event) => event.type === "task_suspend" && event.data.waitsFor.includes("signal paid"),
    goOn: async (handle) => {
      await handle.signal("paid", 900);
      return handle;
    },
  },
  retried: {
    begin: async ({ runtime, company: { retried } }) => {
      const { runId } = await runtime.start(retried, null, { runId: goldenId("retried") });
      return (await runtime.find(runId)) as RunHandle;
    },
    rests: ({ type }) => type === "task_suspend",
    goOn: untilEnded,
  },
  promised: {
    begin: async ({ runtime, company: { promised } }) => {
      const { runId } = await runtime.start(promised, null, { runId: goldenId("promised") });
      return (await runtime.find(runId)) as RunHandle;
    },
    rests: ({ type }) => type === "task_suspend",
    goOn: async (handle, { runtime }) => {
      await runtime.promise((await handle.read("id")) as string).resolve("settled");
      return handle;
    },
  },
  tally: {
    begin: async ({ runtime, company: { tally } }) => {
      const added = { handler: "add", key: "books", input: 7 };
      const { runId } = await runtime.start(tally, added, { runId: goldenId("tally") });
      return (await runtime.find(runId)) as RunHandle;
    },
    rests: ({ type }) => type === "task_suspend",
    goOn: async (handle) => {
      await handle.signal("more", 8);
      return handle;
    },
  },
  updated: {
    begin: async ({ runtime, company: { updated } }) => {
      const { runId } = await runtime.start(updated, null, { runId: goldenId("updated") });
      const handle = (await runtime.find(runId)) as RunHandle;
      await handle.update("add", "much", { id: "refused" }).catch(() => undefined);
      await handle.update(add, 1, { id: "first" });
      return handle;
    },
    rests: ({ type, data }) => type === "value_published" && JSON.stringify(data.value) === "[2]",
    goOn: async (handle) => {
      await handle.update(add, 5, { id: "first" });
      await handle.update(add, 2, { id: "second" });
      return handle;
    },
  },
  undone: {
    begin: async ({ runtime, company: { undone } }) => {
      const { runId } = await runtime.start(undone, null, { runId: goldenId("undone") });
      return (await runtime.find(runId)) as RunHandle;
    },
    rests: ({ type }) => type === "task_suspend",
    goOn: untilEnded,
  },
  calling: {
    begin: async ({ runtime, company: { calling } }) => {
      const { runId } = await runtime.start(calling, null, { runId: goldenId("calling") });
      return (await runtime.find(runId)) as RunHandle;
    },
    rests: ({ type }) => type === "task_suspend",
    goOn: untilEnded,
  },
  begging: {
    begin: ({ runtime, company: { beggar } }) =>
      runtime.submit(beggar, "How is the weather?", { runId: goldenId("begging") }),
    rests: ({ type }) => type === "seat_pause",
    goOn: async (handle) => {
      await handle.topUp({ maxTurns: 1 });
      return handle;
    },
  },
  outsider: {
    begin: ({ runtime, company: { outsider } }) =>
      runtime.submit(outsider, null, { runId: goldenId("outsider") }),
    rests: ({ type }) => type === "task_suspend",
    goOn: async (handle) => {
      const [question] = await handle.pendingApprovals();
      if (question !== undefined) await handle.approve(question.approvalId, { decision: "approved" });
      return handle;
    },
  },
  scored: {
    begin: async ({ runtime, company: { clerk } }) => {
      const handle = await runtime.submit(clerk, "How is the weather?", { runId: goldenId("scored") });
      await handle.result();
      await handle.score({ name: "thumbs", value: false, by: "ada", comment: "too short" });
      await handle.score({ name: "thumbs", value: true, by: "ada" });
      return handle;
    },
    goOn: async (handle) => handle,
  },
  patched: {
    begin: async ({ runtime, company: { patched } }) => {
      const { runId } = await runtime.start(patched, null, { runId: goldenId("patched") });
      return (await runtime.find(runId)) as RunHandle;
    },
    rests: ({ type }) => type === "task_suspend",
    goOn: untilEnded,
  },
};

/**
 * Advances the clock until the run has ended. On a busy machine a store may write only after the clock has passed a
 * time.
 */
async function untilEnded(handle: RunHandle, { clock }: Desk): Promise<RunHandle> {
  while ((await handle.summary()).endedAt === null) await clock.advance(hourMs);
  return handle;
}

export function goldenId(name: string): RunId {
  return parseRunId(`run_${name}`);
}
