import { describe, expect, test } from "vitest";
import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  tool,
  type AgentOptions,
} from "../../../../src/entries/index.ts";
import { MiddlewareTermination, type Event, type Store } from "../../../../src/kernel/index.ts";
import type { Layer } from "../../../../src/assembly/middleware.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "rain",
});
const script = [{ toolCalls: [{ name: "look", input: {} }] }, "It rains."];

async function run(options: Partial<AgentOptions>, store: Store = memoryStore({ hash: sha256 })) {
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const worker = new Agent({ name: "scout", model: scriptedModel(script), tools: [look], ...options });
  const handle = await runtime.submit(worker, "Where?");
  const events: Event[] = [];
  for await (const event of handle.events()) if ("seq" in event) events.push(event);
  const result = await handle.result();
  const session = await store.sessions.read(result.sessionId);
  await runtime.close();
  return { result, events, session };
}

describe("middleware of an agent", () => {
  test("middleware wraps the agent's run, each model call and each tool call, in the listed order", async () => {
    const log: string[] = [];
    const noting = (name: string): Layer => {
      const at = (level: string) => async (_context: object, next: () => Promise<void>) => {
        log.push(`${name} ${level}`);
        await next();
      };
      return { name, agent: at("agent"), chat: at("chat"), function: at("function") };
    };
    const { result } = await run({ middleware: [noting("a"), noting("b")] });
    expect(result.output).toBe("It rains.");
    const levels = ["agent", "chat", "function", "chat"];
    expect(log).toEqual(levels.flatMap((level) => [`a ${level}`, `b ${level}`]));
  });

  test("J7: a result that middleware replaces is the run's result and is recorded in agent_end", async () => {
    const shouting: Layer = {
      agent: async (context, next) => {
        await next();
        const { result } = context;
        if (result !== undefined)
          context.result = { ...result, output: JSON.stringify(result.output).toUpperCase() };
      },
    };
    const { result, events } = await run({ middleware: [shouting] });
    expect(result).toMatchObject({ output: '"IT RAINS."', status: "completed" });
    expect(events.find(({ type }) => type === "agent_end")?.data).toMatchObject({ output: '"IT RAINS."' });
  });

  test("M1: middleware may answer instead of the agent, and the session records that answer", async () => {
    const model = scriptedModel([]);
    const answering: Layer = {
      agent: async (context) => {
        context.result = {
          output: `no ${JSON.stringify(context.input)}`,
          status: "guardrail_tripped",
          interruptionReason: "closed",
        };
      },
    };
    const { result, session } = await run({ model, middleware: [answering] });
    expect(result).toMatchObject({
      output: 'no "Where?"',
      status: "guardrail_tripped",
      interruptionReason: "closed",
    });
    expect(session.map(({ entry }) => (entry.type === "message" ? entry.message.role : ""))).toEqual([
      "user",
      "assistant",
    ]);
  });

  test("M2: middleware may run the agent again after a failure, and the session keeps only the last attempt", async () => {
    const model = scriptedModel([{ error: Object.assign(new Error("bad key"), { status: 401 }) }, "fine"]);
    const again: Layer = {
      agent: async (_context, next) => {
        try {
          await next();
        } catch {
          await next();
        }
      },
    };
    const { result, session } = await run({ model, middleware: [again] });
    expect(result).toMatchObject({ output: "fine", status: "completed" });
    expect(session).toHaveLength(2);
  });

  test.for(["agent", "chat", "function"] as const)(
    "M3: a MiddlewareTermination at the %s level stops the run as guardrail_tripped",
    async (level) => {
      const stopping: Layer = {
        name: "guard",
        [level]: () => Promise.reject(new MiddlewareTermination("no further", { by: "guard" })),
      };
      const { result } = await run({ middleware: [stopping] });
      expect(result).toMatchObject({
        status: "guardrail_tripped",
        error: { code: "guardrail_tripped", message: "no further", details: { by: "guard" } },
      });
    },
  );

  test.for(["agent", "chat", "function"] as const)(
    "M2: middleware at the %s level that neither calls next nor sets a result fails the run with an error that names it",
    async (level) => {
      const silent: Layer = { name: "silent", [level]: async () => {} };
      const { result } = await run({ middleware: [silent] });
      expect(result).toMatchObject({
        status: "failed",
        error: {
          code: "middleware_misuse",
          message: "middleware silent neither called next nor set context.result",
        },
      });
    },
  );

  test("middleware cannot set the status cancelled: the run fails with middleware_misuse", async () => {
    const lying: Layer = {
      agent: async (context) => {
        context.result = { output: "", status: "cancelled", interruptionReason: null };
      },
    };
    const { result } = await run({ middleware: [lying] });
    expect(result.error).toMatchObject({
      code: "middleware_misuse",
      message:
        "invalid status cancelled set by middleware around scout: throw an error to fail, cancel or stop a run",
    });
  });
});
