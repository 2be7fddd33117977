import { describe, expect, it } from "vitest";
import { getRunContext } from "../../../src/entries/index.ts";
import {
  formatAgentId,
  formatRunId,
  type AgentResolver,
  type HostedAgent,
  type RunRecord,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { AgentResolvers, mostLeftAlone } from "../../../src/runtime/worker/agent-resolvers.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { findRun } from "../find-run.ts";
import { agent, setUp, settle, spawnTask, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

/** An agent with a key that waits for a signal and greets with the words of its metadata, through a sub-agent. */
function greeter(key: string, greeting: string): HostedAgent {
  const helper = agent(`helper-${greeting}`, async () => greeting);
  return {
    id: formatAgentId({ name: "greeter", key }),
    subAgents: [helper],
    run: async (ctx) => {
      await ctx.waitForSignal("go");
      const [child] = await ctx.joinAll([await spawnTask(ctx, helper)]);
      return child?.output ?? null;
    },
  };
}

/** Makes greeters from the metadata of their runs, and notes the runs that it is asked about. */
function resolver(asked: RunRecord[] = []): AgentResolver {
  return {
    name: "greeter",
    resolve: async (run) => {
      asked.push(run);
      const { greeting, key } = run.metadata;
      return typeof greeting === "string" && typeof key === "string" ? greeter(key, greeting) : undefined;
    },
  };
}

for (const [storeName, prepare] of twoStores)
  describe(`an agent resolver on the ${storeName} store`, () => {
    it("a worker executes runs of agents that its resolver makes from the metadata of the run", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const first = await createRuntime({ store: await openStore(), clock });
      const submitted = [];
      for (const [key, greeting] of [
        ["a", "Hello"],
        ["b", "Salut"],
      ] as const) {
        const metadata = { key, greeting };
        submitted.push(await first.submit(greeter(key, greeting), "x", { metadata, userId: "ann" }));
      }
      await settle();
      await first.close();
      await using second = await createRuntime({ store: await openStore(), clock });
      const asked: RunRecord[] = [];
      second.register(resolver(asked));
      const outputs = [];
      for (const each of submitted) {
        const run = await findRun(second, each);
        await run.signal("go");
        outputs.push((await run.result()).output);
      }
      expect(outputs).toEqual(["Hello", "Salut"]);
      expect(asked[0]).toMatchObject({ runId: submitted[0]?.runId, userId: "ann", title: "x" });
    });

    it("a worker asks its resolver once about a run for which the resolver returns undefined, and another worker executes it", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const asked: RunRecord[] = [];
      const errors: unknown[] = [];
      const onError = (error: unknown): number => errors.push(error);
      await using first = await createRuntime({ store: await openStore(), clock, onError, pollMs: 100 });
      first.register(resolver(asked));
      const foreign: HostedAgent = {
        id: formatAgentId({ name: "greeter", key: "x" }),
        run: async () => "mine",
      };
      const other = await createRuntime({
        store: await openStore(),
        clock,
        onError,
        pollMs: 100,
        keepAlive: false,
      });
      const run = await other.submit(foreign, "go", { startAt: clock.now() + 1_000, metadata: { key: "x" } });
      await other.close();
      await clock.advance(1_000);
      await until(() => asked.length > 0);
      for (let round = 0; round < 20; round++) await clock.advance(100);
      await settle();
      expect(asked.map(({ runId }) => runId)).toEqual([run.runId]);
      expect((await first.list()).runs).toMatchObject([{ status: "pending" }]);
      await using third = await createRuntime({ store: await openStore(), clock, onError, pollMs: 100 });
      third.register(foreign);
      await clock.advance(100);
      expect((await (await findRun(third, run)).result()).output).toBe("mine");
      expect(errors).toEqual([]);
    });
  });

it("a registered agent takes precedence over an agent resolver of its name", async () => {
  const { runtime } = await setUp();
  const asked: RunRecord[] = [];
  runtime.register(resolver(asked));
  const own = agent("greeter", async () => "own");
  expect((await (await runtime.submit(own, "x")).result()).output).toBe("own");
  expect(asked).toEqual([]);
});

it("an error of an agent resolver goes to onError, and the worker asks again later", async () => {
  const { clock, store, open, errors } = await setUp();
  const submitting = await open();
  const run = await submitting.submit(greeter("a", "Hello"), "x");
  await settle();
  await submitting.close();
  const worker = await open();
  let calls = 0;
  worker.register({
    name: "greeter",
    resolve: () => {
      if (++calls === 1) throw new TypeError("no configuration");
      return greeter("a", "Hello");
    },
  });
  await store.mailbox.put({
    id: "m",
    runId: run.runId,
    from: "x",
    at: 1,
    body: { type: "pause" },
  });
  await until(() => errors.length > 0);
  expect(errors).toMatchObject([{ message: "no configuration" }]);
  await clock.advance(1_000);
  await until(() => calls === 2);
  await worker.close();
});

it("an agent resolver that returns an agent with another id is refused, and its run is not executed", async () => {
  const { clock, open, errors } = await setUp();
  const submitting = await open();
  const startAt = clock.now() + 1_000;
  await submitting.submit(greeter("a", "Hello"), "x", { startAt });
  await submitting.close();
  const worker = await open();
  worker.register({ name: "greeter", resolve: () => greeter("b", "Hello") });
  await clock.advance(1_000);
  await until(() => errors.length > 0);
  expect(errors[0]).toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("expected the agent greeter/a"),
  });
  await worker.close();
});

it("an agent resolver that returns null is refused with a hint, because only undefined leaves a run alone", async () => {
  const { clock, open, errors } = await setUp();
  const submitting = await open();
  await submitting.submit(greeter("a", "Hello"), "x", { startAt: clock.now() + 1_000 });
  await submitting.close();
  const worker = await open();
  worker.register({ name: "greeter", resolve: () => null as unknown as undefined });
  await clock.advance(1_000);
  await until(() => errors.length > 0);
  expect(errors[0]).toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("invalid agent null of resolve()"),
  });
  await worker.close();
});

it("an agent resolver that never returns is reported after 30 s, and close() does not wait longer", async () => {
  const { clock, open, errors } = await setUp();
  const submitting = await open();
  await submitting.submit(greeter("a", "Hello"), "x", { startAt: clock.now() + 1_000 });
  await submitting.close();
  const worker = await open();
  let isAsked = false;
  const resolve = (): Promise<never> => {
    isAsked = true;
    return new Promise<never>(() => undefined);
  };
  worker.register({ name: "greeter", resolve });
  await clock.advance(1_000);
  await until(() => isAsked);
  const closed = worker.close();
  await clock.advance(30_000);
  await closed;
  const message = expect.stringMatching(/^the resolver of greeter.* returned no agent .* within 30000 ms/);
  expect(errors).toMatchObject([{ code: "internal", message }]);
});

it("the context factory of an agent resolver makes the context of a resolved run", async () => {
  const { open } = await setUp();
  const asker: HostedAgent = {
    id: formatAgentId({ name: "greeter", key: "c" }),
    run: async (ctx) => {
      await ctx.waitForSignal("go");
      return (getRunContext()?.context as string | undefined) ?? null;
    },
  };
  const submitting = await open();
  const submitted = await submitting.submit(asker, "x", { context: "live" });
  await settle();
  await submitting.close();
  const worker = await open();
  worker.register({ name: "greeter", resolve: () => asker }, { context: () => "rebuilt" });
  const run = await findRun(worker, submitted);
  await run.signal("go");
  expect((await run.result()).output).toBe("rebuilt");
  await worker.close();
});

it("register() refuses an agent resolver without a function, with a key in its name, or for a name that is taken", async () => {
  const { runtime } = await setUp();
  runtime.register(resolver());
  const refused: readonly (readonly [unknown, RegExp])[] = [
    [{ name: "greeter", resolve: "x" }, /invalid resolve of register\(\)/u],
    [{ name: 7, resolve: () => undefined }, /agent|name/u],
    [{ name: "", resolve: () => undefined }, /agent|name/u],
    [{ name: "greeter/a", resolve: () => undefined }, /without a key/u],
    [{ name: "greeter", resolves: () => undefined, resolve: () => undefined }, /resolves.*resolve/u],
    [resolver(), /another resolver is registered for agents named greeter/u],
  ];
  for (const [value, message] of refused)
    expect(() => runtime.register(value as AgentResolver)).toThrow(message);
});

it("a worker remembers the latest 10,000 runs that its agent resolver leaves to other workers, and asks again about older ones", async () => {
  const resolvers = new AgentResolvers();
  resolvers.register({ name: "greeter", resolve: async () => undefined }, false);
  const run = (index: number) =>
    ({ runId: formatRunId(`r${index}`), agentId: formatAgentId({ name: "greeter" }) }) as RunRecord;
  for (let index = 0; index <= mostLeftAlone; index++)
    await expect(resolvers.resolve(run(index))).rejects.toMatchObject({ code: "version_mismatch" });
  expect(mostLeftAlone).toBe(10_000);
  expect([0, 1, mostLeftAlone].map((index) => resolvers.takes(run(index)))).toEqual([true, false, false]);
});
