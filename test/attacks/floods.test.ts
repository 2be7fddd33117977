import { describe, expect, test } from "vitest";
import { Agent, openRuntime, Priority, tool, type Runtime } from "../../src/entries/index.ts";
import {
  formatAgentId,
  formatRunId,
  type Event,
  type HostedAgent,
  type JsonValue,
  type RunContext,
  type RunHandle,
  type SubmitOptions,
} from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptedReply } from "../../src/testing/index.ts";
import { casesOf, isFull } from "../effort.ts";
import { removeStoresAfterEach, twoStores } from "../runtime/two-stores.ts";

removeStoresAfterEach();

const hosted = (name: string, run: (ctx: RunContext) => Promise<JsonValue>): HostedAgent => ({
  id: formatAgentId({ name }),
  run,
});
const quiet = hosted("quiet", async () => "quiet");

async function eventsOf(run: RunHandle): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) events.push(event);
  return events;
}

/** Checks that the runtime still works: another run completes. */
async function expectAlive(runtime: Runtime): Promise<void> {
  expect((await (await runtime.submit(quiet, null)).result()).status).toBe("completed");
}

describe("a pattern that backtracks exponentially", () => {
  const hostile = `${"a".repeat(50_000)}!`;
  const patterns = [
    "^(a+)+$",
    "^(a*)*$",
    "^(a|a)*$",
    "^(a|aa)+$",
    "^(a?)+$",
    "^([a-z]+)*$",
    "^(\\w+\\s?)*$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "^(.*a){12}b$",
    "(a+a+)+y",
    "^(?:a{1,30}){1,30}$",
    "^\\s*(a+|[^!])*$",
  ];

  test.each(patterns)(
    "arguments are refused if a pattern in the tool's schema backtracks exponentially, and the process continues: %s",
    async (pattern) => {
      const runtime = await openRuntime({ unknownPrice: "ignore" });
      let calls = 0;
      const find = tool({
        name: "find",
        description: "Finds",
        inputSchema: {
          type: "object",
          properties: { text: { type: "string", pattern } },
          required: ["text"],
        },
        execute: async () => ++calls,
      });
      const model = scriptedModel([{ toolCalls: [{ name: "find", input: { text: hostile } }] }, "Done."]);
      const { status } = await new Agent({ name: "scout", model, tools: [find] }).invoke("Find.", {
        runtime,
      });
      expect([status, calls]).toEqual(["completed", 0]);
      expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain("must match pattern");
      await expectAlive(runtime);
      await runtime.close();
    },
  );

  test.each(patterns.slice(0, 4))(
    "a pattern that backtracks exponentially in an output schema fails the run and no other run: %s",
    async (pattern) => {
      const runtime = await openRuntime({ unknownPrice: "ignore" });
      const schema = {
        type: "object",
        properties: { text: { type: "string", pattern } },
        required: ["text"],
      };
      const answer = JSON.stringify({ text: hostile });
      const model = scriptedModel([answer, answer, answer, answer]);
      const { status } = await new Agent({ name: "scout", model }).invoke("Go.", {
        runtime,
        output: schema,
      });
      expect(status).toBe("failed");
      await expectAlive(runtime);
      await runtime.close();
    },
  );

  test("a pattern in patternProperties that backtracks exponentially does not stop the process", async () => {
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    const find = tool({
      name: "find",
      description: "Finds",
      inputSchema: {
        type: "object",
        patternProperties: { "^(a+)+$": {} },
        additionalProperties: false,
      },
      execute: async () => "found",
    });
    const model = scriptedModel([{ toolCalls: [{ name: "find", input: { [hostile]: 1 } }] }, "Done."]);
    expect(
      (await new Agent({ name: "scout", model, tools: [find] }).invoke("Find.", { runtime })).status,
    ).toBe("completed");
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain("additional properties");
    await runtime.close();
  });
});

/** The stores that are flooded: SQLite, and with `npm run test:full` also the memory store, which is faster. */
const stores = twoStores.filter(([name]) => isFull || name === "sqlite");

/** Number of calls in one reply. */
const manyCalls = casesOf(10_000, 2_000);

describe.each(stores)("a flood of tool calls on the %s store", (_store, prepare) => {
  const rows: readonly (readonly [string, number, number, (index: number) => string])[] = [
    [`${manyCalls} calls`, manyCalls, 128, (index) => `call-${index}`],
    [`${manyCalls} calls with one call id`, manyCalls, 128, () => "call"],
    [`${manyCalls} calls of unknown tools`, manyCalls, 0, (index) => `call-${index}`],
    ["129 calls", 129, 128, (index) => `call-${index}`],
    ["128 calls", 128, 128, (index) => `call-${index}`],
  ];

  test.each(rows)(
    "an agent executes at most 128 of %s in one turn and gives each call a result",
    async (_what, count, executed, idOf) => {
      const open = await prepare();
      const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore" });
      let calls = 0;
      const ping = tool({
        name: "ping",
        description: "Pings",
        inputSchema: { type: "object" },
        execute: async () => ++calls,
      });
      const name = executed === 0 ? "unknown" : "ping";
      const reply: ScriptedReply = {
        toolCalls: Array.from({ length: count }, (_, index) => ({
          name,
          input: { index },
          callId: idOf(index),
        })),
      };
      const model = scriptedModel([reply, "Done."]);
      const run = await runtime.submit(new Agent({ name: "scout", model, tools: [ping] }), "Go.");
      expect((await run.result()).output).toBe("Done.");
      expect(calls).toBe(executed);
      const ends = (await eventsOf(run)).filter((event) => event.type === "tool_execution_end");
      expect(ends.length).toBe(count);
      expect(model.calls[1]?.messages.at(-1)?.content.length).toBe(count);
      await expectAlive(runtime);
      await runtime.close();
    },
  );
});

describe.each(stores)("a flood of runs on the %s store", (_store, prepare) => {
  /** Pairs of a party that floods the runtime and a party whose run must not wait. */
  const rows: readonly (readonly [
    string,
    { agent: string } & SubmitOptions,
    { agent: string } & SubmitOptions,
  ])[] = [
    ["another user", { agent: "worker", userId: "mallory" }, { agent: "worker", userId: "ann" }],
    ["another agent", { agent: "flooder" }, { agent: "worker" }],
    ["another tenant", { agent: "worker", tenantId: "m" }, { agent: "worker", tenantId: "a" }],
    [
      "another user of the tenant",
      { agent: "worker", tenantId: "t", userId: "m" },
      { agent: "worker", tenantId: "t", userId: "a" },
    ],
    ["a higher priority", { agent: "worker" }, { agent: "worker", priority: Priority.CRITICAL }],
  ];

  test.each(rows)(
    "a flood of runs of one tenant or user delays a run of %s by no more than the runs that have begun",
    async (_who, many, one) => {
      const open = await prepare();
      const order: string[] = [];
      const submitted = Promise.withResolvers<string>();
      // One task at a time, so that the order of the runs is the order of the turns. The first run waits until all are submitted.
      const runtime = await openRuntime({ store: await open(), concurrency: 1 });
      const agents = new Map(
        ["worker", "flooder"].map((name) => [
          name,
          hosted(name, async (ctx) => {
            order.push(ctx.facts.runId);
            return ctx.step("work", () => submitted.promise);
          }),
        ]),
      );
      const submit = (
        { agent: name, ...options }: { agent: string } & SubmitOptions,
        runId: string,
      ): Promise<RunHandle> =>
        runtime.submit(agents.get(name) ?? quiet, null, { ...options, runId: formatRunId(runId) });
      const flood = await Promise.all(
        Array.from({ length: 300 }, (_, index) => submit(many, `flood-${index}`)),
      );
      const small = await submit(one, "small");
      submitted.resolve("done");
      await Promise.all([...flood, small].map((run) => run.result()));
      expect(order.length).toBe(301);
      // A few runs had begun or were next. Without turns, the small run would be the last of 301.
      expect(order.indexOf(small.runId)).toBeLessThan(24);
      await runtime.close();
    },
  );
});

describe("a flood from outside", () => {
  const floods: Readonly<Record<string, (run: RunHandle, index: number) => Promise<unknown>>> = {
    signals: (run, index) => run.signal("noise", index),
    "steering inputs": (run, index) => run.steer(`steering ${index}`),
    "follow-ups": (run, index) => run.followUp(`follow-up ${index}`),
    "decisions on approvals that do not exist": (run, index) =>
      expect(run.approve(`approval-${index}`, { decision: "approved" })).rejects.toMatchObject({
        code: "not_found",
      }),
    "pauses and resumes": (run, index) => (index % 2 === 0 ? run.pause() : run.resume()),
  };

  test.each(Object.entries(floods))(
    "2,000 %s do not stop the run that gets them or any other",
    async (_what, send) => {
      const runtime = await openRuntime();
      const waits = hosted("waits", async (ctx) => (await ctx.waitForSignal("go")) ?? null);
      const run = await runtime.submit(waits, null);
      await Promise.all(Array.from({ length: 2_000 }, (_, index) => send(run, index)));
      await run.resume();
      await run.signal("go", "went");
      expect(await run.result()).toMatchObject({ status: "completed", output: "went" });
      await expectAlive(runtime);
      await runtime.close();
    },
  );
});

describe("a tool whose code fails outside its promise", () => {
  test("the library installs no handler for unhandled rejections or uncaught exceptions", async () => {
    const names = ["unhandledRejection", "uncaughtException", "uncaughtExceptionMonitor"] as const;
    const before = names.map((name) => process.listenerCount(name));
    const runtime = await openRuntime();
    expect((await (await runtime.submit(quiet, null)).result()).status).toBe("completed");
    expect(names.map((name) => process.listenerCount(name))).toEqual(before);
    await runtime.close();
    expect(names.map((name) => process.listenerCount(name))).toEqual(before);
  });
});
