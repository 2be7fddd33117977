import type { AgentSession } from "./agent-session.ts";
import type { HostedAgent } from "./hosted-agent.ts";
import type { Dependencies } from "./dependencies.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";

/**
 * A way to drive one invocation: ReAct, a plan, a debate. It works only through `deps`, so it is durable, budgeted, cancellable
 * and streamed without doing anything for it.
 *
 * It changes `session` as it goes and yields what happens during iteration, or tells it to `deps.ctx` itself, which comes to the same;
 * the agent around it tells of start and end, and the runtime of all it does for it: such an event is refused with `invalid_argument`. E4: what it tells commits with the next step; on replay, what was committed is not told
 * again.
 */
export interface Architecture {
  readonly name: string;
  /** `false`: all it does is set others to work, and its agent needs no model. */
  readonly requiresModel?: boolean;
  /**
   * `false`: the architecture's answer never follows a requested schema. Only a model of the agent can then convert it; a request for
   * structured output without such a model is refused before any call is paid. Default: `true`.
   */
  readonly supportsStructuredOutput?: boolean;
  /** The architecture it is wrapped around. */
  readonly base?: Architecture;
  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent>;
  /** The agents it composes, by role; empty for a single one. */
  declaredWorkers(): Readonly<Record<string, HostedAgent>>;
}
