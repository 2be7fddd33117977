import { describe, expect, test } from "vitest";
import { modelFallback } from "../../../../src/agents/interception/middleware/index.ts";
import { Fault } from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { answerText, cancelled, chatScene, httpError, shownText } from "./contexts.ts";

describe("modelFallback()", () => {
  test.for([false, true])(
    "modelFallback() calls the next model in order when a model fails (streaming: %s)",
    async (streaming) => {
      const second = scriptedModel([{ error: new Fault("model_overloaded", "busy") }], { modelId: "second" });
      const third = scriptedModel(["third's"], { modelId: "third" });
      const scene = chatScene([{ error: httpError(401) }], { streaming });
      expect(answerText(await scene.call([modelFallback({ models: [second, third] })]))).toBe("third's");
      expect(scene.context.model).toBe(third);
      expect(scene.context.metadata["fallenBackFrom"]).toMatchObject([
        { modelId: "script" },
        { modelId: "second" },
      ]);
      expect(scene.told).toMatchObject([
        {
          type: "model_fallback",
          data: { from: { modelId: "script" }, to: { modelId: "second" }, kind: "auth" },
        },
        { type: "model_fallback", data: { to: { modelId: "third" }, kind: "overloaded", message: "busy" } },
      ]);
    },
  );

  test("modelFallback() rethrows the last model's error when all models fail", async () => {
    const second = scriptedModel([{ error: httpError(500, "second") }]);
    const scene = chatScene([{ error: httpError(500, "first") }]);
    await expect(scene.call([modelFallback({ models: [second] })])).rejects.toThrow("second");
    expect(scene.context.model).toBe(scene.model);
  });

  test("modelFallback() does not switch models after the first delta, because watchers would see two answers", async () => {
    const second = scriptedModel(["second's"]);
    const scene = chatScene([{ deltas: ["so far "], error: httpError(500) }], { streaming: true });
    await expect(scene.call([modelFallback({ models: [second] })])).rejects.toThrow("it failed");
    expect(second.calls).toHaveLength(0);
    expect(scene.told).toEqual([]);
    expect(shownText(scene.shown)).toBe("so far ");
  });

  test.for([
    ["a context overflow, which every model would refuse", new Fault("model_context_overflow", "too long")],
    ["a cancellation", cancelled],
    ["a misuse of middleware", new Fault("middleware_misuse", "bad")],
  ] as const)("modelFallback() does not call the next model after %s", async ([, error]) => {
    const second = scriptedModel(["second's"]);
    await expect(chatScene([{ error }]).call([modelFallback({ models: [second] })])).rejects.toBe(error);
    expect(second.calls).toHaveLength(0);
  });

  test("modelFallback() falls back only for the error kinds in its kinds option", async () => {
    const second = scriptedModel(["second's"]);
    const layer = modelFallback({ models: [second], kinds: ["context_overflow"] });
    const scene = chatScene([{ error: new Fault("model_context_overflow", "too long") }]);
    expect(answerText(await scene.call([layer]))).toBe("second's");
  });
});
