import { describe, expect, it, onTestFinished } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import {
  formatRunId,
  type AskOutcome,
  type JsonValue,
  type Message,
  type RunId,
  type Store,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import type { RuntimeOptions } from "../../../src/runtime/index.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, settle, setUp, until, type Bench } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

/** An agent that answers each message except "poison", on which its model fails, and logs each model call. */
function clerkOf(calls: string[]): Agent {
  const reply = ({ messages }: { readonly messages: readonly unknown[] }) => {
    const text = JSON.stringify(messages.at(-1));
    const name = ["poison", "one", "three"].find((word) => text.includes(word)) ?? "other";
    calls.push(name);
    return name === "poison"
      ? { error: Object.assign(new Error("bad request"), { statusCode: 400 }) }
      : `answer to ${name}`;
  };
  return new Agent({ name: "clerk", model: scriptedModel(Array.from({ length: 60 }, () => reply)) });
}

function senderOf(to: Pick<Agent, "id">, name = "sender") {
  return agent(name, async (ctx) => {
    for (const body of ctx.input as JsonValue[]) await ctx.send(to.id, body);
  });
}

function message(to: Pick<Agent, "id">, id: string, sender = id): Message {
  const from = agent(sender, async () => undefined).id;
  return { id, from, to: to.id, body: id, sentAt: 0 };
}

const noRetry: RuntimeOptions = { runRetry: { maxRetries: 0 }, unknownPrice: "ignore" };

/** Advances the clock past all deliveries, until a message that always fails is a dead letter. */
async function exhaustDeliveries({ clock }: Pick<Bench, "clock">): Promise<void> {
  for (let round = 0; round < 6; round++) {
    await settle();
    await clock.advance(300_000);
  }
}

describe("an inbox message whose run fails", () => {
  it("an inbox message whose run fails does not affect other asks: each is answered and paid once", async () => {
    const { runtime } = await setUp(noRetry);
    const calls: string[] = [];
    const clerk = clerkOf(calls);
    const caller = agent("caller", async (ctx) => {
      const ask = (body: string) => (branch: typeof ctx) => branch.ask(clerk.id, body);
      return (await ctx.parallel({
        a: ask("one"),
        b: ask("poison"),
        c: ask("three"),
      })) as unknown as JsonValue;
    });
    const run = await runtime.submit(caller, null);
    await settle();
    runtime.register(clerk);
    const output = (await run.result()).output as unknown as Record<string, AskOutcome>;
    expect(output).toMatchObject({
      a: { kind: "replied", body: "answer to one" },
      b: { kind: "target_failed", failure: { message: "scripted/script failed with HTTP 400: bad request" } },
      c: { kind: "replied", body: "answer to three" },
    });
    expect(calls.toSorted()).toEqual(["one", "poison", "three"]);
  });

  it("an inbox message whose run fails becomes a dead letter, while other messages are processed once and in order", async () => {
    const bench = await setUp(noRetry);
    const { runtime } = bench;
    const calls: string[] = [];
    const clerk = clerkOf(calls);
    await (await runtime.submit(senderOf(clerk), ["one", "poison", "three"])).result();
    runtime.register(clerk);
    await exhaustDeliveries(bench);
    expect(calls).toEqual(["one", "poison", "poison", "poison", "three"]);
    expect(await runtime.deadLetters()).toMatchObject([{ message: { body: "poison" }, deliveries: 3 }]);
  });

  it("an inbox message whose run fails does not delay the messages of other senders", async () => {
    const { runtime } = await setUp(noRetry);
    const calls: string[] = [];
    const clerk = clerkOf(calls);
    await (await runtime.submit(senderOf(clerk, "ann"), ["poison"])).result();
    await (await runtime.submit(senderOf(clerk, "bob"), ["one"])).result();
    runtime.register(clerk);
    await until(() => calls.length === 2);
    await settle();
    expect(calls).toEqual(["poison", "one"]);
  });

  it("an inbox message whose run fails does not delay the messages of another run of the same sender", async () => {
    const { runtime } = await setUp(noRetry);
    const calls: string[] = [];
    const clerk = clerkOf(calls);
    const sender = senderOf(clerk);
    await (await runtime.submit(sender, ["poison"])).result();
    await (await runtime.submit(sender, ["one"])).result();
    runtime.register(clerk);
    await until(() => calls.length === 2);
    await settle();
    expect(calls).toEqual(["poison", "one"]);
  });
});

it("an inbox message whose run waits for a person does not delay other messages", async () => {
  const { runtime } = await setUp();
  const waits: RunId[] = [];
  const clerk = agent("clerk", async (ctx, inbox) => {
    for (const each of inbox.messages) {
      if (each.body === "hard") {
        waits.push(ctx.facts.runId);
        await ctx.waitForSignal("person");
      }
      await ctx.reply(each, `answer to ${JSON.stringify(each.body)}`);
    }
  });
  const caller = (name: string) =>
    agent(name, async (ctx) => (await ctx.ask(clerk.id, ctx.input)) as unknown as JsonValue);
  runtime.register(clerk);
  const hard = await runtime.submit(caller("ada"), "hard");
  await until(() => waits.length === 1);
  const easy = await runtime.submit(caller("bob"), "easy");
  expect((await easy.result()).output).toMatchObject({ kind: "replied", body: 'answer to "easy"' });
  const [waiting] = waits;
  await (await runtime.find(waiting as RunId))?.signal("person");
  expect((await hard.result()).output).toMatchObject({ kind: "replied", body: 'answer to "hard"' });
});

it("asks that parallel branches send to an agent are processed concurrently", async () => {
  const { runtime } = await setUp();
  const both = gate();
  let running = 0;
  const clerk = agent("clerk", async (ctx, inbox) => {
    const [first] = inbox.messages as [Message];
    if (++running === 2) both.resolve();
    await both.promise;
    await ctx.reply(first, inbox.messages.length);
  });
  const caller = agent("caller", async (ctx) => {
    const asks = { a: clerk.id, b: clerk.id };
    const { a, b } = await ctx.parallel({
      a: (branch) => branch.ask(asks.a, "x"),
      b: (branch) => branch.ask(asks.b, "y"),
    });
    return [a.kind, b.kind];
  });
  runtime.register(clerk);
  expect((await (await runtime.submit(caller, null)).result()).output).toEqual(["replied", "replied"]);
});

it('with inbox: "together", one run at a time receives all waiting messages', async () => {
  const { runtime, store } = await setUp();
  const go = gate();
  const batches: unknown[][] = [];
  const reader = agent(
    "reader",
    async (_ctx, inbox) => {
      batches.push(inbox.messages.map(({ body }) => body));
      await go.promise;
    },
    { inbox: "together" },
  );
  for (const id of ["a", "b"]) await store.inbox.deliver(message(reader, id));
  runtime.register(reader);
  await until(() => batches.length === 1);
  for (const id of ["c", "d"]) await store.inbox.deliver(message(reader, id));
  await settle();
  expect(batches).toEqual([["a", "b"]]);
  go.resolve();
  await until(() => batches.length === 2);
  expect(batches[1]).toEqual(["c", "d"]);
});

it('S6: with inbox: "together", no run receives messages of two tenants, at its start or later', async () => {
  const { runtime } = await setUp();
  const go = gate();
  const batches: unknown[] = [];
  const reader = agent(
    "reader",
    async (ctx, inbox) => {
      const bodies = inbox.messages.map(({ body }) => body);
      if (ctx.facts.tenantId === "acme") await go.promise;
      const drained = (await inbox.drain()).map(({ body }) => body);
      batches.push({ tenantId: ctx.facts.tenantId, bodies, drained });
    },
    { inbox: "together" },
  );
  const sender = senderOf(reader);
  const send = async (tenantId: string, body: string): Promise<void> => {
    await (await runtime.submit(sender, [body], { tenantId })).result();
  };
  await send("acme", "one");
  await send("globex", "secret");
  await send("acme", "two");
  runtime.register(reader);
  await settle();
  await send("acme", "three");
  go.resolve();
  await until(() => batches.length === 2);
  expect(batches).toEqual([
    { tenantId: "acme", bodies: ["one", "two"], drained: ["three"] },
    { tenantId: "globex", bodies: ["secret"], drained: [] },
  ]);
});

it('S6: with inbox: "together", a run reads the messages of its tenant behind 100 messages of another tenant', async () => {
  const { runtime, store } = await setUp();
  const go = gate();
  const drained: unknown[] = [];
  const reader = agent(
    "reader",
    async (ctx, inbox) => {
      if (ctx.facts.tenantId !== "acme" || drained.length > 0) return;
      await go.promise;
      for (const { body } of await inbox.drain()) drained.push(body);
    },
    { inbox: "together" },
  );
  const sender = senderOf(reader);
  const send = async (tenantId: string, body: string): Promise<void> => {
    await (await runtime.submit(sender, [body], { tenantId })).result();
  };
  await send("acme", "one");
  runtime.register(reader);
  await settle();
  for (let index = 0; index < 101; index++) {
    const runId = formatRunId(`other-${index}`);
    const metadata = { runId, userId: null, tenantId: "globex", metadata: {} };
    await store.inbox.deliver({ ...message(reader, `other-${index}`), sender: metadata });
  }
  await send("acme", "two");
  go.resolve();
  await until(() => drained.length > 0);
  expect(drained).toEqual(["two"]);
});

describe("the facts of a run that an inbox message started", () => {
  const factsOfRuns = async (inbox: "each" | "together", users: readonly (string | undefined)[]) => {
    const { runtime } = await setUp();
    const facts: unknown[] = [];
    const clerk = agent(
      "clerk",
      async (ctx) => {
        const { userId, metadata } = ctx.facts;
        facts.push({ userId, tenantId: ctx.meta.tenantId, metadata });
      },
      { inbox },
    );
    const sender = senderOf(clerk);
    for (const userId of users) {
      const named = userId === undefined ? {} : { userId };
      const options = { tenantId: "acme", metadata: { channel: "web" }, ...named };
      await (await runtime.submit(sender, ["x"], options)).result();
    }
    runtime.register(clerk);
    await until(() => facts.length === (inbox === "each" ? users.length : 1));
    return facts;
  };
  const shared = { tenantId: "acme", metadata: { channel: "web" } };

  it("the facts of a run that an inbox message started are those of the sender", async () => {
    expect(await factsOfRuns("each", ["ada", "bob"])).toEqual([
      { userId: "ada", ...shared },
      { userId: "bob", ...shared },
    ]);
  });

  it("the facts of a run that an inbox message started are those that all senders of a batch share", async () => {
    expect(await factsOfRuns("together", ["ada", "ada"])).toEqual([{ userId: "ada", ...shared }]);
    expect(await factsOfRuns("together", ["ada", undefined])).toEqual([{ userId: null, ...shared }]);
  });
});

describe("a message that a run handed back", () => {
  it("a message that a run handed back is delivered again after growing delays, and then becomes a dead letter", async () => {
    const { runtime, store, clock } = await setUp(noRetry);
    const deliveredAt: number[] = [];
    const start = clock.now();
    const broken = agent("broken", async () => {
      deliveredAt.push(clock.now() - start);
      throw new Error("broken");
    });
    runtime.register(broken);
    await store.inbox.deliver(message(broken, "m"));
    for (let second = 0; second < 10; second++) {
      await settle();
      await clock.advance(1_000);
    }
    expect(deliveredAt).toEqual([0, 1_000, 5_000]);
    expect(await runtime.deadLetters(broken.id)).toMatchObject([{ message: { id: "m" }, deliveries: 3 }]);
  });

  it("a message that a run handed back is delivered as often again after redeliver()", async () => {
    const bench = await setUp(noRetry);
    const { runtime, store } = bench;
    let isFixed = false;
    const processed: unknown[] = [];
    let deliveries = 0;
    const broken = agent("broken", async (_ctx, inbox) => {
      deliveries++;
      if (!isFixed) throw new Error("wrong key");
      processed.push(...inbox.messages.map(({ body }) => body));
    });
    runtime.register(broken);
    for (const id of ["a", "b", "c"]) await store.inbox.deliver(message(broken, id));
    await exhaustDeliveries(bench);
    expect(deliveries).toBe(9);
    expect(await runtime.redeliver(broken.id, ["b"])).toBe(1);
    await exhaustDeliveries(bench);
    expect(deliveries).toBe(12);
    expect((await runtime.deadLetters(broken.id)).map((each) => each.message.id).toSorted()).toEqual([
      "a",
      "b",
      "c",
    ]);
    isFixed = true;
    expect(await runtime.redeliver(broken.id)).toBe(3);
    await until(() => processed.length === 3);
    await settle();
    expect(await runtime.deadLetters()).toEqual([]);
    expect(await store.inbox.peek(broken.id)).toEqual([]);
  });

  it("a message that a failed run handed back belongs to that run again when it is resumed, also as a dead letter", async () => {
    const bench = await setUp(noRetry);
    const { runtime, store, events } = bench;
    let isFixed = false;
    const runs: RunId[] = [];
    const broken = agent("broken", async (ctx) => {
      runs.push(ctx.facts.runId);
      if (!isFixed) throw new Error("broken");
    });
    runtime.register(broken);
    await store.inbox.deliver(message(broken, "m"));
    await exhaustDeliveries(bench);
    const [dead] = await runtime.deadLetters();
    expect(dead?.runId).toBe(runs.at(-1));
    const run = await runtime.find(dead?.runId as RunId);
    await run?.resume();
    await until(async () => (await runtime.deadLetters())[0]?.deliveries === 4);
    const deadLetters = (await events(dead?.runId as RunId)).filter(
      ({ type }) => type === "mail_dead_letter",
    );
    expect(deadLetters.map(({ data }) => data)).toEqual([
      { messageId: "m", deliveries: 3 },
      { messageId: "m", deliveries: 4 },
    ]);
    isFixed = true;
    await run?.resume();
    await until(async () => (await runtime.deadLetters()).length === 0);
    expect((await run?.result())?.status).toBe("completed");
    await settle();
    expect(await store.inbox.peek(broken.id)).toEqual([]);
    expect(runs).toHaveLength(5);
  });

  it("a message that a run handed back is not handed back again by a fork of that run", async () => {
    const { runtime, store } = await setUp(noRetry);
    const runs: RunId[] = [];
    const worker = agent("worker", async (ctx) => {
      runs.push(ctx.facts.runId);
      await ctx.waitForSignal("go");
      if (runs.indexOf(ctx.facts.runId) > 0) throw new Error("broken");
    });
    runtime.register(worker);
    await store.inbox.deliver(message(worker, "m"));
    await until(() => runs.length === 1);
    const origin = await runtime.find(runs[0] as RunId);
    await settle();
    const fork = await origin?.fork({ at: 3 });
    await until(() => runs.length === 2);
    await fork?.signal("go");
    expect((await fork?.result())?.status).toBe("failed");
    expect(await store.inbox.peek(worker.id)).toMatchObject([{ deliveries: 0, runId: origin?.runId }]);
    await origin?.signal("go");
    await origin?.result();
    expect(await store.inbox.peek(worker.id)).toEqual([]);
  });
});

it.each(twoStores)(
  "%s: the delay before the next delivery of a message outlasts the process",
  async (_name, prepare) => {
    const openStore = await prepare();
    const clock = new FakeClock();
    const deliveredAt: number[] = [];
    const start = clock.now();
    const broken = agent("broken", async () => {
      deliveredAt.push(clock.now() - start);
      if (deliveredAt.length < 2) throw new Error("broken");
    });
    const open = async (): Promise<{ store: Store; close: () => Promise<void> }> => {
      const store = await openStore();
      const runtime = await createRuntime({ ...noRetry, store, clock });
      runtime.register(broken);
      return { store, close: () => runtime.close() };
    };
    const first = await open();
    await first.store.inbox.deliver(message(broken, "m"));
    await until(async () => (await first.store.inbox.peek(broken.id))[0]?.deliveries === 1);
    await first.close();
    await clock.advance(400);
    const second = await open();
    onTestFinished(second.close);
    await settle();
    await clock.advance(599);
    expect(deliveredAt).toEqual([0]);
    await clock.advance(1);
    await until(async () => (await second.store.inbox.peek(broken.id)).length === 0);
    expect(deliveredAt).toEqual([0, 1_000]);
  },
);
