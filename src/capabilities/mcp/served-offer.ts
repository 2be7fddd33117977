import type { AuthInfo, CallToolResult, ToolAnnotations } from "@modelcontextprotocol/server";
import {
  formatAgentId,
  type HostedAgent,
  type CallPath,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type RunResult,
  type Tool,
  type ToolResult,
} from "../../kernel/index.ts";
import { servedResult } from "./served-result.ts";

/** One thing that a host can call: whose run it becomes, with what, and what is told of its end. */
export interface Offer {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: ToolAnnotations;
  readonly agent: HostedAgent;
  readonly input: (given: JsonObject) => JsonValue;
  /** The conversation it belongs to, if it says. */
  readonly session: (given: JsonObject) => string | undefined;
  readonly result: (result: RunResult<JsonValue>, session: string) => CallToolResult;
}

/** An agent to be called by other hosts. */
export interface OfferedAgent {
  readonly agent: HostedAgent;
  /** The agent's own name unless told. */
  readonly name?: string;
  /** What it is good for, in words for the model that is to call it. */
  readonly description: string;
  /** What it takes. Unless told it takes a text, `input`. */
  readonly inputSchema?: JsonSchema;
}

/** Who calls. */
export interface HostUser {
  readonly userId: string | null;
  readonly authInfo: AuthInfo | undefined;
}

/** The tools as one agent's that does the one call it is given: so they have all that a tool in a run has, the gate included. */
export function toolOffers(
  server: string,
  tools: readonly Tool[],
  callPath: CallPath | undefined,
): readonly Offer[] {
  const agent: HostedAgent = {
    id: formatAgentId({ name: `mcp:${server}` }),
    tools,
    ...(callPath && { callPath }),
    run: async (ctx) => {
      const { toolName, input } = ctx.input as { readonly toolName: string; readonly input: JsonValue };
      return (await ctx.tool({ callId: "mcp", toolName, input })) as unknown as JsonValue;
    },
  };
  return tools.map(({ name, description, inputSchema, risk, destructive }) => ({
    name,
    description,
    inputSchema,
    annotations: { readOnlyHint: risk === "safe" && !destructive, destructiveHint: destructive },
    agent,
    input: (given) => ({ toolName: name, input: given }),
    session: () => undefined,
    result: ({ status, output, error: failure, interruptionReason }) =>
      status === "completed"
        ? servedResult(output as unknown as ToolResult)
        : refusal(`${name} ended as ${status}: ${failure?.message ?? interruptionReason ?? ""}`),
  }));
}

const textInput: JsonSchema = {
  type: "object",
  properties: {
    input: { type: "string", description: "What it is to do" },
    sessionId: { type: "string", description: "Of an earlier answer, to go on with that conversation" },
  },
  required: ["input"],
};

export function agentOffer({ agent, name, description, inputSchema }: OfferedAgent): Offer {
  return {
    name: name ?? agent.id.replaceAll(/[^A-Za-z0-9_-]/g, "_"),
    description,
    inputSchema: inputSchema ?? textInput,
    annotations: { readOnlyHint: false, destructiveHint: true },
    agent,
    input: (given) => (inputSchema === undefined ? (given["input"] ?? "") : given),
    session: ({ sessionId }) =>
      inputSchema === undefined && typeof sessionId === "string" ? sessionId : undefined,
    result: ({ output, status, runId, turns, costUsd, error: failure, interruptionReason }, sessionId) => {
      const said = typeof output === "string" ? output : JSON.stringify(output);
      const why = failure?.message ?? interruptionReason;
      const text = status === "completed" ? said : `${said}\n[${status}${why ? `: ${why}` : ""}]`.trim();
      return {
        content: [{ type: "text", text }],
        structuredContent: { output, status, runId, sessionId, turns, costUsd },
        ...(status !== "completed" && { isError: true }),
      };
    },
  };
}

export function refusal(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
