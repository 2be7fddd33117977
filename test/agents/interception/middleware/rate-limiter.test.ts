import { describe, expect, test } from "vitest";
import { Agent } from "../../../../src/assembly/agent.ts";
import {
  rateLimiter,
  type RateLimiterOptions,
} from "../../../../src/agents/interception/middleware/index.ts";
import { FakeClock, scriptedModel } from "../../../../src/testing/index.ts";
import { setUp as openBench, settle } from "../../../runtime/runtime-setup.ts";
import { cancelled, chatScene, rejection, runScene, toolScene, type Who } from "./contexts.ts";

function setUp(options: Partial<RateLimiterOptions> = {}) {
  const clock = new FakeClock();
  const layer = rateLimiter({ clock, burst: 2, perSecond: 10, ...options });
  const done: string[] = [];
  const ask = (name: string, who: Who = {}) => {
    const scene = chatScene(["hi"], who);
    return { ...scene, call: scene.call([layer]).then(() => void done.push(name)) };
  };
  return { clock, layer, done, ask };
}

describe("rateLimiter()", () => {
  test("rateLimiter() lets a burst through at once, then further calls in arrival order as tokens refill", async () => {
    const { clock, done, ask } = setUp();
    const calls = ["a", "b", "c", "d"].map((name) => ask(name));
    await clock.advance(0);
    expect(done).toEqual(["a", "b"]);
    await clock.advance(99);
    expect(done).toEqual(["a", "b"]);
    await clock.advance(1);
    expect(done).toEqual(["a", "b", "c"]);
    await clock.advance(100);
    expect(done).toEqual(["a", "b", "c", "d"]);
    expect(calls.map(({ context }) => context.metadata["throttledMs"])).toEqual([
      undefined,
      undefined,
      100,
      200,
    ]);
    await Promise.all(calls.map(({ call }) => call));
  });

  test("rateLimiter() keeps a separate bucket per tenant", async () => {
    const { clock, done, ask } = setUp({ burst: 1 });
    const calls = [
      ask("a1", { tenantId: "a" }),
      ask("a2", { tenantId: "a" }),
      ask("b1", { tenantId: "b" }),
      ask("none"),
    ];
    await clock.advance(0);
    expect(done.toSorted()).toEqual(["a1", "b1", "none"]);
    await clock.advance(100);
    await Promise.all(calls.map(({ call }) => call));
  });

  test("rateLimiter() stops the run as guardrail_tripped with onLimit: terminate", async () => {
    const { ask } = setUp({ burst: 1, onLimit: "terminate" });
    await ask("a").call;
    await expect(ask("b").call).rejects.toMatchObject({ code: "guardrail_tripped", by: "rate-limiter" });
  });

  test("a call that would wait longer than maxWaitMs of rateLimiter() stops the run and uses no token", async () => {
    const { clock, done, ask } = setUp({ burst: 1, maxWaitMs: 100 });
    const [first, second, third] = [ask("a"), ask("b"), ask("c")];
    await expect(third.call).rejects.toMatchObject({ code: "guardrail_tripped" });
    await clock.advance(100);
    const fourth = ask("d");
    await clock.advance(100);
    expect(done).toEqual(["a", "b", "d"]);
    await Promise.all([first.call, second.call, fourth.call]);
  });

  test("a call that is cancelled while it waits for rateLimiter() returns its token", async () => {
    const { clock, done, ask } = setUp({ burst: 1 });
    const [first, second] = [ask("a"), ask("b")];
    const stopped = rejection(second.call);
    await clock.advance(0);
    second.abort.abort(cancelled);
    expect(await stopped).toBe(cancelled);
    const third = ask("c");
    await clock.advance(100);
    expect(done).toEqual(["a", "c"]);
    await Promise.all([first.call, third.call]);
  });

  test("rateLimiter() limits only calls of its configured level", async () => {
    const tools = setUp({ level: "function", burst: 1, onLimit: "terminate" }).layer;
    await toolScene(["hi"]).call([tools]);
    await expect(toolScene(["hi"]).call([tools])).rejects.toMatchObject({ code: "guardrail_tripped" });
    const runs = setUp({ level: "agent" }).layer;
    expect(Object.keys(runs)).toEqual(["name", "agent"]);
    expect(runScene().context.parentId).toBeNull();
  });

  test("rateLimiter() refills no token while the clock is set back, and lets calls pass again once time advances", async () => {
    let now = 1_000_000;
    const clock = { now: () => now, schedule: () => () => {} };
    const { layer } = { layer: rateLimiter({ clock, burst: 1, perSecond: 1, onLimit: "terminate" }) };
    await chatScene(["hi"]).call([layer]);
    now -= 500_000;
    await expect(chatScene(["hi"]).call([layer])).rejects.toMatchObject({ code: "guardrail_tripped" });
    now += 1_000;
    await chatScene(["hi"]).call([layer]);
  });

  test.for([{ burst: 0 }, { burst: NaN }, { perSecond: 0 }, { perSecond: -1 }, { maxWaitMs: -1 }])(
    "rateLimiter() refuses the invalid options %o",
    (options) => {
      expect(() => setUp(options)).toThrow(
        /invalid \w+ .* of rateLimiter\(\): expected a number (?:from|above)/u,
      );
    },
  );
});

test("a tenant that rateLimiter() slows down does not block other tenants, and its waiting time survives a release of its run", async () => {
  const { runtime, clock, open } = await openBench({ unknownPrice: "ignore", concurrency: 1 });
  const limiter = rateLimiter({ clock, burst: 1, perSecond: 0.01 });
  const model = scriptedModel(["one", "two", "three"]);
  const scout = new Agent({ name: "scout", model, middleware: [limiter] });
  const submit = (tenantId: string) => runtime.submit(scout, "go", { tenantId });
  expect((await (await submit("acme")).result()).output).toBe("one");
  const throttled = await submit("acme");
  await settle();
  expect((await (await submit("other")).result()).output).toBe("two");
  await clock.advance(50_000);
  await runtime.close();
  const second = await open();
  second.register(scout);
  const done = (await second.find(throttled.runId))?.result();
  await settle();
  // Half of the wait passed before the restart and counts.
  await clock.advance(50_000);
  expect((await done)?.output).toBe("three");
  await second.close();
});
