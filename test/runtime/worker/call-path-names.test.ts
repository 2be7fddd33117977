import { describe, expect, test } from "vitest";
import { HookManager } from "../../../src/entries/index.ts";
import { mcpServer } from "../../../src/entries/mcp.ts";
import { MiddlewarePipeline } from "../../../src/entries/middleware.ts";
import { formatAgentId, type CallPath, type HostedAgent } from "../../../src/kernel/index.ts";
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
  [
    { middleware: [{ chat: process }] },
    'unknown option "middleware" of callPath of agent OWNER: use callPath: new MiddlewarePipeline(middleware).callPath()',
  ],
  [
    new MiddlewarePipeline([{ chat: process }]),
    'unknown option "agent" of callPath of agent OWNER: a call path has no level agent',
  ],
  [{ permissions: {} }, 'unknown option "permissions" of callPath of agent OWNER: use callPath: { tool: com'],
  [{ guardrails: [] }, 'unknown option "guardrails" of callPath of agent OWNER: use callPath: { tool: comp'],
  [
    new (class {
      readonly model = { around: { process } };
      get middleware() {
        return [{ chat: process }];
      }
    })(),
    'unknown option "middleware" of callPath of agent OWNER: use callPath: new MiddlewarePipeline(middleware)',
  ],
  [
    { tool: { around: { process, function: process } } },
    'invalid around of tool of callPath of agent OWNER: "function" is never called, only process(); make a helper a private member (#function)',
  ],
  [
    { model: { around: { process, [Symbol("chat")]: process } } },
    "invalid around of model of callPath of agent OWNER: Symbol(chat) is never called, only process()",
  ],
  [
    { model: { around: process } },
    "invalid around of model of callPath of agent OWNER: expected an object with",
  ],
  [
    { tool: { before: [{ ...entry, after: entry.decide }] } },
    'invalid entry rules of before of tool of callPath of agent OWNER: "after" is never called, only decide() and remember()',
  ],
  [
    { tool: { after: [{ ...entry, remember: entry.decide }] } },
    'invalid entry rules of after of tool of callPath of agent OWNER: "remember" is never called, only decide()',
  ],
  [
    { tool: { before: [entry, entry.decide] } },
    "invalid entry 2 of before of tool of callPath of agent OWNER: expected { name, decide }, not a function",
  ],
  [
    { tool: { before: [{ name: "rules", Decide: entry.decide }] } },
    "invalid entry rules of before of tool of callPath of agent OWNER: it has no method decide; expected { name, decide }",
  ],
  [
    { tool: { before: [{ decide: entry.decide }] } },
    "invalid name undefined of entry 1 of before of tool of callPath of agent OWNER",
  ],
  [{ observer: {} }, "invalid observer of callPath of agent OWNER: it has no method observe; use new HookM"],
];

const policies: readonly (readonly [option: string, value: unknown, fix: string])[] = [
  ["middleware", [{ chat: process }], "use callPath: new MiddlewarePipeline(middleware).callPath()"],
  ["permissions", { check: () => undefined }, "use callPath: { tool: composeGate({ permissions }) }"],
  ["guardrails", [{ name: "pii" }], "use callPath: { tool: composeGate({ guardrails }) }"],
  ["hooks", new HookManager(), "use callPath: { observer: hooks }"],
  ["toolHooks", {}, "use callPath: { tool: composeGate({ hooks }) }"],
  ["extensions", [], "use new Agent({ extensions, architecture })"],
  ["maxToolCallsPerTurn", 1, "use new Agent({ maxToolCallsPerTurn, architecture })"],
  ["maxParallelToolCalls", 1, "use new Agent({ maxParallelToolCalls, architecture })"],
  ["maxTurns", 3, "use budget: { maxTurns }"],
  ["onApproval", () => ({ decision: "denied" }), "use permissions({ onAsk: onApproval })"],
  ["repairToolCall", () => undefined, "use callPath: { tool: { repair: repairToolCall } }"],
  ["stopHooks", [], "use new Agent({ stopHooks, architecture })"],
  ["stopWhen", () => true, "use new Agent({ stopWhen, architecture })"],
  ["prepareStep", () => ({}), "use new Agent({ prepareStep, architecture })"],
  ["reviewers", [], "use new Agent({ reviewers, architecture })"],
  ["compaction", {}, "use new Agent({ compaction, architecture })"],
  ["telemetry", {}, "new MiddlewarePipeline([tracing({ telemetry })]).callPath()"],
  ["middlewares", [], "it resembles middleware; use callPath: new MiddlewarePipeline(middleware).callPath()"],
  ["guardrail", {}, "it resembles guardrails; use callPath: { tool: composeGate({ guardrails }) }"],
  ["permission", {}, "it resembles permissions; use callPath: { tool: composeGate({ permissions }) }"],
  ["tool_hooks", {}, "it resembles toolHooks; use callPath: { tool: composeGate({ hooks }) }"],
];

describe("a custom agent with policy that only the class Agent accepts", () => {
  test.each(policies)(
    "register() and submit() refuse %s of an agent without the class Agent, also of a class",
    async (option, value, fix) => {
      const { runtime } = await setUp();
      class Clerk implements HostedAgent {
        readonly id = formatAgentId({ name: "clerk" });
        run = async (): Promise<string> => "done";
      }
      // The member belongs to the class, not to the instance.
      Object.defineProperty(Clerk.prototype, option, { get: () => value });
      const clerk = new Clerk();
      const fault = expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringContaining(`agent clerk has ${option}, which would have no effect`),
      });
      expect(() => runtime.register(clerk)).toThrow(fault);
      expect(() => runtime.register(clerk)).toThrow(fix);
      expect(() => runtime.register(agent("lead", async () => null, { subAgents: [clerk] }))).toThrow(fault);
      await expect(runtime.submit(clerk, null)).rejects.toThrow(fault);
      await runtime.close();
    },
  );
});

describe("a callPath with a member that has no meaning", () => {
  test.each(refused)(
    "register() and submit() refuse a callPath with a member that has no meaning: %j",
    async (path, problem) => {
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
    },
  );

  test("mcpServer() refuses a callPath with a member that has no meaning", async () => {
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

test("a callPath of an agent with all of its members is accepted", async () => {
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
