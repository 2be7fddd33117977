import {
  formatAgentId,
  messageText,
  toolCallsOf,
  toolMessage,
  Transcript,
  userMessage,
  type HostedAgent,
  type JsonObject,
  type JsonValue,
  type RunContext,
  type Tool,
} from "../../src/kernel/index.ts";
import { getRunContext } from "../../src/runtime/index.ts";
import { servedModel, servedTool, type ServerAddress } from "../../src/testing/served-call.ts";
import { ampleBudget, outputLimit } from "./workload.ts";

export interface ServedAgentOptions extends Pick<HostedAgent, "run" | "budget"> {
  readonly name: string;
  /** Tools of the agent. A string names a tool that the counting server plays. */
  readonly tools?: readonly (string | Tool)[];
  readonly subAgents?: readonly HostedAgent[];
  /** Whether the model offers `countTokens`. */
  readonly counts?: boolean;
}

/** An agent whose model and tools are played by the counting server. */
export function servedAgent(
  server: ServerAddress,
  { name, tools = [], subAgents = [], budget = ampleBudget, counts = false, run }: ServedAgentOptions,
): HostedAgent {
  return {
    id: formatAgentId({ name }),
    models: { main: servedModel(server, () => getRunContext()?.runId ?? "", { counts }) },
    tools: tools.map((tool) => (typeof tool === "string" ? servedTool(server, tool) : tool)),
    subAgents,
    budget,
    run,
  };
}

/** Calls the model and its tools until the model calls no tool. Returns the last text. */
export async function loop(ctx: RunContext, prompt: string): Promise<string> {
  let transcript = Transcript.of([userMessage(prompt)]);
  for (;;) {
    const { message } = await ctx.llm({ transcript, maxOutputTokens: outputLimit });
    const calls = toolCallsOf(message);
    if (calls.length === 0) return messageText(message);
    const results = await ctx.tools(calls);
    const parts = calls.map(({ callId, toolName }, index) => {
      const { output, isError } = results[index] ?? { output: { type: "text", text: "" }, isError: true };
      return { type: "tool_result" as const, callId, toolName, output, isError };
    });
    transcript = transcript.append(message, toolMessage(parts));
  }
}

/** Calls a tool directly, without a model. */
export async function use(ctx: RunContext, toolName: string, input: JsonObject = {}): Promise<JsonValue> {
  const { output, isError } = await ctx.tool({ callId: toolName, toolName, input });
  if (isError || output.type !== "json") throw new Error(`${toolName} failed: ${JSON.stringify(output)}`);
  return output.value;
}
