import { describe, expect, test } from "vitest";
import { auditLogger, MiddlewarePipeline, type AuditLine } from "../../../src/agents/middleware/index.ts";
import { chatScene, httpError, runScene, toolScene } from "./contexts.ts";

function sink(): { lines: AuditLine[]; record: (line: AuditLine) => Promise<void> } {
  const lines: AuditLine[] = [];
  return { lines, record: async (line) => void lines.push(line) };
}

describe("audit logger", () => {
  test.for([false, true])(
    "a line for a model call, with who and how it ended (streaming: %s)",
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

  test("a line for a tool's call and one for a run", async () => {
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

  test("what fails is a line too, and goes on failing", async () => {
    const log = sink();
    const error = httpError(500, "down");
    await expect(chatScene([{ error }]).call([auditLogger({ log })])).rejects.toBe(error);
    expect(log.lines[0]?.details).toMatchObject({ failure: { code: "internal", message: "down" } });
  });

  test("prompts and answers are shortened unless told otherwise", async () => {
    const long = "é".repeat(2_000);
    const [short, full] = [sink(), sink()];
    await chatScene([long]).call([auditLogger({ log: short }), auditLogger({ log: full, maxChars: null })]);
    expect(short.lines[0]?.details["answer"]).toBe(`${long.slice(0, 500)}[...]`);
    expect(full.lines[0]?.details["answer"]).toBe(long);
  });

  test("S4: a line that cannot be written is told in the run's log, or stops the run when it is required", async () => {
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
});
