import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool, type RunContext } from "../../../src/entries/index.ts";
import { agentIdOf, Transcript, userMessage, type LlmRequest } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent } from "../runtime-setup.ts";

/** Runs an agent whose tool keeps its context, and returns the context after the run has ended. */
async function keptContext(): Promise<RunContext> {
  let kept: RunContext | undefined;
  const keep = tool({
    name: "keep",
    description: "Keeps its context.",
    inputSchema: { type: "object" } as const,
    execute: (_input, { ctx }) => {
      kept = ctx;
      return "kept";
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "keep", input: {} }] }, "Done."]);
  await using runtime = await openRuntime();
  const result = await new Agent({ name: "keeper", model, tools: [keep] }).invoke("Go", { runtime });
  expect(result.status).toBe("completed");
  if (kept === undefined) throw new Error("the tool was not called");
  return kept;
}

const late: Readonly<Record<string, (ctx: RunContext) => Promise<unknown>>> = {
  step: (ctx) => ctx.step("late", async () => 1),
  llm: (ctx) => ctx.llm({ transcript: Transcript.of([userMessage("Hi")]) }),
  tool: (ctx) => ctx.tool({ callId: "c2", toolName: "keep", input: {} }),
  sleep: (ctx) => ctx.sleep(1_000),
  waitForSignal: (ctx) => ctx.waitForSignal("go"),
  now: (ctx) => ctx.now(),
  parallel: (ctx) => ctx.parallel({ one: async () => 1 }),
  spawn: (ctx) => ctx.spawn(agentIdOf("keeper"), "Hi"),
};

describe("the context of a tool", () => {
  test.for(Object.keys(late))(
    "the context of a tool rejects %s with closed after the run has ended",
    async (name) => {
      const ctx = await keptContext();
      await expect(late[name]?.(ctx)).rejects.toMatchObject({
        code: "closed",
        message: expect.stringContaining(
          "had ended; await all work before the agent or the tool returns",
        ) as string,
      });
    },
  );
});

describe("ctx.llm", () => {
  test.for([{}, null, { transcript: null }, { transcript: [] }, { messages: [] }])(
    "ctx.llm refuses the request %j without a transcript, and the next model call takes its place in the journal",
    async (request) => {
      const model = scriptedModel(["Done."]);
      const caller = {
        ...agent("caller", async (ctx) => {
          const refused = await ctx.llm(request as unknown as LlmRequest).then(
            () => "accepted",
            (error: Error) => error.message,
          );
          const reply = await ctx.llm({ transcript: Transcript.of([userMessage("Hi")]) });
          return [refused, reply.message.role];
        }),
        models: { main: model },
      };
      await using runtime = await openRuntime();
      const run = await runtime.submit(caller, null);
      const { output } = await run.result();
      expect(output).toEqual([
        expect.stringMatching(/^invalid transcript .* of ctx\.llm\(\): expected a Transcript; use ctx\.llm/u),
        "assistant",
      ]);
      expect(model.calls).toHaveLength(1);
    },
  );
});
