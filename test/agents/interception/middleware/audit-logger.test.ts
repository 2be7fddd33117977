import { describe, expect, test } from "vitest";
import {
  auditLogger,
  MiddlewarePipeline,
  type AuditLine,
} from "../../../../src/agents/interception/middleware/index.ts";
import { Agent, openRuntime, tool } from "../../../../src/entries/index.ts";
import { FakeClock, scriptedModel } from "../../../../src/testing/index.ts";
import { chatScene, httpError, runScene, toolScene } from "./contexts.ts";

function sink(): { lines: AuditLine[]; record: (line: AuditLine) => Promise<void> } {
  const lines: AuditLine[] = [];
  return { lines, record: async (line) => void lines.push(line) };
}

describe("auditLogger()", () => {
  test.for([false, true])(
    "auditLogger() writes one line per model call with actor, user, tenant and outcome (streaming: %s)",
    async (streaming) => {
      const log = sink();
      await chatScene(["hi there"], { streaming, tenantId: "a", userId: "ann" }).call([auditLogger({ log })]);
      expect(log.lines).toEqual([
        {
          runId: "run_1",
          actor: "scout",
          action: "model_call",
          details: expect.objectContaining({
            tenantId: "a",
            userId: "ann",
            model: "scripted/script",
            messages: 1,
            last: "hello",
            answer: "hi there",
            stopReason: "stop",
          }),
        },
      ]);
    },
  );

  test("auditLogger() writes one line per tool call and one line per agent run", async () => {
    const log = sink();
    const layer = auditLogger({ log });
    await toolScene(["rain"]).call([layer]);
    const { context } = runScene();
    await new MiddlewarePipeline([layer]).agent?.process(context, async () => {
      context.result = { output: "done", status: "completed", interruptionReason: null };
    });
    expect(log.lines.map(({ action, details }) => [action, details])).toEqual([
      ["tool_call", expect.objectContaining({ tool: "look", arguments: '{"town":"Sens"}', isError: false })],
      ["agent_run", expect.objectContaining({ status: "completed", output: '"done"' })],
    ]);
  });

  test("auditLogger() writes a line for a failed model call and rethrows the error", async () => {
    const log = sink();
    const error = httpError(500, "down");
    await expect(chatScene([{ error }]).call([auditLogger({ log })])).rejects.toBe(error);
    expect(log.lines[0]?.details).toMatchObject({ failure: { code: "internal", message: "down" } });
  });

  test("auditLogger() cuts prompts and answers to 500 characters by default, and keeps them whole with maxChars: null", async () => {
    const long = "é".repeat(2_000);
    const [short, full] = [sink(), sink()];
    await chatScene([long]).call([auditLogger({ log: short }), auditLogger({ log: full, maxChars: null })]);
    expect(short.lines[0]?.details["answer"]).toBe(`${long.slice(0, 500)}[...]`);
    expect(full.lines[0]?.details["answer"]).toBe(long);
  });

  test("S4: a failed audit write is recorded as hook_error, and fails the call when the log is required", async () => {
    const log = { record: () => Promise.reject(new Error("disk full")) };
    const scene = chatScene(["hi"]);
    await scene.call([auditLogger({ log })]);
    expect(scene.told).toEqual([
      {
        type: "hook_error",
        data: { hook: "audit-logger", failure: expect.objectContaining({ message: "disk full" }) },
      },
    ]);
    await expect(chatScene(["hi"]).call([auditLogger({ log, required: true })])).rejects.toThrow("disk full");
  });

  test("auditLogger({ required: true }) stops the run at once if its log cannot be written", async () => {
    const book = (failing: string) => ({
      record: ({ action }: { readonly action: string }) =>
        action === failing ? Promise.reject(new Error("disk full")) : undefined,
    });
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object", properties: {} } as const,
      execute: () => "rain",
    });
    // The clock does not move, so a task that is started again after a delay would never end.
    await using runtime = await openRuntime({ clock: new FakeClock(), unknownPrice: "ignore" });
    for (const [action, calls] of [
      ["model_call", 1],
      ["tool_call", 1],
      ["agent_run", 2],
    ] as const) {
      const model = scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "Done."]);
      const middleware = [auditLogger({ log: book(action), required: true })];
      const agent = new Agent({ name: `clerk-${action}`, model, tools: [look], middleware });
      const { status, interruptionReason } = await agent.invoke("Look", { runtime });
      expect({ action, status, interruptionReason, calls: model.calls.length }).toEqual({
        action,
        status: "guardrail_tripped",
        interruptionReason: expect.stringContaining("the audit log cannot be written: disk full"),
        calls,
      });
    }
  });
});
