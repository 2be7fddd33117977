import { describe, expect, test } from "vitest";
import {
  Fault,
  formatAgentId,
  Transcript,
  userMessage,
  type HostedAgent,
  type RunContext,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, setUp, simpleTool } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

/** A fault whose details contain a date, a bigint and a cycle. */
function nonJsonFault(): Fault {
  const loop: Record<string, unknown> = { when: new Date(0), amount: 10n };
  loop["self"] = loop;
  return new Fault("invalid_argument", "details are not JSON", { details: loop as never });
}

const stored = { when: "1970-01-01T00:00:00.000Z", amount: "10", self: "[contains itself]" };

const throwers: Readonly<Record<string, (ctx: RunContext) => Promise<unknown>>> = {
  "the agent's code": async () => Promise.reject(nonJsonFault()),
  "a step": (ctx) => ctx.step("weak", async () => Promise.reject(nonJsonFault())),
  "a branch": (ctx) => ctx.parallel({ one: async () => Promise.reject(nonJsonFault()) }),
  "a model": (ctx) => ctx.llm({ transcript: Transcript.of([userMessage("go")]) }),
};

describe.each(twoStores)("J10: a fault whose details are not JSON, in a %s store", (_name, prepare) => {
  test.each(Object.entries(throwers))(
    "J10: a fault with details that are not JSON ends the run as failed, without a retry, when %s throws it",
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
          throw nonJsonFault();
        },
      ]);
      const weak: HostedAgent = agent("weak", async (ctx) => (await run(ctx), null), {
        models: { main: model },
      });
      const { status, error } = await (await runtime.submit(weak, null)).result();
      expect(status).toBe("failed");
      expect(JSON.stringify(error)).toContain(JSON.stringify(stored));
      expect(errors).toEqual([]);
      await runtime.close();
    },
  );

  test("J10: a fault whose details are not JSON becomes an error result when a tool throws it", async () => {
    const open = await prepare();
    const runtime = await createRuntime({ store: await open() });
    const tool = simpleTool({ name: "weak", execute: async () => Promise.reject(nonJsonFault()) });
    const clerk = agent(
      "clerk",
      async (ctx) => (await ctx.tool({ callId: "1", toolName: "weak", input: {} })).isError,
      { tools: [tool] },
    );
    expect((await (await runtime.submit(clerk, null)).result()).output).toBe(true);
    await runtime.close();
  });
});

/** Values without a JSON text. */
const textless = {
  "a value that contains itself": () => {
    const loop: Record<string, unknown> = {};
    return (loop["self"] = loop);
  },
  "a bigint": () => 10n,
  "10,000 levels": () => Array.from({ length: 10_000 }).reduce<unknown>((value) => [value], "core"),
};

const elsewhere = formatAgentId({ name: "elsewhere" });
const senders: Readonly<Record<string, (ctx: RunContext, value: never) => Promise<unknown>>> = {
  "ctx.spawn": (ctx, value) => ctx.spawn(elsewhere, value),
  "ctx.send": (ctx, value) => ctx.send(elsewhere, value),
  "ctx.ask": (ctx, value) => ctx.ask(elsewhere, value),
};

describe.each(twoStores)("J10: a value without a JSON text, in a %s store", (_name, prepare) => {
  const cases = Object.entries(senders).flatMap(([call, send]) =>
    Object.entries(textless).map(([what, make]) => ({ call, send, what, make })),
  );
  test.each(cases)(
    "J10: a value without a JSON text is refused by $call, and the code may continue: $what",
    async ({ send, make }) => {
      const open = await prepare();
      const errors: Fault[] = [];
      const runtime = await createRuntime({ store: await open(), onError: (error) => errors.push(error) });
      const clerk = agent("clerk", async (ctx) => {
        const refused = await send(ctx, make() as never).catch((error: unknown) => error);
        return ctx.step("after", async () => Fault.is(refused) && refused.code);
      });
      expect(await (await runtime.submit(clerk, null)).result()).toMatchObject({ output: "not_json" });
      expect(errors).toEqual([]);
      await runtime.close();
    },
  );
});

const notJson = { when: new Date(0) } as never;

test("J10: ctx.report() throws not_json for an output that is not JSON", async () => {
  const { runtime, errors } = await setUp({ runRetry: { maxRetries: 0 } });
  const clerk = agent("clerk", async (ctx) => {
    ctx.report({ output: notJson });
  });
  expect((await (await runtime.submit(clerk, null)).result()).error?.code).toBe("not_json");
  expect(errors).toEqual([]);
});

test("J10: submit(), steer(), followUp() and signal() reject values that are not JSON", async () => {
  const { runtime } = await setUp();
  const clerk = agent("clerk", async (ctx) => ctx.waitForSignal("go").then(() => "done"));
  const refused = { code: "not_json" };
  await expect(runtime.submit(clerk, notJson)).rejects.toMatchObject(refused);
  await expect(runtime.submit(clerk, null, { metadata: notJson })).rejects.toMatchObject(refused);
  const run = await runtime.submit(clerk, null);
  for (const sending of [run.steer(notJson), run.followUp(notJson), run.signal("go", notJson)])
    await expect(sending).rejects.toMatchObject(refused);
  await run.signal("go");
  expect((await run.result()).status).toBe("completed");
});
