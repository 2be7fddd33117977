import { expect, it } from "vitest";
import type { GatedCall, RunContext, ToolPipeline } from "../../../src/kernel/index.ts";
import { agent, setUp, settle, simpleTool, text } from "../runtime-setup.ts";

it("J7: the checks before a tool call see the same history in every process: calls in order, without hidden ones", async () => {
  const { runtime, open } = await setUp({ suspendAfterMs: 0 });
  const seen: string[] = [];
  let slow = Promise.withResolvers<void>();
  const call = (callId: string, toolName = "look") => ({ callId, toolName, input: {} });
  const look = simpleTool({
    name: "look",
    execute: async (_input, { callId }) => {
      if (callId === "slow") await slow.promise;
      if (callId === "quick") slow.resolve();
      return text(callId);
    },
  });
  const outer = simpleTool({
    name: "outer",
    execute: async (_input, { ctx }) => {
      await ctx.tool(call("hidden"));
      await ctx.tool(call("hidden too"));
      return text("outer");
    },
  });
  const decide = ({ call: { callId }, history }: GatedCall): undefined => {
    seen.push(`${callId}: ${history.map((settled) => settled.call.callId).join(" ")}`);
  };
  const pipeline: ToolPipeline = { before: [{ name: "watch", decide }] };
  const code = async (ctx: RunContext): Promise<void> => {
    await ctx.tools([call("slow"), call("quick")]);
    await ctx.tool(call("outer", "outer"));
    await ctx.race({ one: (branch) => branch.tool(call("raced")) });
    const first = Promise.withResolvers<void>();
    await ctx.parallel({
      left: async (branch) => {
        await first.promise;
        await branch.tool(call("left"));
      },
      right: async (branch) => {
        await branch.tool(call("right"));
        first.resolve();
      },
    });
    await ctx.waitForSignal("go");
    await ctx.tool(call("last"));
  };
  const worker = agent("worker", code, { tools: [look, outer], callPath: { tool: pipeline } });
  const run = await runtime.submit(worker, null);
  await settle();
  expect(seen.splice(0)).toEqual([
    "slow: ",
    "quick: ",
    "outer: slow quick",
    "hidden: slow quick",
    "hidden too: slow quick hidden",
    "raced: slow quick outer",
    "right: slow quick outer",
    "left: slow quick outer",
  ]);
  await runtime.close();
  slow = Promise.withResolvers<void>();
  const second = await open();
  second.register(worker);
  const found = await second.find(run.runId);
  await found?.signal("go");
  await found?.result();
  expect(seen).toEqual(["last: slow quick outer left right"]);
});
