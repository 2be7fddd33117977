import { describe, expect, it } from "vitest";
import type { JsonValue, RunHandle, RunId } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import type { RuntimeOptions } from "../../../src/runtime/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agent, readAll, settle, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const noRetry: RuntimeOptions = { runRetry: { maxRetries: 0 } };

describe.each(twoStores)("a fork of a run that an inbox message started (%s)", (_name, prepare) => {
  async function startByMessage(code: (isFork: boolean) => Promise<void>) {
    const store = await (await prepare())();
    const clock = new FakeClock();
    const runtime = await createRuntime({ ...noRetry, store, clock });
    const runs: RunId[] = [];
    const worker = agent("worker", async (ctx) => {
      if (!runs.includes(ctx.facts.runId)) runs.push(ctx.facts.runId);
      await ctx.waitForSignal("go");
      await code(runs.indexOf(ctx.facts.runId) > 0);
    });
    runtime.register(worker);
    await store.inbox.deliver({ id: "m", from: null, to: worker.id, body: null, sentAt: 0 });
    await until(() => runs.length === 1);
    await settle();
    const origin = (await runtime.find(runs[0] as RunId)) as RunHandle;
    return { store, clock, runtime, worker, origin };
  }

  it("a fork that fails emits no dead letter, even if the message that started its origin has one delivery left", async () => {
    const { store, runtime, worker, origin } = await startByMessage(async () => {
      throw new Error("broken");
    });
    // One delivery is left.
    for (let count = 1; count < store.inbox.settings.maxDeliveries; count++)
      await store.inbox.nack(worker.id, ["m"]);
    const fork = await origin.fork({ at: 2 });
    await fork.signal("go");
    expect((await fork.result()).status).toBe("failed");
    await fork.resume();
    await fork.signal("go");
    await settle();
    expect((await fork.result()).status).toBe("failed");
    const types = (await readAll(store, fork.runId)).map(({ type }) => type);
    expect(types).not.toContain("mail_dead_letter");
    expect(await runtime.deadLetters()).toEqual([]);
    await runtime.close();
  });

  it("a fork that completes does not acknowledge the message that started its origin", async () => {
    const { store, runtime, worker, origin } = await startByMessage(async (isFork) => {
      if (!isFork) throw new Error("broken");
    });
    const fork = await origin.fork({ at: 2 });
    await origin.signal("go");
    expect((await origin.result()).status).toBe("failed");
    await fork.signal("go");
    expect((await fork.result()).status).toBe("completed");
    expect(await store.inbox.peek(worker.id)).toMatchObject([{ deliveries: 1, runId: origin.runId }]);
    await runtime.close();
  });

  async function startByAsk(
    code: (isFork: boolean, reply: (body: JsonValue) => Promise<void>) => Promise<void>,
  ) {
    const store = await (await prepare())();
    const runtime = await createRuntime({ ...noRetry, store, clock: new FakeClock() });
    const runs: RunId[] = [];
    const worker = agent("worker", async (ctx, inbox) => {
      if (!runs.includes(ctx.facts.runId)) runs.push(ctx.facts.runId);
      await ctx.waitForSignal("go");
      await code(runs.indexOf(ctx.facts.runId) > 0, async (body) => {
        for (const each of inbox.messages) await ctx.reply(each, body);
      });
    });
    runtime.register(worker);
    const caller = agent("caller", async (ctx) => (await ctx.ask(worker.id, "?")) as unknown as JsonValue);
    const run = await runtime.submit(caller, null);
    await until(() => runs.length === 1);
    await settle();
    const origin = (await runtime.find(runs[0] as RunId)) as RunHandle;
    const fork = await origin.fork({ at: 2 });
    await until(() => runs.length === 2);
    await settle();
    return { store, runtime, run, origin, fork };
  }

  it("a fork that fails without a reply does not end an ask to its origin", async () => {
    const { runtime, run, origin, fork } = await startByAsk(async (isFork, reply) => {
      if (isFork) throw new Error("broken");
      await reply("answer");
    });
    await fork.signal("go");
    expect((await fork.result()).status).toBe("failed");
    await settle();
    await origin.signal("go");
    expect((await run.result()).output).toEqual({ kind: "replied", body: "answer" });
    await runtime.close();
  });

  it("a fork sends no reply to the caller of its origin", async () => {
    const { store, runtime, run, origin, fork } = await startByAsk((isFork, reply) =>
      reply(isFork ? "fork" : "answer"),
    );
    await fork.signal("go");
    expect((await fork.result()).status).toBe("completed");
    const steps: string[] = [];
    for await (const commit of store.journal.read(fork.runId))
      for (const { name } of commit.steps ?? []) steps.push(name);
    expect(steps.filter((name) => name.startsWith("reply "))).toHaveLength(1);
    await settle();
    await origin.signal("go");
    expect((await run.result()).output).toEqual({ kind: "replied", body: "answer" });
    await runtime.close();
  });

  it("a fork of a run that an inbox message started replies to a message that the fork itself has read", async () => {
    const store = await (await prepare())();
    const runtime = await createRuntime({ ...noRetry, store, clock: new FakeClock() });
    const runs: RunId[] = [];
    const worker = agent(
      "worker",
      async (ctx, inbox) => {
        if (!runs.includes(ctx.facts.runId)) runs.push(ctx.facts.runId);
        await ctx.waitForSignal("go");
        for (const each of [...inbox.messages, ...(await inbox.drain())])
          if (each.replyTo !== undefined) await ctx.reply(each, "fork");
      },
      { inbox: "together" },
    );
    runtime.register(worker);
    await store.inbox.deliver({ id: "m", from: null, to: worker.id, body: null, sentAt: 0 });
    await until(() => runs.length === 1);
    await settle();
    const fork = await ((await runtime.find(runs[0] as RunId)) as RunHandle).fork({ at: 2 });
    await until(() => runs.length === 2);
    const run = await runtime.submit(
      agent("caller", async (ctx) => (await ctx.ask(worker.id, "?")) as unknown as JsonValue),
      null,
    );
    await until(async () => (await store.inbox.peek(worker.id)).length === 2);
    await fork.signal("go");
    expect((await run.result()).output).toEqual({ kind: "replied", body: "fork" });
    await runtime.close();
  });
});
