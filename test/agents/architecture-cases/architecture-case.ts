import type { HostedAgent, ChatMessage, JsonValue, Model, Tool } from "../../../src/kernel/index.ts";
import type { Said } from "../../crash/workload.ts";

/**
 * The models and tools outside of the runtime, as the agents of a case call them. Each call is counted and has a price.
 */
export interface ExternalServices {
  /** Returns a model under the name of the role or agent that calls it. */
  model(role: string): Model;
  tool(name: string): Tool;
}

/** A call of a model, as `ArchitectureCase.reply` sees it. */
export interface ModelCall {
  readonly role: string;
  readonly messages: readonly ChatMessage[];
  /** The text of the last message. */
  readonly last: string;
}

/**
 * A minimal agent of one architecture, on which the promises about runs are checked. No two calls of one role have the
 * same prompt, so that a repeated call is noticed.
 */
export interface ArchitectureCase {
  /** Creates the agent, once for each worker process. Its budget is never exhausted. */
  readonly agent: (services: ExternalServices) => HostedAgent;
  readonly input: string;
  /** Computes the reply of a model, only from the call itself. */
  readonly reply: (call: ModelCall) => Said;
  readonly output: JsonValue;
  /** Maximum number of calls that are in flight at once. Default: 1. */
  readonly maxParallelCalls?: number;
  /** Whether branches of one task emit events, whose order then depends on timing. Default: `false`. */
  readonly hasUnorderedEvents?: boolean;
  /** Whether the output is empty until the last call is answered. Default: `false`. */
  readonly hasNoPartial?: boolean;
}

/** Returns models for several roles, by role. */
export function roleModels(
  services: ExternalServices,
  ...roles: readonly string[]
): Readonly<Record<string, Model>> {
  return Object.fromEntries(roles.map((role) => [role, services.model(role)]));
}

/** Returns a `reply` that is one fixed text for each role. */
export function repliesByRole(texts: Readonly<Record<string, string>>): ArchitectureCase["reply"] {
  return ({ role }) => ({ text: texts[role] ?? `${role} has nothing to say` });
}
