import {
  describeValue,
  Fault,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type WorkerInput,
} from "../../kernel/index.ts";
import { requireScore } from "./option-checks.ts";
import { adoptWorkerResult, runWorker, keepPartialText } from "./run-worker.ts";
import { askSupportingRole, loadPromptContext, type PromptContext } from "./prompt-context.ts";
import { architectureEvent } from "./role-call.ts";
import { parseRouteChoice, type RouteChoice } from "./route-choice.ts";
import { answerBrief, spawnOptionsOf, TeamMembers, type Members } from "./team-members.ts";
import { endOnWorkerInterruption } from "./worker-interruption.ts";

export interface RouterOptions {
  /** The specialists, by the name of their route. Described well, they are chosen well. */
  readonly routes: Members;
  /** Below it, a choice is none. From 0 to 1; 0 unless told, when any will do. */
  readonly requireConfidence?: number;
  /** Where to go without a choice. Without one it is a dead end: the run fails as `router_unresolved`. */
  readonly fallbackRoute?: string;
  /**
   * `per_route`, unless told: each specialist remembers what it said in this session, and nothing else. `shared`: whoever is chosen is shown
   * the whole conversation.
   */
  readonly conversationScope?: "per_route" | "shared";
}

/**
 * Chooses one specialist by one call, and what that one says is the answer: there is no second call to put it into other words. Role:
 * `classifier`.
 */
export class Router implements Architecture {
  readonly name = "router";
  readonly #routes: TeamMembers;
  readonly #requireConfidence: number;
  readonly #fallback: string | undefined;
  readonly #isShared: boolean;

  constructor(options: RouterOptions) {
    const { routes, requireConfidence = 0, fallbackRoute, conversationScope = "per_route" } = options;
    this.#routes = new TeamMembers("router", "routes", routes);
    this.#requireConfidence = requireScore("router", "requireConfidence", requireConfidence);
    if (fallbackRoute !== undefined && this.#routes.find(fallbackRoute) === undefined)
      throw new Fault(
        "invalid_argument",
        `fallbackRoute of router is ${fallbackRoute}, which is no route; there are: ${this.#routes.names.join(", ")}`,
      );
    if (conversationScope !== "per_route" && conversationScope !== "shared")
      throw new Fault(
        "invalid_argument",
        `conversationScope of router is ${describeValue(conversationScope)}: it must be per_route or shared`,
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
      options,
      onPartialText: onPartialText,
    });
    if (!adoptWorkerResult(session, deps, chosen, result))
      yield architectureEvent(this.name, "empty_answer", { route: chosen });
    yield architectureEvent(this.name, "completed", { route: chosen });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#routes.agents;
  }

  /** One that remembers by itself is shown nothing of what others said. */
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
      duty: `You choose who is to answer a message; you do not answer it. There are:\n${this.#routes.describeAll()}\nReply with two lines and nothing else:\nroute: <one of the names>\nconfidence: <how sure you are, from 0 to 1>`,
      prompt: promptContext.prompt,
    });
    return parseRouteChoice(reply, this.#routes.names);
  }
}

/** One call that chooses a specialist, whose answer is the answer. */
export function router(options: RouterOptions): Router {
  return new Router(options);
}
