import type {
  AgentSession,
  Architecture,
  ChatMessage,
  Dependencies,
  EmittableEvent,
  PromptSource,
} from "../../../kernel/index.ts";

/** The loop of a review. If the review has executed a tool, the cached system prompt of its agent is built again. */
export class ReviewLoop implements Architecture {
  readonly name: string;
  readonly #loop: Architecture;
  readonly #reload: PromptSource["reload"];

  constructor(loop: Architecture, reload: PromptSource["reload"]) {
    this.name = loop.name;
    this.#loop = loop;
    this.#reload = reload;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const from = session.messages.length;
    try {
      yield* this.#loop.run(session, deps, prompt);
    } finally {
      if (session.messages.slice(from).some(hasResult)) await this.#reload();
    }
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

/** Whether a message has the result of a tool that was executed without an error. */
function hasResult(message: ChatMessage): boolean {
  return (
    message.role === "tool" && message.content.some((part) => part.type === "tool_result" && !part.isError)
  );
}
