import type { UserPart } from "../messages/content.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ToolResult } from "../messages/tool-result.ts";
import { Transcript } from "../messages/transcript.ts";
import { noUsage, type Usage } from "../messages/usage.ts";

/**
 * The state of one invocation, shared by an agent and its architecture: the architecture writes as it iterates, the agent reads
 * the result. It is not stored; a replay builds it anew from the journal.
 */
export interface AgentSession {
  /** The session it continues; a worker's is derived from its parent's. */
  readonly id: SessionId;
  readonly instructions: string;
  messages: Transcript;
  /** What the user gave besides words: said with the first prompt, by whoever says it, and then taken away. */
  attachments: readonly UserPart[];
  /** Of the calls in the last message, by place: those that have their result while others have none. Empty between turns. */
  settled: readonly (ToolResult | undefined)[];
  turns: number;
  output: string;
  cumulativeUsage: Usage;
  interrupted: boolean;
  /** One that begins with `max_` is a bound that was met (status `max_turns`); any other is a dead end (`failed`). */
  interruptionReason: string | null;
  /** Plans, hand-offs and the like, under names of the architecture's own. */
  readonly metadata: Record<string, JsonValue>;
}

export function agentSession(
  fields: Pick<AgentSession, "id" | "instructions"> & Partial<Pick<AgentSession, "messages" | "attachments">>,
): AgentSession {
  return {
    messages: Transcript.empty,
    attachments: [],
    settled: [],
    turns: 0,
    output: "",
    cumulativeUsage: noUsage,
    interrupted: false,
    interruptionReason: null,
    metadata: {},
    ...fields,
  };
}
