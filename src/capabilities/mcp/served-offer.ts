import type { CallToolResult, ToolAnnotations } from "@modelcontextprotocol/server";
import {
  formatAgentId,
  type HostedAgent,
  type CallPath,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  type RunHandle,
  type RunResult,
  type Runtime,
  type SubmitOptions,
  type Tool,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { servedResult } from "./served-result.ts";

/** A tool or agent that a host can call. */
export interface Offer {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: ToolAnnotations;
  /** Agent that executes the call, or the name of an agent that `HostCaller.submit` starts. */
  readonly agent: HostedAgent | string;
  /** Converts the arguments to the input of the run. */
  readonly input: (given: JsonObject) => JsonValue;
  /** Returns the conversation that the arguments name, if any. */
  readonly session: (given: JsonObject) => string | undefined;
  /** Converts the result of the run to the result of the call. */
  readonly result: (result: RunResult<JsonValue>, session: string) => CallToolResult;
}

/** An agent that other hosts can call. */
export interface OfferedAgent {
  /** The agent itself, or the name of an agent that `HostCaller.submit` starts. */
  readonly agent: HostedAgent | string;
  /** Name of the tool that calls the agent. Default: the agent's name. */
  readonly name?: string;
  /** Text by which the host's model decides when to call the agent. */
  readonly description: string;
  /** JSON Schema of the arguments. Default: an object with the text `input` and an optional `sessionId`. */
  readonly inputSchema?: JsonSchema;
}

const offeredTable = optionTable({
  agent: is.any,
  name: is.text(),
  description: is.text(),
  inputSchema: is.any,
} satisfies OptionKinds<OfferedAgent>);

/** On whose behalf a host calls, and what this caller may see. */
export interface HostCaller {
  /** Id of the user. `null` for no particular user. */
  readonly userId: string | null;
  /** Id of the tenant. If absent or `null`, the caller belongs to no tenant. */
  readonly tenantId?: string | null;
  /** The runtime in the view of the caller's tenant. Default: the runtime of the server. */
  readonly runtime?: Runtime;
  /** Starts a run of an agent that is offered by its name. */
  readonly submit?: (agent: string, input: JsonValue, options: SubmitOptions) => Promise<RunHandle>;
}

/**
 * Returns the agent that executes the calls of a server's tools, one call per run, so that calls pass the same
 * checks as tool calls of any run.
 */
export function toolAgent(
  server: string,
  tools: readonly Tool[],
  callPath: CallPath | undefined,
): HostedAgent {
  return {
    id: formatAgentId({ name: `mcp:${server}` }),
    tools,
    ...(callPath && { callPath }),
    run: async (ctx) => {
      const { toolName, input } = ctx.input as { readonly toolName: string; readonly input: JsonValue };
      return (await ctx.tool({ callId: "mcp", toolName, input })) as unknown as JsonValue;
    },
  };
}

/** Returns the offers of a server's tools. `agent` executes the calls. */
export function toolOffers(tools: readonly Tool[], agent: HostedAgent): readonly Offer[] {
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
        : refusal(
            `${name} ended with the status ${status}: ${failure?.message ?? interruptionReason ?? "no reason given"}`,
          ),
  }));
}

const textInput: JsonSchema = {
  type: "object",
  properties: {
    input: { type: "string", description: "The task of the agent" },
    sessionId: {
      type: "string",
      description: "The sessionId of an earlier answer, to continue that conversation",
    },
  },
  required: ["input"],
};

/** Returns the offer of an agent. */
export function agentOffer(offered: OfferedAgent): Offer {
  const { agent, name, description, inputSchema } = offeredTable.read("an agent of mcpServer()", offered);
  return {
    name: name ?? (typeof agent === "string" ? agent : agent.id).replaceAll(/[^A-Za-z0-9_-]/g, "_"),
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

/** Returns an error result with a text. */
export function refusal(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
