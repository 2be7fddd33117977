import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { AgentId, SessionId } from "../base/identity.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { Transcript } from "../messages/transcript.ts";
import type { Channel } from "../run/run-meta.ts";

/** What a system prompt is built for. */
export interface PromptQuery {
  /**
   * Channel that the input came from. `null` means the terminal. The prompt source caches one prompt for each
   * platform.
   */
  readonly channel: Channel | null;
  /** Id of the session. `null` if the invocation has no session. */
  readonly sessionId: SessionId | null;
  /** Names of the tools that the agent has. */
  readonly toolNames: readonly string[];
  /**
   * Text that replaces the agent's own instructions for one run. Only sources with `acceptsInstructions` receive
   * it.
   */
  readonly instructions?: string;
}

/**
 * Builds an agent's system prompt from files, profiles, skills and memory. The same query returns the same bytes until
 * `reload`.
 */
export interface PromptSource {
  /**
   * Whether `build` replaces the agent's instructions with `PromptQuery.instructions`. If absent, instructions that
   * a caller changes become the whole system prompt.
   */
  readonly acceptsInstructions?: true;
  /** Builds the system prompt. `fromCache` tells whether the text was built by an earlier call. */
  build(query: PromptQuery): Promise<{ readonly text: string; readonly fromCache: boolean }>;
  /**
   * Clears the cache, so that the next `build` reads the files again, and returns the same bytes if they have not
   * changed. A background review that has executed a tool calls it at least once, because the tool may have changed
   * memory or skills.
   */
  reload(): Promise<void>;
}

type BuiltPrompt = string | { readonly text: string; readonly fromCache?: boolean };

/** The methods of a prompt source that the instructions of an agent use. A source without `reload` has no cache. */
export interface InstructionsSource extends Partial<Pick<PromptSource, "reload" | "acceptsInstructions">> {
  /**
   * Builds the system prompt. Returns the text, or an object that also says in `fromCache` whether an earlier call
   * built it. Default of `fromCache`: `false`.
   */
  build(query: PromptQuery): BuiltPrompt | Promise<BuiltPrompt>;
}

/**
 * Supplies live state for one model call, such as the tabs of an open browser. Its messages follow the transcript
 * in the request and are never stored (J4).
 */
export interface EphemeralSource {
  /** Name of the source, as it appears in error events. */
  readonly name: string;
  /**
   * Returns the messages to send with the next model call, or an empty array. If it throws, the error is recorded
   * and the call is made without the messages (S4).
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
   * Shortens the prompt window of a session because it exceeded the model's context window. Later windows of the
   * session continue from the shortened one. Returns `null` if nothing can be removed. If the method is absent,
   * windows are not shortened.
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
  /** Says in one or two lines what the skill is for (SK2). */
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
