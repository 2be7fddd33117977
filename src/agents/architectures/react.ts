import {
  addUsage,
  eventDraft,
  messageText,
  toolCallsOf,
  toolMessage,
  userMessage,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EventDraft,
  type RunContext,
  type ToolCallPart,
  type ToolHost,
  type ToolResult,
  type ToolResultPart,
  type Transcript,
} from "../../kernel/index.ts";

/** All that ReAct needs of an invocation. */
export interface ReActDependencies {
  readonly ctx: Pick<RunContext, "check" | "llm" | "tools">;
  readonly tools: Pick<ToolHost, "list">;
  readonly maxTurns: Dependencies["maxTurns"];
  /** What the model is shown of the conversation; all of it where there is none (F1). */
  readonly window?: { of(conversation: Transcript): Promise<Transcript> };
}

/** Think, act, look, again: until the model asks for no tool, or the turns are used up. */
export class ReAct implements Architecture {
  readonly name = "react";

  async *run(session: AgentSession, deps: ReActDependencies, prompt: string): AsyncIterable<EventDraft> {
    session.messages = session.messages.append(userMessage(prompt));
    while (session.turns < deps.maxTurns) {
      deps.ctx.check();
      const turn = ++session.turns;
      yield eventDraft("turn_start", { turn });
      const reply = await deps.ctx.llm({
        transcript: deps.window === undefined ? session.messages : await deps.window.of(session.messages),
        instructions: session.instructions,
        tools: deps.tools.list(),
      });
      session.messages = session.messages.append(reply.message);
      session.cumulativeUsage = addUsage(session.cumulativeUsage, reply.usage);
      session.output = messageText(reply.message);
      const calls = toolCallsOf(reply.message);
      const results = calls.length === 0 ? [] : await deps.ctx.tools(calls);
      if (calls.length > 0)
        session.messages = session.messages.append(toolMessage(calls.map(pairWith(results))));
      yield eventDraft("turn_end", { turn, stopReason: reply.stopReason, toolCalls: calls.length });
      if (calls.length === 0 || results.every(({ terminate }) => terminate === true)) return;
    }
    session.interrupted = true;
    session.interruptionReason = "max_turns_exceeded";
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

export function react(): ReAct {
  return new ReAct();
}

function pairWith(results: readonly ToolResult[]): (call: ToolCallPart, index: number) => ToolResultPart {
  return ({ callId, toolName }, index) => {
    const { output, isError } = results[index] ?? { output: { type: "text", text: "" }, isError: true };
    return { type: "tool_result", callId, toolName, output, isError };
  };
}
