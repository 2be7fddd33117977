import {
  assistantMessage,
  CancellationError,
  Fault,
  userMessage,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type JsonValue,
  type RunContext,
  type UserPart,
} from "../../kernel/index.ts";
import {
  cancelTask,
  RemoteAttempt,
  remoteName,
  type GivenReply,
  type RemotePlan,
  type RemoteQuestion,
  type RemoteResult,
} from "./remote-attempt.ts";
import type { RemoteExchange } from "./remote-task.ts";

export interface RemoteSettings extends RemotePlan {
  readonly idleMs: number;
}

/** An agent of another server, which speaks A2A. A task is one task there, and further input starts further ones. */
export class RemoteArchitecture implements Architecture {
  readonly name = remoteName;
  readonly requiresModel = false;
  readonly supportsStructuredOutput = false;
  readonly #settings: RemoteSettings;

  constructor(settings: RemoteSettings) {
    this.#settings = settings;
  }

  async *run(session: AgentSession, { ctx }: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const { name, idleMs } = this.#settings;
    const { attachments } = session;
    const parts = partsOf(name, prompt, attachments, session.instructions);
    const earlier = earlierContext(session);
    let life: RemoteAttempt | undefined;
    await ctx.resource(
      async () => null,
      async () => life?.drop(),
    );
    let exchanges: readonly RemoteExchange[] = [];
    let reply: GivenReply | undefined;
    for (;;) {
      const work = { prompt, parts, earlierContext: earlier, exchanges, reply };
      const value = await ctx.attempt(
        remoteName,
        async (attempt): Promise<JsonValue> => {
          life = new RemoteAttempt(this.#settings, work, attempt);
          return (await life.run()) as unknown as JsonValue;
        },
        {
          input: { prompt, reply: reply?.text ?? null },
          holdsSlot: false,
          program: { name, source: "a2a", idleMs },
        },
      );
      const result = value as unknown as RemoteResult;
      ({ exchanges } = result);
      if (result.question === null) break;
      reply = await this.#answerOf(ctx, result.question);
    }
    adopt(session, exchanges, attachments);
    yield* noEvents;
  }

  /** Asks a person what the task of the other side asks. The run waits durably, and nothing runs here meanwhile. */
  async #answerOf(ctx: RunContext, { taskId, mark, text }: RemoteQuestion): Promise<GivenReply> {
    const { name } = this.#settings;
    const question = text === "" ? `${name} asks for input` : text;
    const asked = {
      kind: "question",
      toolName: name,
      callId: taskId,
      input: { question },
      reason: question,
    } as const;
    const decision = await ctx.approval(asked).catch(async (error: unknown) => {
      if (error instanceof CancellationError) await cancelTask(this.#settings, taskId);
      throw error;
    });
    if (decision.decision !== "approved") return { mark, text: "deny" };
    const { input = "approve" } = decision;
    return { mark, text: typeof input === "string" ? input : JSON.stringify(input) };
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

const noEvents: readonly EmittableEvent[] = [];
/** Key of the metadata of an answer that names the context in which it was given. Stored in conversations. */
const metadataKey = "remote";

/** The parts of the first message: the instructions, then the input. */
function partsOf(
  name: string,
  prompt: string,
  attachments: readonly UserPart[],
  instructions: string,
): readonly JsonObject[] {
  const opening = instructions === "" ? [] : [{ text: instructions }];
  if (attachments.length === 0) return [...opening, { text: prompt }];
  const parts = attachments.map((part): JsonObject => {
    if (part.type === "text") return { text: part.text };
    const { source, mediaType } = part;
    if (source.kind === "url") return { url: source.url, mediaType };
    if (source.kind === "base64") return { raw: source.data, mediaType };
    throw new Fault("invalid_argument", `agent ${name} cannot read the ${part.type} of its input`);
  });
  return [...opening, ...parts];
}

function earlierContext({ messages }: AgentSession): string | undefined {
  let contextId: string | undefined;
  for (const { providerMetadata } of messages.slice(0)) {
    const told = providerMetadata?.["reeve"]?.[metadataKey] as { readonly contextId?: unknown } | undefined;
    if (typeof told?.contextId === "string") contextId = told.contextId;
  }
  return contextId;
}

/** Adds the exchanges of the task to the conversation. */
function adopt(
  session: AgentSession,
  exchanges: readonly RemoteExchange[],
  attachments: readonly UserPart[],
): void {
  const contextId = exchanges.at(-1)?.contextId ?? "";
  const providerMetadata = { reeve: { [metadataKey]: { contextId } } };
  for (const [index, { text, answer }] of exchanges.entries()) {
    const content = index === 0 && attachments.length > 0 ? attachments : text;
    const said = answer === null || answer.text === "" ? [] : [{ type: "text", text: answer.text } as const];
    session.messages = session.messages.append(userMessage(content), {
      ...assistantMessage([...said, ...(answer?.files ?? [])]),
      providerMetadata,
    });
  }
  session.attachments = [];
  session.output = exchanges.at(-1)?.answer?.text ?? "";
  session.metadata[metadataKey] = { contextId };
}
