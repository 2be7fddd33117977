import type { HostedAgent, ChatMessage, JsonValue, Model, Tool } from "../../../src/kernel/index.ts";
import type { Said } from "../../crash/workload.ts";

/** The world outside, as the agents of a thinker reach it: it counts and bills every call. */
export interface ExternalServices {
  /** A model, under the name of the role or agent that asks it. */
  model(role: string): Model;
  tool(name: string): Tool;
}

/** A call of a model, as the one who plays it sees it. */
export interface ModelCall {
  readonly role: string;
  readonly messages: readonly ChatMessage[];
  /** The text of the last message. */
  readonly last: string;
}

/**
 * A way to think, as small as shows what is its own: what is promised of runs is checked on each of them. No two calls of one role say the
 * same, so that a call made again is known.
 */
export interface ArchitectureCase {
  /** Made anew for every worker, as another process would. Capped so that nothing is exhausted. */
  readonly agent: (outside: ExternalServices) => HostedAgent;
  readonly input: string;
  /** What models answer: it depends on the call alone. */
  readonly reply: (asked: ModelCall) => Said;
  readonly output: JsonValue;
  /** How many calls it has open at once, at most. 1 unless told. */
  readonly maxParallelCalls?: number;
  /** Branches of one of its tasks tell things: in which order depends on the moment. */
  readonly hasUnorderedEvents?: boolean;
  /** Has nothing to show before its last call has answered. */
  readonly hasNoPartial?: boolean;
}

/** The models of several roles, each under its name. */
export function roleModels(
  outside: ExternalServices,
  ...roles: readonly string[]
): Readonly<Record<string, Model>> {
  return Object.fromEntries(roles.map((role) => [role, outside.model(role)]));
}

/** What a worker's model says: one sentence. */
export function repliesByRole(texts: Readonly<Record<string, string>>): ArchitectureCase["reply"] {
  return ({ role }) => ({ text: texts[role] ?? `${role} has nothing to say` });
}
