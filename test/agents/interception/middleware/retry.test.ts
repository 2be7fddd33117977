import { describe, expect, test } from "vitest";
import { retry } from "../../../../src/agents/interception/middleware/index.ts";
import { BudgetExhaustedError, Fault, MiddlewareTermination } from "../../../../src/kernel/index.ts";
import { FakeClock } from "../../../../src/testing/index.ts";
import { text } from "../../../runtime/runtime-setup.ts";
import { answerText, cancelled, chatScene, httpError, rejection, resultText, toolScene } from "./contexts.ts";

const random = { next: () => 0.5 };

function setUp(options: Partial<Parameters<typeof retry>[0]> = {}) {
  const clock = new FakeClock();
  return { clock, layer: retry({ clock, random, maxRetries: 2, baseDelayMs: 100, jitter: 1, ...options }) };
}

describe("retry() of model calls", () => {
  test.for([false, true])(
    "retry() waits longer before each attempt, with jitter (streaming: %s)",
    async (streaming) => {
      const { clock, layer } = setUp();
      const scene = chatScene([{ error: httpError(503) }, { error: httpError(529) }, "there"], { streaming });
      const call = scene.call([layer]);
      await clock.advance(149);
      expect(scene.model.calls).toHaveLength(1);
      await clock.advance(1);
      expect(scene.model.calls).toHaveLength(2);
      await clock.advance(300);
      expect(answerText(await call)).toBe("there");
      expect(scene.told).toEqual([
        {
          type: "retry_start",
          data: expect.objectContaining({ attempt: 1, maxAttempts: 2, delayMs: 150, kind: "overloaded" }),
        },
        { type: "retry_start", data: expect.objectContaining({ attempt: 2, delayMs: 300 }) },
        { type: "retry_end", data: { attempt: 2, success: true } },
      ]);
    },
  );

  test("retry() fails with the last error after maxRetries attempts", async () => {
    const { clock, layer } = setUp();
    const scene = chatScene([1, 2, 3].map((n) => ({ error: httpError(500, `no ${n}`) })));
    const failed = rejection(scene.call([layer]));
    await clock.advance(10_000);
    expect(await failed).toMatchObject({ message: "no 3" });
    expect(scene.told.at(-1)).toEqual({ type: "retry_end", data: { attempt: 2, success: false } });
  });

  test("retry() waits at least Retry-After before the next attempt, also for an error that the runtime wrapped", async () => {
    const { clock, layer } = setUp();
    const cause = Object.assign(httpError(429), { headers: { "retry-after": "7" } });
    const error = new Fault("model_rate_limit", "slow down", { cause });
    const scene = chatScene([{ error }, "there"]);
    const call = scene.call([layer]);
    await clock.advance(6_999);
    expect(scene.model.calls).toHaveLength(1);
    await clock.advance(1);
    expect(answerText(await call)).toBe("there");
  });

  test.for([
    ["a wrong key", httpError(401)],
    ["a bad request", httpError(400)],
    ["an exhausted budget", new BudgetExhaustedError({ dimension: "tokens", limit: 1, used: 2 })],
    ["a cancellation", cancelled],
    ["a termination by middleware", new MiddlewareTermination("no")],
    ["a misuse of middleware", new Fault("middleware_misuse", "bad")],
  ] as const)("retry() makes no further attempt after %s", async ([, error]) => {
    const { layer } = setUp();
    const scene = chatScene([{ error }, "there"]);
    await expect(scene.call([layer])).rejects.toBe(error);
    expect(scene.model.calls).toHaveLength(1);
  });

  test("retry() repeats only the error kinds in its kinds option", async () => {
    const { clock, layer } = setUp({ kinds: ["content_blocked"] });
    const scene = chatScene([{ error: new Fault("model_content_blocked", "no") }, "there"]);
    const call = scene.call([layer]);
    await clock.advance(1_000);
    expect(answerText(await call)).toBe("there");
  });

  test("retry() stops waiting at once when the run is cancelled", async () => {
    const { clock, layer } = setUp();
    const scene = chatScene([{ error: httpError(500) }, "there"]);
    const failed = rejection(scene.call([layer]));
    await clock.advance(10);
    scene.abort.abort(cancelled);
    expect(await failed).toBe(cancelled);
    expect(clock.pending).toBe(0);
  });
});

describe("retry() of tool calls", () => {
  test("retry() repeats only the named tools, because a repeat can have a second side effect", async () => {
    const { layer } = setUp();
    expect(layer.function).toBeUndefined();
    const named = setUp({ tools: ["other"] });
    const scene = toolScene([httpError(500), "there"]);
    await expect(scene.call([named.layer])).rejects.toThrow("it failed");
    expect(scene.calls).toHaveLength(1);
  });

  test("T2: retry() repeats a tool call with an error result, and returns that result when no attempt succeeds", async () => {
    const broken = { ...text("broken"), isError: true };
    for (const [answers, said] of [
      [[broken, "there"], "there"],
      [[broken], "broken"],
    ] as const) {
      const { clock, layer } = setUp({ tools: ["look"], maxRetries: 1 });
      const scene = toolScene(answers);
      const call = scene.call([layer]);
      await clock.advance(1_000);
      expect(resultText(await call)).toBe(said);
      expect(scene.calls).toHaveLength(2);
    }
  });
});

test("F1: retry() with maxRetries: 0 adds no middleware", () => {
  expect(Object.keys(setUp({ maxRetries: 0 }).layer)).toEqual(["name"]);
});
