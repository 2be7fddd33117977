import { expect, test } from "vitest";
import type { ToolCall } from "../../../src/kernel/index.ts";
import { agent, gate, setUp, settle, simpleTool, text } from "../runtime-setup.ts";

test("O5: a sequential call is a barrier at its position; between barriers calls run in parallel", async () => {
  const { runtime } = await setUp();
  const told: string[] = [];
  const doors = new Map<string, PromiseWithResolvers<void>>();
  const make = (name: string, sequential: boolean) =>
    simpleTool({
      name,
      sequential,
      execute: async (input) => {
        const which = String(input);
        const door = gate();
        doors.set(which, door);
        told.push(`+${which}`);
        await door.promise;
        told.push(`-${which}`);
        return text(which);
      },
    });
  const calls: ToolCall[] = [
    ["read", "a"],
    ["read", "b"],
    ["edit", "c"],
    ["edit", "d"],
    ["read", "e"],
    ["read", "f"],
  ].map(([toolName = "", input = ""]) => ({ callId: input, toolName, input }));
  const tools = [make("read", false), make("edit", true)];
  const work = agent(
    "work",
    async (ctx) => (await ctx.tools(calls)).map(({ output }) => ("text" in output ? output.text : "")),
    { tools },
  );
  const run = await runtime.submit(work, null);
  for (const open of ["b", "a", "c", "d", "f", "e"]) {
    await settle();
    doors.get(open)?.resolve();
  }
  expect((await run.result()).output).toEqual(["a", "b", "c", "d", "e", "f"]);
  expect(told.join(" ")).toBe("+a +b -b -a +c -c +d -d +e +f -f -e");
  await runtime.close();
});
