import { expect, it } from "vitest";
import { Transcript, userMessage, type CallPath, type RunHandle } from "../../../src/kernel/index.ts";
import { getRunContext } from "../../../src/runtime/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, setUp, simpleTool, text } from "../runtime-setup.ts";

it("getRunContext() returns the facts of the run in tools, middleware, gates and observers, also while runs wake each other", async () => {
  const { runtime } = await setUp();
  const runs: RunHandle[] = [];
  const [both, woken] = [gate(), gate()];
  let waiting = 0;
  const seen: [where: string, expected: unknown, found: unknown][] = [];
  const note = (where: string, expected: unknown): void =>
    void seen.push([where, expected, getRunContext()?.userId]);
  const callPath: CallPath = {
    model: {
      around: {
        process: async ({ facts }, next) => {
          note("chat", facts.userId);
          await next();
          note("chat after", facts.userId);
        },
      },
    },
    tool: {
      before: [{ name: "gate", decide: ({ facts }) => (note("gate", facts.userId), undefined) }],
      around: { process: async ({ facts }, next) => (note("function", facts.userId), next()) },
      after: [{ name: "gate", decide: ({ facts }) => (note("gate after", facts.userId), undefined) }],
    },
    observer: {
      observe: ({ runId }) =>
        note("observer", runs.find((run) => run.runId === runId) === runs[0] ? "ada" : "bob"),
      settled: async () => undefined,
    },
  };
  const wake = simpleTool({
    name: "wake",
    execute: async (_input, { facts }) => {
      note("tool", facts.userId);
      if (++waiting === 2) both.resolve();
      await both.promise;
      // One run sends a message to the other; what that causes belongs to the other run.
      if (facts.userId === "ada") await runs[1]?.signal("go").then(woken.resolve);
      await woken.promise;
      note("tool after", facts.userId);
      return text("done");
    },
  });
  const worker = agent(
    "worker",
    async (ctx) => {
      await ctx.llm({ transcript: Transcript.of([userMessage("hi")]) });
      await ctx.tool({ callId: "1", toolName: "wake", input: {} });
      if (ctx.facts.userId === "bob") await ctx.waitForSignal("go");
      await ctx.step("end", async () => (note("step", ctx.facts.userId), null));
    },
    { tools: [wake], models: { main: scriptedModel(["a", "b"]) }, callPath },
  );
  for (const userId of ["ada", "bob"]) runs.push(await runtime.submit(worker, null, { userId }));
  for (const run of runs) expect((await run.result()).status).toBe("completed");
  expect(seen.filter(([, expected, found]) => expected !== found)).toEqual([]);
  expect(new Set(seen.map(([where]) => where))).toEqual(
    new Set([
      "chat",
      "chat after",
      "function",
      "gate",
      "gate after",
      "observer",
      "tool",
      "tool after",
      "step",
    ]),
  );
});
