import type { AgentSession } from "./agent-session.ts";
import type { HostedAgent } from "./hosted-agent.ts";
import type { Dependencies } from "./dependencies.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";

/**
 * A way to execute one invocation, for example ReAct, a plan or a debate. An architecture works only through
 * `deps`, so that all its work is durable, budgeted, cancellable and streamed without further code.
 *
 * It changes `session` while it runs and emits events: it yields them, or passes them to `deps.ctx.emitEvent`,
 * which has the same effect. The agent emits the start and the end of the invocation, and the runtime emits the
 * events of its own work; an architecture that emits one of these fails with `invalid_argument`. E4: an emitted
 * event commits at the latest with the next step. A replay does not emit it again.
 *
 * @example
 * ```ts
 * import { Agent, type Architecture } from "reeve";
 * import { messageText, userMessage } from "reeve/kernel";
 * import { scriptedModel } from "reeve/testing";
 *
 * // Calls the model once and returns its text.
 * const single: Architecture = {
 *   name: "single",
 *   declaredWorkers: () => ({}),
 *   async *run(session, deps, prompt) {
 *     session.messages = session.messages.append(userMessage(prompt));
 *     const reply = await deps.ctx.llm({ transcript: session.messages, instructions: session.instructions });
 *     session.messages = session.messages.append(reply.message);
 *     session.output = messageText(reply.message);
 *     yield { type: "architecture_event", data: { architecture: "single", name: "answered", data: {} } };
 *   },
 * };
 *
 * const agent = new Agent({ name: "clerk", model: scriptedModel(["42"]), architecture: single });
 * ```
 */
export interface Architecture {
  /** Name of the architecture, as it appears in `agent_start`. */
  readonly name: string;
  /** Whether the agent needs a model. `false` for an architecture that only runs other agents. Default: `true`. */
  readonly requiresModel?: boolean;
  /**
   * Whether the architecture's answer follows a requested schema. If `false`, a model of the agent converts the
   * answer. An agent without a model then refuses a request for structured output before it pays for any call.
   * Default: `true`.
   */
  readonly supportsStructuredOutput?: boolean;
  /**
   * Whether the architecture can continue a session without a new message. `run` then receives an empty `prompt`
   * and no attachments, and adds no user message. If `false`, `Agent.continue` throws. Default: `false`.
   */
  readonly supportsContinue?: boolean;
  /**
   * Whether the architecture calls `deps.prepareStep` before and `deps.stopWhen` after each of its turns. If
   * `false`, the constructor refuses an agent with the option `prepareStep` or `stopWhen`. Default: `false`.
   */
  readonly supportsTurnControl?: boolean;
  /**
   * Whether the architecture calls models and tools itself, and does not leave all work to other agents or a
   * person. If `false`, an agent with policy that applies only to its own calls, such as `permissions`, is refused.
   * Default: `true`.
   */
  readonly hasOwnCalls?: boolean;
  /** The architecture that this one wraps, if any. */
  readonly base?: Architecture;
  /**
   * Runs one invocation with the user's input as `prompt`. The runtime may call `run` again after a crash; completed
   * steps then return their recorded values.
   */
  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent>;
  /** Returns the agents that the architecture may spawn, by role. Empty for an architecture with a single agent. */
  declaredWorkers(): Readonly<Record<string, HostedAgent>>;
}
