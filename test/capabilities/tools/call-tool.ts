import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import {
  Fault,
  type JsonValue,
  type Tool,
  type ToolContext,
  type ToolResult,
} from "../../../src/kernel/index.ts";

/**
 * Calls a tool as the runtime does: coerces and validates the input, and returns what the tool throws as a result (T2).
 */
export async function callTool(
  tool: Tool,
  input: JsonValue,
  context: Partial<ToolContext> = {},
): Promise<ToolResult> {
  try {
    const parsed = await tool.parse(input);
    const signal = new AbortController().signal;
    const ctx = { step: (_name: string, body: () => Promise<unknown>) => body() };
    const given = { ctx, signal, progress: () => {}, idempotencyKey: "run/task/1", callId: "c", ...context };
    return await tool.execute(parsed, given as ToolContext);
  } catch (error) {
    return { output: { type: "text", text: Fault.from(error).message }, isError: true };
  }
}

export function textOf({ output }: ToolResult): string {
  return output.type === "text" ? output.text : JSON.stringify(output);
}

/** Creates a folder that is deleted when the test ends. */
export async function tempFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-tools-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}
