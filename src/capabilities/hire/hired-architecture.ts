import type { ContentBlock } from "@agentclientprotocol/sdk";
import {
  assistantMessage,
  Fault,
  messageText,
  userMessage,
  type AgentSession,
  type Architecture,
  type ChatMessage,
  type Clock,
  type Dependencies,
  type EmittableEvent,
  type JsonValue,
  type RunContext,
  type UserPart,
} from "../../kernel/index.ts";
import { FileRoot } from "../files/file-root.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { needingPackage } from "../optional-package.ts";
import type { AcpSdk, AgentFacts } from "./agent-connection.ts";
import { launchOf, type LaunchSettings } from "./agent-launch.ts";
import { architectureName } from "./agent-report.ts";
import { HiredAttempt, type HiredResult, type HiredTask } from "./hired-attempt.ts";
import { newMark } from "./orphans.ts";
import { homeName } from "./private-home.ts";

/** The settings that are the same for all tasks of a hired agent. */
export interface HireSettings extends LaunchSettings {
  readonly gateway: Gateway;
  readonly folder: string;
  readonly idleMs: number;
  readonly startTimeoutMs: number;
  readonly clock: Clock;
}

/** Key in the metadata of an answer for the agent's session in which it was given. Stored in conversations. */
const metadataKey = "hired";

/**
 * The architecture of an agent that is another program. The program uses the Agent Client Protocol, and calls
 * models through the gateway.
 */
export class HiredArchitecture implements Architecture {
  readonly name = architectureName;
  readonly requiresModel = false;
  readonly supportsStructuredOutput = false;
  readonly #settings: HireSettings;

  constructor(settings: HireSettings) {
    this.#settings = settings;
  }

  async *run(session: AgentSession, { ctx }: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const { name, idleMs } = this.#settings;
    const attachments = session.attachments;
    let life: HiredAttempt | undefined;
    const drop = async (): Promise<void> => {
      await life?.drop();
    };
    await ctx.resource(async () => null, drop);
    let result: HiredResult;
    try {
      const value = await ctx.attempt(
        architectureName,
        async (attempt): Promise<JsonValue> => {
          const sdk = await loadAcpSdk(`hired agent ${name}`);
          const folder = await this.#folderOf(ctx);
          const task = this.#taskOf(session, ctx, {
            prompt,
            attachments,
            folder,
            mark: newMark(),
          });
          life = new HiredAttempt({ ...this.#settings, sdk }, task, attempt);
          return (await life.run()) as unknown as JsonValue;
        },
        {
          input: { prompt },
          program: { name, source: "acp", idleMs, staysOnHost: true },
        },
      );
      result = value as unknown as HiredResult;
    } catch (error) {
      session.output = life?.answer ?? "";
      throw error;
    }
    adopt(session, result, attachments);
    yield* noEvents;
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }

  async #folderOf(ctx: RunContext): Promise<string> {
    return (await new FileRoot(this.#settings.folder).in(ctx.folder)).path();
  }

  #taskOf(session: AgentSession, ctx: RunContext, given: GivenPrompt): HiredTask {
    const { prompt, attachments, folder, mark } = given;
    const earlier = earlierIn(session.messages.slice(0));
    return {
      runId: ctx.facts.runId,
      folder,
      mark,
      prompt,
      blocks: (facts) => blocksOf(prompt, attachments, facts),
      opening: session.instructions,
      earlierSession: earlier.sessionId,
      earlierTalk: earlier.talk,
      launch: async (access) => {
        const { name, home, gateway } = this.#settings;
        const privateHome = homeName(name, session.id, ctx.facts);
        if (home === "private") await ctx.keepHome(privateHome);
        const launched = { folder, own: ctx.folder, homeName: privateHome, mark, gateway, access };
        return launchOf(this.#settings, launched);
      },
      costUsd: () => (ctx.snapshot.ledger.accounts[ctx.taskId]?.spent.nanoUsd ?? 0) / 1e9,
    };
  }
}

/** A prompt, and where it is worked on. */
interface GivenPrompt {
  readonly prompt: string;
  readonly attachments: readonly UserPart[];
  readonly folder: string;
  /** Mark of the attempt: a value by which its processes are found. */
  readonly mark: string;
}

const noEvents: readonly EmittableEvent[] = [];

/** Loads the optional packages of the protocol. */
export async function loadAcpSdk(user: string): Promise<AcpSdk> {
  return needingPackage("zod", user, () =>
    needingPackage("@agentclientprotocol/sdk", user, () => import("@agentclientprotocol/sdk")),
  );
}

/**
 * Returns the prompt in the form in which the agent receives it. Throws `invalid_argument` for a part that the
 * agent cannot read.
 */
function blocksOf(
  prompt: string,
  attachments: readonly UserPart[],
  { name, images }: AgentFacts,
): readonly ContentBlock[] {
  if (attachments.length === 0) return [{ type: "text", text: prompt }];
  return attachments.map((part): ContentBlock => {
    if (part.type === "text") return { type: "text", text: part.text };
    if (part.type === "image" && images && part.source.kind === "base64")
      return { type: "image", mimeType: part.mediaType, data: part.source.data };
    throw new Fault(
      "invalid_argument",
      `agent ${name} cannot read the ${part.type} of its input: hired agents read texts, and images as base64 if they say so; put the file into their folder and name its path`,
    );
  });
}

/** Adds the exchanges of the task to the conversation, with the session of the agent in which they took place. */
function adopt(
  session: AgentSession,
  { exchanges, sessionId, stopReason }: HiredResult,
  attachments: readonly UserPart[],
): void {
  const providerMetadata = { reeve: { [metadataKey]: { sessionId } } };
  for (const [index, { prompt, answer }] of exchanges.entries()) {
    const content = index === 0 && attachments.length > 0 ? attachments : prompt;
    session.messages = session.messages.append(userMessage(content), {
      ...assistantMessage([{ type: "text", text: answer }]),
      providerMetadata,
    });
  }
  session.attachments = [];
  session.output = exchanges.at(-1)?.answer ?? "";
  session.metadata[metadataKey] = { sessionId, stopReason };
  const reason = interruptions[stopReason];
  if (reason === undefined) return;
  session.interrupted = true;
  session.interruptionReason = reason;
}

/** Interruption reasons by the reason for which the agent stopped before it had an answer. */
const interruptions: { readonly [Reason in HiredResult["stopReason"]]?: string } = {
  max_tokens: "max_output",
  max_turn_requests: "max_turns",
  refusal: "refusal",
  cancelled: "cancelled_by_agent",
};

/** Returns the agent's session in which the conversation last took place, and the conversation as a text. */
function earlierIn(messages: readonly ChatMessage[]): {
  readonly sessionId: string | undefined;
  readonly talk: string;
} {
  let sessionId: string | undefined;
  for (const { providerMetadata } of messages) {
    const told = providerMetadata?.["reeve"]?.[metadataKey] as { readonly sessionId?: unknown } | undefined;
    if (typeof told?.sessionId === "string") sessionId = told.sessionId;
  }
  const lines = messages.flatMap((message) => {
    const text = message.role === "user" || message.role === "assistant" ? messageText(message) : "";
    return text === "" ? [] : [`${message.role === "user" ? "User" : "You"}: ${text}`];
  });
  const talk = lines.length === 0 ? "" : `The conversation so far:\n\n${lines.join("\n\n")}`;
  return { sessionId, talk };
}
