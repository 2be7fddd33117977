import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { AgentId, SessionId } from "../base/identity.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { Transcript } from "../messages/transcript.ts";
import type { Channel } from "../run/run-meta.ts";

/** What a system prompt is built for. */
export interface PromptQuery {
  /** Channel that the input came from. `null` means the terminal. Prompts are cached by its platform. */
  readonly channel: Channel | null;
  /** Id of the session. `null` if the invocation has no session. */
  readonly sessionId: SessionId | null;
  /** Names of the tools that the agent has. */
  readonly toolNames: readonly string[];
  /** Text in place of the agent's own instructions, for one run. Only sources with `acceptsInstructions` receive it. */
  readonly instructions?: string;
}

/**
 * Builds an agent's system prompt from files, profiles, skills and memory. The same query returns the same bytes until
 * `reload`.
 */
export interface PromptSource {
  /**
   * Whether `build` puts `PromptQuery.instructions` in the place of the agent's instructions. If absent, instructions that a
   * caller changes are the whole system prompt.
   */
  readonly acceptsInstructions?: true;
  /** Builds the system prompt. `fromCache` tells whether the text was built by an earlier call. */
  build(query: PromptQuery): Promise<{ readonly text: string; readonly fromCache: boolean }>;
  /**
   * Clears the cache, so that the next `build` reads the files again. A reviewer that has executed a tool calls it, because
   * memory or skills may have changed: in the process that ran the review, at least once per review. `build` then returns
   * the same bytes if nothing has changed.
   */
  reload(): Promise<void>;
}

type BuiltPrompt = string | { readonly text: string; readonly fromCache?: boolean };

/** What the instructions of an agent need of a prompt source. A source without `reload` has no cache. */
export interface InstructionsSource extends Partial<Pick<PromptSource, "reload" | "acceptsInstructions">> {
  /** Builds the system prompt: the text, or the text and whether an earlier call built it. Default of `fromCache`: `false`. */
  build(query: PromptQuery): BuiltPrompt | Promise<BuiltPrompt>;
}

/**
 * Live state for one model call, such as the tabs of an open browser. It is sent after the transcript and never stored
 * (J4).
 */
export interface EphemeralSource {
  /** Name of the source, as it appears in error events. */
  readonly name: string;
  /**
   * Returns the messages to send with the next model call, or an empty array. An error is recorded, and the call
   * continues without the messages (S4).
   */
  messages(): Promise<readonly ChatMessage[]>;
}

/** An agent's view of its history. It hides where the history is stored and how it is compacted. */
export interface AgentContext {
  /** Id of the agent whose history this is. */
  readonly agentId: AgentId;
  /** Returns the messages to send to the model now: the history of the session after compaction. */
  getPromptWindow(sessionId: SessionId): Transcript | Promise<Transcript>;
  /**
   * Shortens the prompt window of a session because it exceeded the model's context window. The following windows of the
   * session continue from the shortened one. Returns `null` if nothing can be cut. If absent, nothing is shortened.
   */
  shorten?(sessionId: SessionId): Promise<Transcript | null>;
}

/**
 * Instructions that an agent loads on demand. The model always sees the name and the description; it reads the body
 * when it needs it.
 *
 * - SK1: a name has 1 to 64 characters of a-z, 0-9 and `-`. A skill from a folder has the name of the folder.
 * - SK2: a description is required and has at most 1,024 characters. The model selects a skill by its description.
 * - SK3: the model neither sees nor loads a `hidden` skill. People and code can load it.
 */
export interface Skill {
  /** Name of the skill (SK1). */
  readonly name: string;
  /** What the skill is for, in a line or two (SK2). */
  readonly description: string;
  /** Whether the skill is hidden from the model (SK3). Default: `false`. */
  readonly hidden?: boolean;
  /** Returns the current body. A file may have changed since the last call. */
  read(): Promise<string>;
}

const longestName = 64;
const longestDescription = 1_024;

/** Returns the skill if its name and description are valid (SK1, SK2). Otherwise throws `invalid_argument`. */
export function checkSkill(skill: Skill): Skill {
  const { name, description } = skill;
  if (typeof name !== "string" || !/^[a-z0-9-]+$/.test(name) || name.length > longestName)
    throw new Fault(
      "invalid_argument",
      `invalid skill name ${describeValue(name)}: use 1 to ${longestName} characters of a-z, 0-9 and -`,
    );
  if (typeof description !== "string" || description.trim() === "")
    throw new Fault(
      "invalid_argument",
      `skill ${name} has no description: describe in a line or two what it is for; the model selects a skill by its description`,
    );
  if (description.length > longestDescription)
    throw new Fault(
      "invalid_argument",
      `the description of skill ${name} has ${description.length} characters: use at most ${longestDescription} and move the rest to its body`,
    );
  return skill;
}
