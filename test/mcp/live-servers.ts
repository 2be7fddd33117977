import { fileURLToPath } from "node:url";
import {
  formatAgentId,
  type HostedAgent,
  type JsonObject,
  type JsonValue,
  type Runtime,
  type Tool,
  type ToolResult,
} from "../../src/kernel/index.ts";
import type { StdioServerConfig } from "../../src/assembly/mcp.ts";

/** Configurations of the reference servers that are installed here, each in its own process. */
export const everything: StdioServerConfig = {
  command: process.execPath,
  args: [program(import.meta.resolve("@modelcontextprotocol/server-everything/package.json")), "stdio"],
};

export function filesystem(...roots: readonly string[]): StdioServerConfig {
  return {
    command: process.execPath,
    args: [program(import.meta.resolve("@modelcontextprotocol/server-filesystem/package.json")), ...roots],
  };
}

function program(manifest: string): string {
  return fileURLToPath(new URL("dist/index.js", manifest));
}

/** Agent that executes one tool call and returns its result. */
export function caller(tools: readonly Tool<JsonObject>[]): HostedAgent {
  return {
    id: formatAgentId({ name: "caller" }),
    tools,
    run: async (ctx) => {
      const { toolName, input } = ctx.input as { toolName: string; input: JsonValue };
      return (await ctx.tool({ callId: "c1", toolName, input })) as unknown as JsonValue;
    },
  };
}

/** Calls a tool once, in its own run. */
export async function callOnce(
  runtime: Runtime,
  agent: HostedAgent,
  toolName: string,
  input: JsonObject = {},
): Promise<ToolResult> {
  const run = await runtime.submit(agent, { toolName, input });
  const { output, error: failure } = await run.result();
  if (failure !== null) throw new Error(failure.message);
  return output as unknown as ToolResult;
}

export function named(tools: readonly Tool<JsonObject>[], name: string): Tool<JsonObject> {
  const found = tools.find((tool) => tool.name === name);
  if (found === undefined)
    throw new Error(`no tool ${name} among ${tools.map((tool) => tool.name).join(", ")}`);
  return found;
}

/** Whether a process exists. */
export function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
