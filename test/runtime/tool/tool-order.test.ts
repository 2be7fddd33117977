import { expect, test } from "vitest";
import type { ToolCall, ToolsOptions } from "../../../src/kernel/index.ts";
import { agent, gate, setUp, settle, simpleTool, text } from "../runtime-setup.ts";

/** An agent that calls the tools `read` and `edit`, the sequential one. A call ends when its door is opened. */
function caller(names: readonly (readonly ["read" | "edit", string])[], options: ToolsOptions = {}) {
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
  const calls: ToolCall[] = names.map(([toolName, input]) => ({ callId: input, toolName, input }));
  const work = agent(
    "work",
    async (ctx) =>
      (await ctx.tools(calls, options)).map(({ output }) => ("text" in output ? output.text : "")),
    { tools: [make("read", false), make("edit", true)] },
  );
  const openEach = async (order: readonly string[]): Promise<void> => {
    for (const which of order) {
      await settle();
      doors.get(which)?.resolve();
    }
  };
  return { work, told, openEach };
}

const mixed = [
  ["read", "a"],
  ["read", "b"],
  ["edit", "c"],
  ["edit", "d"],
  ["read", "e"],
  ["read", "f"],
] as const;

test("O5: a sequential tool call runs alone at its position in the turn; the calls between run in parallel", async () => {
  const { runtime } = await setUp();
  const { work, told, openEach } = caller(mixed);
  const run = await runtime.submit(work, null);
  await openEach(["b", "a", "c", "d", "f", "e"]);
  expect((await run.result()).output).toEqual(["a", "b", "c", "d", "e", "f"]);
  expect(told.join(" ")).toBe("+a +b -b -a +c -c +d -d +e +f -f -e");
  await runtime.close();
});

test("ctx.tools() runs at most maxParallel calls at a time and starts the remaining calls in order", async () => {
  const { runtime } = await setUp();
  const reads = ["a", "b", "c", "d", "e"].map((input) => ["read", input] as const);
  const { work, told, openEach } = caller(reads, { maxParallel: 2 });
  const run = await runtime.submit(work, null);
  await openEach(["b", "c", "a", "e", "d"]);
  expect((await run.result()).output).toEqual(["a", "b", "c", "d", "e"]);
  expect(told.join(" ")).toBe("+a +b -b +c -c +d -a +e -e -d");
  await runtime.close();
});

test("a sequential tool call still runs alone if maxParallel limits the calls around it", async () => {
  const { runtime } = await setUp();
  const { work, told, openEach } = caller(mixed, { maxParallel: 1 });
  const run = await runtime.submit(work, null);
  await openEach(["a", "b", "c", "d", "e", "f"]);
  expect((await run.result()).output).toEqual(["a", "b", "c", "d", "e", "f"]);
  expect(told.join(" ")).toBe("+a -a +b -b +c -c +d -d +e -e +f -f");
  await runtime.close();
});

test("tool calls that wait because of maxParallel do not start after the run is cancelled", async () => {
  const { runtime } = await setUp();
  const { work, told, openEach } = caller(mixed, { maxParallel: 1 });
  const run = await runtime.submit(work, null);
  await settle();
  await run.cancel("enough");
  await openEach(["a"]);
  expect((await run.result()).status).toBe("cancelled");
  await settle();
  expect(told.join(" ")).toBe("+a -a");
  await runtime.close();
});

test.each([0, 1.5, Infinity])("ctx.tools() refuses maxParallel %s", async (maxParallel) => {
  const { runtime } = await setUp();
  const { work, told } = caller(mixed, { maxParallel });
  const run = await runtime.submit(work, null);
  expect(await run.result()).toMatchObject({
    status: "failed",
    error: { message: `invalid maxParallel ${maxParallel} of ctx.tools(): expected an integer from 1` },
  });
  expect(told).toEqual([]);
  await runtime.close();
});
