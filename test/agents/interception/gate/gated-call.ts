import {
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  type EventDraft,
  type GatedCall,
  type JsonValue,
  type RunContext,
  type RunFacts,
  type SettledCall,
  type Tool,
  type ToolResult,
} from "../../../../src/kernel/index.ts";
import { simpleTool, text } from "../../../runtime/runtime-setup.ts";

export interface CallOptions {
  readonly toolName?: string;
  readonly input?: JsonValue;
  readonly tool?: Partial<Tool>;
  readonly userId?: string | null;
  readonly agent?: string;
  readonly needsApproval?: boolean;
  readonly history?: readonly SettledCall[];
}

/** Builds a tool call with its checks, and collects the events that the checks emit. */
export function gatedCall(options: CallOptions = {}): GatedCall & { readonly told: EventDraft[] } {
  const { toolName = "look", input = {}, userId = null, needsApproval = false, history = [] } = options;
  const told: EventDraft[] = [];
  return {
    call: { callId: "call", toolName, input },
    sent: input,
    parsed: input,
    toolDigest: "digest",
    tool: { ...simpleTool({ name: toolName, execute: async () => text("done") }), ...options.tool },
    needsApproval,
    agentId: formatAgentId({ name: options.agent ?? "scout" }),
    taskId: formatTaskId(0),
    tenantId: null,
    facts: factsOf(userId),
    folder: null,
    history,
    // Gate parts that take steps are tested in a run. An error of an extension is reported to the port.
    ctx: { extensionPort: { reportError: () => undefined } } as unknown as RunContext,
    emitEvent: (event) => told.push(event),
    told,
  };
}

export function factsOf(userId: string | null): RunFacts {
  return {
    tenantId: null,
    userId,
    sessionId: formatSessionId("session"),
    runId: formatRunId("run"),
    metadata: {},
    context: undefined,
  };
}

export function settled(toolName: string, input: JsonValue, result: ToolResult): SettledCall {
  return { call: { callId: "call", toolName, input }, result };
}

export function failed(message: string): ToolResult {
  return { ...text(message), isError: true };
}
