import {
  Fault,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type WorkerInput,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { adoptWorkerResult, runWorker, keepPartialText } from "../team/run-worker.ts";
import { askSupportingRole, loadPromptContext, type PromptContext } from "../context/prompt-context.ts";
import { architectureEvent } from "../context/role-call.ts";
import { parseRouteChoice, type RouteChoice } from "./route-choice.ts";
import { answerBrief, spawnOptionsOf, TeamMembers, type Members } from "../team/team-members.ts";
import { endOnWorkerInterruption } from "../team/worker-interruption.ts";

/** Options of `router`. */
export interface RouterOptions {
  /** The specialists, by the name of their route. The classifier chooses by their descriptions. */
  readonly routes: Members;
  /** Minimum confidence of the classifier, from 0 to 1. A choice below it is ignored. Default: 0. */
  readonly requireConfidence?: number;
  /**
   * Route to take if the classifier makes no valid choice. If absent, the invocation is interrupted with
   * `router_unresolved`.
   */
  readonly fallbackRoute?: string;
  /**
   * What a specialist sees of the session. `per_route`: what this specialist and the user said in earlier invocations.
   * `shared`: the whole conversation. Default: `per_route`.
   */
  readonly conversationScope?: "per_route" | "shared";
}

const knownOptions = optionTable({
  routes: is.any,
  requireConfidence: is.number({ from: 0, to: 1, default: 0 }),
  fallbackRoute: is.text(),
  conversationScope: is.choice(["per_route", "shared"], { default: "per_route" }),
} satisfies OptionKinds<RouterOptions>);

/**
 * Chooses one specialist with one model call. The specialist's answer is the final answer, without another model
 * call.
 *
 * Role: `classifier`.
 */
export class Router implements Architecture {
  readonly name = "router";
  readonly #routes: TeamMembers;
  readonly #requireConfidence: number;
  readonly #fallback: string | undefined;
  readonly #isShared: boolean;

  constructor(options: RouterOptions) {
    const { routes, requireConfidence, fallbackRoute, conversationScope } = knownOptions.read(
      "router()",
      options,
    );
    this.#routes = new TeamMembers("router", "routes", routes);
    this.#requireConfidence = requireConfidence;
    if (fallbackRoute !== undefined && this.#routes.find(fallbackRoute) === undefined)
      throw new Fault(
        "invalid_argument",
        `fallbackRoute of router is ${fallbackRoute}, which is not a route; routes: ${this.#routes.names.join(", ")}`,
      );
    this.#fallback = fallbackRoute;
    this.#isShared = conversationScope === "shared";
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return endOnWorkerInterruption(session, this.#work(session, deps, prompt));
  }

  async *#work(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const { route, confidence } = await this.#choose(session, deps, promptContext);
    yield architectureEvent(this.name, "classified", { route: route ?? null, confidence });
    const chosen = route !== undefined && confidence >= this.#requireConfidence ? route : this.#fallback;
    session.metadata["router"] = { route: chosen ?? null, confidence };
    if (chosen === undefined) {
      yield architectureEvent(this.name, "unresolved", { route: route ?? null, confidence });
      session.interrupted = true;
      session.interruptionReason = "router_unresolved";
      return;
    }
    yield architectureEvent(this.name, "dispatched", { route: chosen, fallback: chosen !== route });
    const member = this.#routes.get(chosen);
    const options = spawnOptionsOf(member, this.#isShared ? undefined : `route_${chosen}`);
    const onPartialText = keepPartialText(session);
    const result = await runWorker(deps, {
      worker: member.agent,
      input: this.#brief(promptContext),
      options: { ...options, handsOver: true },
      onPartialText: onPartialText,
    });
    if (!adoptWorkerResult(session, deps, chosen, result))
      yield architectureEvent(this.name, "empty_answer", { route: chosen });
    yield architectureEvent(this.name, "completed", { route: chosen });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#routes.agents;
  }

  /**
   * Returns the brief for a specialist. With the scope `per_route` it contains no conversation, because the
   * specialist then has its own session, which it remembers.
   */
  #brief(promptContext: PromptContext): WorkerInput {
    const { history, ...brief } = answerBrief(promptContext);
    return this.#isShared && history !== undefined ? { ...brief, history } : brief;
  }

  async #choose(
    session: AgentSession,
    deps: Dependencies,
    promptContext: PromptContext,
  ): Promise<RouteChoice> {
    const reply = await askSupportingRole(session, deps, promptContext, {
      role: "classifier",
      roleInstructions: `You choose which agent answers a message; you do not answer it yourself. Agents:\n${this.#routes.describeAll()}\nReply with two lines and nothing else:\nroute: <one of the names>\nconfidence: <how sure you are, from 0 to 1>`,
      prompt: promptContext.prompt,
    });
    return parseRouteChoice(reply, this.#routes.names);
  }
}

/**
 * Creates an architecture that chooses one specialist with one model call and returns the specialist's answer. Use it
 * if exactly one of several specialists can answer each message.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { router } from "reeve/architectures";
 *
 * const billing = new Agent({ name: "billing", model: "anthropic/claude-sonnet-5", description: "Answers questions about invoices." });
 * const tech = new Agent({ name: "tech", model: "anthropic/claude-sonnet-5", description: "Solves technical problems." });
 * const team = new Agent({
 *   name: "support",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: router({ routes: { billing, tech }, fallbackRoute: "tech" }),
 * });
 * ```
 */
export function router(options: RouterOptions): Router {
  return new Router(options);
}
