import { describe, expect, test } from "vitest";
import { mcpServer } from "../../../src/entries/mcp.ts";
import type { CallPath } from "../../../src/kernel/index.ts";
import { agent, setUp, simpleTool, text } from "../runtime-setup.ts";

const process = async (): Promise<void> => undefined;
const entry = { name: "rules", decide: () => undefined };

const refused: readonly (readonly [path: object, problem: string])[] = [
  [{ gate: {} }, 'unknown option "gate" of callPath of agent OWNER: use tool.before and tool.after'],
  [{ function: { process } }, 'unknown option "function" of callPath of agent OWNER: use tool.around'],
  [{ repair: () => undefined }, 'unknown option "repair" of callPath of agent OWNER: use tool.repair'],
  [{ chat: { process } }, 'unknown option "chat" of callPath of agent OWNER: use model.around'],
  [{ tool: { befor: [entry] } }, 'unknown option "befor" of tool of callPath of agent OWNER: use "before"'],
  [
    { tool: { before: entry.decide } },
    "invalid before of tool of callPath of agent OWNER: expected an array",
  ],
  [{ model: { before: [entry] } }, 'unknown option "before" of model of callPath of agent OWNER'],
];

describe("a callPath with a member that has no meaning", () => {
  test.each(refused)("register() and submit() refuse it: %j", async (path, problem) => {
    const { runtime } = await setUp();
    const caller = agent("caller", async () => null, { callPath: path });
    const parent = agent("parent", async () => null, { subAgents: [caller] });
    const fault = expect.objectContaining({
      code: "invalid_argument",
      message: expect.stringContaining(problem.replace("OWNER", caller.id)),
    });
    expect(() => runtime.register(caller)).toThrow(fault);
    expect(() => runtime.register(parent)).toThrow(fault);
    await expect(runtime.submit(caller, null)).rejects.toThrow(fault);
    await runtime.close();
  });

  test("mcpServer() refuses it", async () => {
    const { runtime } = await setUp();
    const tools = [simpleTool({ name: "write", execute: async () => text("done") })];
    const callPath = { gate: {} } as CallPath;
    await expect(mcpServer({ name: "desk", version: "1", tools, runtime, callPath })).rejects.toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringContaining('unknown option "gate" of callPath of agent mcp:desk'),
      }),
    );
    await runtime.close();
  });
});

test("a callPath with all of its members is accepted", async () => {
  const { runtime } = await setUp();
  const around = { process: async (_context: unknown, next: () => Promise<void>) => next() };
  const callPath: CallPath = {
    model: { around },
    tool: { repair: () => undefined, before: [entry], around, after: [entry] },
    observer: { observe: () => undefined, settled: async () => undefined },
  };
  const run = await runtime.submit(
    agent("caller", async () => "done", { callPath }),
    null,
  );
  expect((await run.result()).output).toBe("done");
  await runtime.close();
});
