import { describe, expect, test } from "vitest";
import {
  HistoryRetention,
  messageText,
  userMessage,
  type RunContext,
  type Store,
} from "../../../src/kernel/index.ts";
import { Agent, permissions } from "../../../src/entries/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { all } from "../../../src/testing/contracts/store-fixtures.ts";
import { agent, gate, simpleTool, text, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const secret = "xyzzy";
const { NONE } = HistoryRetention;

async function storedText(store: Store, runId: Parameters<Store["journal"]["read"]>[0]): Promise<string> {
  // The outcome of a task is the answer to its caller, and is kept.
  const commits = (await all(store.journal.read(runId))).map(({ tasks, events, ...commit }) => ({
    ...commit,
    tasks: tasks?.filter(({ type }) => type !== "end"),
    events: events?.filter(({ type }) => type !== "task_end"),
  }));
  return JSON.stringify(commits);
}

describe.each(twoStores)("%s: retention NONE", (_name, prepare) => {
  test("retention NONE erases the content of turns, messages, compactions, approvals and tool calls; the log still verifies", async () => {
    const open = await prepare();
    const store = await open();
    const runtime = await createRuntime({
      store,
      prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 1e-6 }) },
    });
    const wire = simpleTool({
      name: "wire",
      needsApproval: true,
      execute: async () => text(`sent ${secret}`),
    });
    const approval = gate<string>();
    const clerk = agent(
      "clerk",
      async (ctx: RunContext) => {
        const turn = await ctx.turn(async ({ input }) => ({
          input,
          instructions: `Say ${secret}`,
          tools: [],
          history: [userMessage(`before: ${secret}`)],
        }));
        const { transcript } = await ctx.compact({
          transcript: turn.history,
          contextTokens: 9,
          compact: async () => [userMessage(`in short: ${secret}`)],
        });
        const { message } = await ctx.llm({ transcript });
        await ctx.waitForSignal("go");
        const steering = await ctx.steering({ mode: "all" });
        await ctx.tool({ callId: "1", toolName: "wire", input: { steering, answer: messageText(message) } });
        return "done";
      },
      {
        tools: [wire],
        models: { main: scriptedModel([secret]) },
        callPath: {
          observer: {
            observe: (event) => {
              if (event.type === "approval_request") approval.resolve(event.data.approvalId);
            },
            settled: async () => undefined,
          },
        },
      },
    );
    const run = await runtime.submit(clerk, secret, { retention: NONE, metadata: { secret } });
    await run.steer(secret);
    await run.signal("go", secret);
    await run.approve(await approval.promise, { decision: "approved", by: "ann" });
    expect((await run.result()).status).toBe("completed");
    expect(await storedText(store, run.runId)).not.toContain(secret);
    expect(await store.events.verify(run.runId)).toMatchObject({ ok: true });
    expect((await run.snapshot()).ledger.open).toEqual([]);
    const { runs } = await runtime.list();
    expect(runs).toMatchObject([{ runId: run.runId, status: "completed" }]);
    const last = await store.events.lastSeq(run.runId);
    await expect(run.fork({ at: 3 })).rejects.toMatchObject({ code: "invalid_argument" });
    // A fork after the end of the run has ended as well, so that it needs no erased content.
    const fork = await run.fork({ at: last });
    expect((await fork.result()).status).toBe("completed");
    await runtime.close();
  });

  test("retention NONE keeps which branch has won a race, which the state of the run needs, and erases the branch's value", async () => {
    const open = await prepare();
    const store = await open();
    const runtime = await createRuntime({ store });
    const racer = agent("racer", async (ctx) => {
      const { winner } = await ctx.race({
        fast: async () => secret,
        slow: async (branch) => ((await branch.waitForSignal("never")) as string | undefined) ?? "",
      });
      return winner;
    });
    const run = await runtime.submit(racer, null, { retention: NONE });
    expect((await run.result()).output).toBe("fast");
    expect(await storedText(store, run.runId)).not.toContain(secret);
    expect((await run.snapshot()).status).toBe("completed");
    await runtime.close();
  });

  test("S5: steering that a task has read and retention has erased is not submitted again as a new run", async () => {
    const open = await prepare();
    const store = await open();
    const runtime = await createRuntime({ store });
    const listener = agent("listener", async (ctx) => {
      await ctx.waitForSignal("go");
      return (await ctx.steering({ mode: "all" })).length;
    });
    const run = await runtime.submit(listener, null, { retention: NONE });
    await run.steer(secret);
    await run.steer(secret);
    await run.signal("go");
    expect((await run.result()).output).toBe(2);
    await run.cancel("too late");
    await until(async () => (await store.mailbox.read(run.runId)).length === 0);
    expect((await runtime.list()).runs).toHaveLength(1);
    await runtime.close();
  });

  test("a retained task replays from its own content although an erased task began with the same content", async () => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open() });
    const helper = new Agent({
      name: "helper",
      instructions: "Help.",
      model: scriptedModel(Array(9).fill("helped")),
    });
    const lead = agent(
      "lead",
      async (ctx) => {
        for (const retention of [NONE, HistoryRetention.RUN]) {
          const spawned = await ctx.spawn(helper.id, "help", { retention });
          if (spawned.kind === "spawned") await ctx.join(spawned.handle);
        }
        return "done";
      },
      { subAgents: [helper] },
    );
    const run = await runtime.submit(lead, null);
    await run.result();
    const events = await all((await open()).events.read(run.runId));
    const at = events.find(({ type, taskId }) => type === "message_start" && taskId === "t2")?.seq ?? -1;
    const fork = await run.fork({ at });
    expect(await fork.result()).toMatchObject({ status: "completed", output: "done" });
    await runtime.close();
  });

  test("retention NONE erases the arguments of a tool call that a permission asked about", async () => {
    const open = await prepare();
    const store = await open();
    const runtime = await createRuntime({ store });
    const pay = simpleTool({ name: "pay", needsApproval: true, execute: async () => text(secret) });
    const clerk = new Agent({
      name: "clerk",
      model: scriptedModel([{ toolCalls: [{ name: "pay", input: { secret } }] }, secret]),
      tools: [pay],
      permissions: permissions({ onAsk: "wait" }),
    });
    const run = await runtime.submit(clerk, secret, { retention: NONE });
    for await (const event of run.events()) {
      if (event.type === "approval_request")
        await run.approve(event.data.approvalId, { decision: "approved", input: { secret, edited: true } });
    }
    expect((await run.result()).status).toBe("completed");
    expect(await storedText(store, run.runId)).not.toContain(secret);
    expect((await run.snapshot()).headcount).toBeDefined();
    await runtime.close();
  });
});
