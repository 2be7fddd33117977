import { expect, test } from "vitest";
import { z } from "zod";
import { Agent, openRuntime, tool } from "../../src/index.ts";
import type { Model } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

test("agent.invoke() inside a tool is cancelled with the run that called the tool", async () => {
  const runtime = await openRuntime({ unknownPrice: "ignore", stopGraceMs: 10 });
  const isAsked = Promise.withResolvers<void>();
  const silent: Model = {
    provider: "test",
    modelId: "silent",
    generate: () => {
      isAsked.resolve();
      return new Promise(() => {});
    },
    stream: async function* stream() {
      yield* [];
    },
  };
  const inner = new Agent({ name: "inner", model: silent });
  const consult = tool({
    name: "consult",
    description: "Asks another agent",
    inputSchema: z.object({}),
    execute: async () => (await inner.invoke("Think", { runtime })).output,
  });
  const model = scriptedModel([{ toolCalls: [{ name: "consult", input: {} }] }, "unreached"]);
  const outer = new Agent({ name: "outer", model, tools: [consult] });
  const run = await outer.submit("go", { runtime });
  await isAsked.promise;
  await run.cancel("no longer needed");
  expect(await run.result()).toMatchObject({ status: "cancelled" });
  const [{ runId } = { runId: "" }] = (await runtime.list({ agentId: "inner" })).runs;
  const innerRun = await runtime.find(runId);
  expect(await innerRun?.result()).toMatchObject({
    status: "cancelled",
    interruptionReason: "no longer needed",
  });
  await runtime.close();
});
