import { describe, expect, test } from "vitest";
import {
  Fault,
  Transcript,
  userMessage,
  type HostedAgent,
  type RunContext,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, setUp, simpleTool } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

function odd(): Fault {
  const loop: Record<string, unknown> = { when: new Date(0), amount: 10n };
  loop["self"] = loop;
  return new Fault("invalid_argument", "odd", { details: loop as never });
}

const stored = { when: "1970-01-01T00:00:00.000Z", amount: "10", self: "[contains itself]" };

const throwers: Readonly<Record<string, (ctx: RunContext) => Promise<unknown>>> = {
  "the code": async () => Promise.reject(odd()),
  "a step": (ctx) => ctx.step("weak", async () => Promise.reject(odd())),
  "a branch": (ctx) => ctx.parallel({ one: async () => Promise.reject(odd()) }),
  "a model": (ctx) => ctx.llm({ transcript: Transcript.of([userMessage("go")]) }),
};

describe.each(twoStores)("%s: a fault whose details are no JSON (J10)", (_name, prepare) => {
  test.each(Object.entries(throwers))(
    "ends the run when %s throws it, and does not loop",
    async (_who, run) => {
      const open = await prepare();
      const errors: Fault[] = [];
      const runtime = await createRuntime({
        store: await open(),
        runRetry: { maxRetries: 0 },
        onError: (error) => errors.push(error),
      });
      const model = scriptedModel([
        () => {
          throw odd();
        },
      ]);
      const weak: HostedAgent = agent("weak", async (ctx) => (await run(ctx), null), {
        models: { main: model },
      });
      const { status, error: failure } = await (await runtime.submit(weak, null)).result();
      expect(status).toBe("failed");
      expect(JSON.stringify(failure)).toContain(JSON.stringify(stored));
      expect(errors).toEqual([]);
      await runtime.close();
    },
  );

  test("reaches the model as a tool's error", async () => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open() });
    const tool = simpleTool({ name: "weak", execute: async () => Promise.reject(odd()) });
    const clerk = agent(
      "clerk",
      async (ctx) => (await ctx.tool({ callId: "1", toolName: "weak", input: {} })).isError,
      { tools: [tool] },
    );
    expect((await (await runtime.submit(clerk, null)).result()).output).toBe(true);
    await runtime.close();
  });
});

const notJson = { when: new Date(0) } as never;

test("J10: what a task reports is refused where it reports it", async () => {
  const { runtime, errors } = await setUp({ runRetry: { maxRetries: 0 } });
  const clerk = agent("clerk", async (ctx) => {
    ctx.report({ output: notJson });
  });
  expect((await (await runtime.submit(clerk, null)).result()).error?.code).toBe("not_json");
  expect(errors).toEqual([]);
});

test("J10: an input, its metadata and what is said to a run are refused to whoever gives them", async () => {
  const { runtime } = await setUp();
  const clerk = agent("clerk", async (ctx) => ctx.waitForSignal("go").then(() => "done"));
  const refused = { code: "not_json" };
  await expect(runtime.submit(clerk, notJson)).rejects.toMatchObject(refused);
  await expect(runtime.submit(clerk, null, { metadata: notJson })).rejects.toMatchObject(refused);
  const run = await runtime.submit(clerk, null);
  for (const order of [run.steer(notJson), run.followUp(notJson), run.signal("go", notJson)])
    await expect(order).rejects.toMatchObject(refused);
  await run.signal("go");
  expect((await run.result()).status).toBe("completed");
});
