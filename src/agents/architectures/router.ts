import {
  describeValue,
  Fault,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type WorkerInput,
} from "../../kernel/index.ts";
import { scoreOf } from "./bound.ts";
import { endWith, hire, saidFor } from "./hire.ts";
import { askHelper, questionOf, type Question } from "./question.ts";
import { note } from "./role-call.ts";
import { routeChoiceIn, type RouteChoice } from "./route-choice.ts";
import { answerWanted, hiring, Roster, type Members } from "./roster.ts";
import { boundByWorkers } from "./worker-bound.ts";

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
  readonly #routes: Roster;
  readonly #requireConfidence: number;
  readonly #fallback: string | undefined;
  readonly #isShared: boolean;

  constructor(options: RouterOptions) {
    const { routes, requireConfidence = 0, fallbackRoute, conversationScope = "per_route" } = options;
    this.#routes = new Roster("router", "routes", routes);
    this.#requireConfidence = scoreOf("router", "requireConfidence", requireConfidence);
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
    return boundByWorkers(session, this.#go(session, deps, prompt));
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const question = await questionOf(session, deps, prompt);
    const { route, confidence } = await this.#choose(session, deps, question);
    yield note(this.name, "classified", { route: route ?? null, confidence });
    const chosen = route !== undefined && confidence >= this.#requireConfidence ? route : this.#fallback;
    session.metadata["router"] = { route: chosen ?? null, confidence };
    if (chosen === undefined) {
      yield note(this.name, "unresolved", { route: route ?? null, confidence });
      session.interrupted = true;
      session.interruptionReason = "router_unresolved";
      return;
    }
    yield note(this.name, "dispatched", { route: chosen, fallback: chosen !== route });
    const member = this.#routes.get(chosen);
    const options = hiring(member, this.#isShared ? undefined : `route_${chosen}`);
    const heard = saidFor(session);
    const end = await hire(deps, { worker: member.agent, input: this.#brief(question), options, heard });
    if (!endWith(session, deps, chosen, end)) yield note(this.name, "empty_answer", { route: chosen });
    yield note(this.name, "completed", { route: chosen });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#routes.agents;
  }

  /** One that remembers by itself is shown nothing of what others said. */
  #brief(question: Question): WorkerInput {
    const { history, ...brief } = answerWanted(question);
    return this.#isShared && history !== undefined ? { ...brief, history } : brief;
  }

  async #choose(session: AgentSession, deps: Dependencies, question: Question): Promise<RouteChoice> {
    const said = await askHelper(session, deps, question, {
      role: "classifier",
      duty: `You choose who is to answer a message; you do not answer it. There are:\n${this.#routes.listed()}\nReply with two lines and nothing else:\nroute: <one of the names>\nconfidence: <how sure you are, from 0 to 1>`,
      prompt: question.prompt,
    });
    return routeChoiceIn(said, this.#routes.names);
  }
}

/** One call that chooses a specialist, whose answer is the answer. */
export function router(options: RouterOptions): Router {
  return new Router(options);
}
