import { expect, test } from "vitest";
import { agent, setUp, settle } from "../runtime-setup.ts";

const unreadable: readonly (readonly [string, () => string])[] = [
  [
    "throws",
    () => {
      throw new Error("no output");
    },
  ],
  ["is not JSON", () => 5n as unknown as string],
  ["is a promise", () => Promise.reject(new Error("late")) as unknown as string],
];

test.each(unreadable)("a task ends without an output if its reported output %s", async (_what, output) => {
  const { runtime, events } = await setUp();
  const failing = agent("failing", async (ctx) => {
    ctx.report({ output });
    throw new TypeError("boom");
  });
  const failed = await (await runtime.submit(failing, null)).result();
  expect(failed).toMatchObject({ status: "failed", output: null, error: { message: "boom" } });
  const waiting = agent("waiting", async (ctx) => {
    ctx.report({ output });
    await ctx.waitForSignal("never");
  });
  const run = await runtime.submit(waiting, null);
  await settle();
  await run.cancel("stop");
  expect(await run.result()).toMatchObject({ status: "cancelled", output: null });
  const hooks = (await events(run.runId)).filter(({ type }) => type === "hook_error");
  expect(hooks).toMatchObject([{ data: { hook: "report" } }]);
});

const refused: readonly (readonly [string, () => object, string])[] = [
  ["a promise as the output", () => ({ output: Promise.reject(new Error("late")) }), "output.*is a promise"],
  [
    "an async function as the output",
    () => ({
      output: async () => {
        throw new Error("late");
      },
    }),
    "output.*is an async function",
  ],
  [
    "an async function as `abandoned`",
    () => ({ abandoned: async () => "late" }),
    "abandoned.*async function",
  ],
];

test.each(refused)("ctx.report() refuses %s", async (_what, report, message) => {
  const { runtime } = await setUp();
  const reporting = agent("reporting", async (ctx) => ctx.report(report()));
  expect(await (await runtime.submit(reporting, null)).result()).toMatchObject({
    status: "failed",
    error: { code: "invalid_argument", message: expect.stringMatching(message) as string },
  });
});
