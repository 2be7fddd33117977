import {
  addUsage,
  canonicalJson,
  eventDraft,
  messageText,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  userMessage,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EventDraft,
  type InputQueue,
  type JsonValue,
  type ToolCallPart,
  type ToolChoice,
  type ToolResult,
} from "../../kernel/index.ts";
import { opening } from "../agent-input.ts";

export interface ReActOptions {
  /** For the first call only. */
  readonly initialToolChoice?: ToolChoice;
}

/**
 * Think, act, look, again: until the model asks for no tool and nobody has anything to add, or the turns are used up. Steering is heard
 * after the tools of a turn, follow-ups when there is nothing else to do.
 */
export class ReAct implements Architecture {
  readonly name = "react";
  readonly #options: ReActOptions;

  constructor(options: ReActOptions = {}) {
    this.#options = options;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EventDraft> {
    session.messages = session.messages.append(opening(prompt, session.attachments));
    session.attachments = [];
    let toolChoice = this.#options.initialToolChoice;
    while (session.turns < deps.maxTurns) {
      deps.ctx.check();
      const turn = ++session.turns;
      yield eventDraft("turn_start", { turn });
      const reply = await deps.ctx.llm({
        transcript: await deps.history.getPromptWindow(session.id),
        instructions: session.instructions,
        tools: deps.tools.list(),
        ephemeral: deps.ephemeral,
        role: deps.role,
        ...(toolChoice !== undefined && { toolChoice }),
        ...(deps.outputFormat && { responseFormat: deps.outputFormat }),
      });
      toolChoice = undefined;
      session.messages = session.messages.append(reply.message);
      session.cumulativeUsage = addUsage(session.cumulativeUsage, reply.usage);
      session.output = messageText(reply.message);
      const calls = toolCallsOf(reply.message);
      const results = calls.length === 0 ? [] : await act(session, deps, calls);
      yield eventDraft("turn_end", { turn, stopReason: reply.stopReason, toolCalls: calls.length });
      const done = calls.length === 0 || results.every(({ terminate }) => terminate === true);
      // What nobody would answer any more is left where it is.
      const heard = session.turns < deps.maxTurns ? await this.#listen(deps, done) : undefined;
      if (heard !== undefined) {
        session.messages = session.messages.append(...heard.inputs.map(said));
        yield eventDraft("architecture_event", {
          architecture: this.name,
          name: heard.queue === "steer" ? "react.steering_injected" : "react.follow_up_injected",
          data: { inputs: heard.inputs },
        });
      } else if (done) return;
    }
    session.interrupted = true;
    session.interruptionReason = "max_turns_exceeded";
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }

  async #listen({ ctx, steering, followUps }: Dependencies, done: boolean): Promise<Heard | undefined> {
    const heard = await ctx.steering({ mode: steering });
    if (heard.length > 0) return { queue: "steer", inputs: heard };
    const more = done ? await ctx.followUps({ mode: followUps }) : [];
    return more.length > 0 ? { queue: "follow_up", inputs: more } : undefined;
  }
}

interface Heard {
  readonly queue: InputQueue;
  readonly inputs: readonly JsonValue[];
}

export function react(options?: ReActOptions): ReAct {
  return new ReAct(options);
}

async function act(
  session: AgentSession,
  { tools }: Dependencies,
  calls: readonly ToolCallPart[],
): Promise<readonly ToolResult[]> {
  const settled: (ToolResult | undefined)[] = calls.map(() => undefined);
  session.settled = settled;
  const onResult = (result: ToolResult, index: number): void => {
    settled[index] = result;
  };
  const results = await tools.callAll(calls, { onResult });
  session.messages = session.messages.append(
    toolMessage(calls.map((call, index) => toolResultPart(call, results[index] ?? nothing))),
  );
  session.settled = [];
  return results;
}

const nothing: ToolResult = { output: { type: "text", text: "" }, isError: true };

/** What is not a text is shown as JSON. */
function said(input: JsonValue): ReturnType<typeof userMessage> {
  return userMessage(typeof input === "string" ? input : canonicalJson(input));
}
