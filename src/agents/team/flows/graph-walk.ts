import {
  CancellationError,
  Fault,
  jsonText,
  Transcript,
  type HostedAgent,
  type AgentSession,
  type Dependencies,
  type JsonValue,
  type RunContext,
  type StepContext,
} from "../../../kernel/index.ts";
import { requireAnswer, runWorker } from "../run-worker.ts";
import { loadPromptContext, type PromptContext } from "../../context/prompt-context.ts";
import { briefOf, inFormWanted, joined } from "./flow-step.ts";
import { statusOf, stepEnd, stepStart } from "./flow-events.ts";
import { START, type NodeFunction, type GraphDefinition } from "./graph-definition.ts";
import type { BoundMet, Visit, GraphSchedule } from "./graph-schedule.ts";

/** The name of the flow in stored events. */
const flow = "workflow";

/** Executes a graph. Each node has a branch that waits to be called and executes one visit per call. */
export class GraphWalk {
  readonly #graph: GraphDefinition;
  readonly #schedule: GraphSchedule;
  readonly #session: AgentSession;
  readonly #deps: Dependencies;
  readonly #calls: Map<string, PromiseWithResolvers<Visit | undefined>>;
  /** The visits that are running. */
  readonly #underWay = new Set<Promise<void>>();
  /** What stopped nodes had said, by name. */
  readonly #heard = new Map<string, string>();
  #last: { readonly visit: Visit; readonly value: JsonValue } | undefined;
  #question: PromptContext | undefined;

  constructor(graph: GraphDefinition, schedule: GraphSchedule, session: AgentSession, deps: Dependencies) {
    this.#graph = graph;
    this.#schedule = schedule;
    this.#session = session;
    this.#deps = deps;
    this.#calls = new Map(graph.names.map((name) => [name, Promise.withResolvers()]));
  }

  /** Executes the graph. Returns the limit that ended it early, if one did. */
  async toTheEnd(prompt: string): Promise<BoundMet | undefined> {
    const { ctx } = this.#deps;
    this.#question = await loadPromptContext(this.#session, this.#deps, prompt);
    this.#schedule.pass(START, prompt, await this.#choose(ctx, START, prompt));
    try {
      this.#callOn();
      const branches = this.#graph.names.map((name) => [name, (own: RunContext) => this.#attend(name, own)]);
      await ctx.parallel(Object.fromEntries(branches) as Record<string, (own: RunContext) => Promise<void>>, {
        stopOnFault: true,
      });
      return undefined;
    } catch (error) {
      if (error instanceof BoundReached) return error.met;
      throw error;
    }
  }

  async #attend(node: string, ctx: RunContext): Promise<void> {
    for (;;) {
      const visit = await this.#calls.get(node)?.promise;
      if (visit === undefined) return;
      this.#calls.set(node, Promise.withResolvers());
      await this.#amongOthers(this.#pass(visit, ctx));
    }
  }

  /**
   * B5: after a stop, waits for all running visits. They are stopped as well, and their partial output would
   * otherwise be lost.
   */
  async #amongOthers(passing: Promise<void>): Promise<void> {
    this.#underWay.add(passing);
    try {
      await passing;
    } catch (error) {
      if (isStopped(this.#deps.ctx)) await Promise.allSettled(this.#underWay);
      throw error;
    } finally {
      this.#underWay.delete(passing);
    }
  }

  async #pass(visit: Visit, ctx: RunContext): Promise<void> {
    const { node } = visit;
    const value = await this.#visit(visit, ctx);
    this.#note(visit, value);
    this.#schedule.pass(node, value, await this.#choose(ctx, node, value));
    this.#show();
    this.#callOn();
  }

  /**
   * Keeps the value of a visit. Among visits that do not depend on each other, the value of the node that was
   * declared first is kept, not that of the fastest.
   */
  #note(visit: Visit, value: JsonValue): void {
    const { names } = this.#graph;
    const last = this.#last?.visit;
    const isLater =
      last === undefined ||
      visit.depth > last.depth ||
      (visit.depth === last.depth && names.indexOf(visit.node) <= names.indexOf(last.node));
    if (isLater) this.#last = { visit, value };
    this.#show();
  }

  /**
   * B5: reports the answer so far: the value that arrived at the end, otherwise the value of the last node,
   * otherwise the partial output of the first stopped node.
   */
  #show(): void {
    const value = this.#schedule.arrivedAtEnd ?? this.#last?.value ?? "";
    const said = this.#graph.names.map((name) => this.#heard.get(name) ?? "");
    this.#session.output = [wordsOf(value), ...said].find((words) => words !== "") ?? "";
  }

  #callOn(): void {
    const begun = this.#schedule.begin();
    if ("bound" in begun) throw new BoundReached(begun);
    for (const visit of begun) this.#calls.get(visit.node)?.resolve(visit);
    if (this.#schedule.isOver) for (const call of this.#calls.values()) call.resolve(undefined);
  }

  /**
   * Executes one visit. The commit of its record also contains its end event, because the branch may have no other
   * step for a long time. J5: an agent's failure is recorded as a value, so that all visits that stopped at once
   * are resumed at once. With a failed step, only one of them would become void.
   */
  async #visit(visit: Visit, ctx: RunContext): Promise<JsonValue> {
    const { node: step, input } = visit;
    const node = this.#graph.node(step);
    ctx.emitEvent(stepStart({ flow, step }));
    let said: JsonValue | undefined;
    try {
      if (typeof node !== "function") said = await this.#hire(node, visit, ctx);
      return await ctx.step(
        step,
        async (inside) => {
          const value = typeof node === "function" ? await work(node, visit, inside) : (said ?? null);
          inside.ctx.emitEvent(stepEnd({ flow, step, status: "completed" }));
          return value;
        },
        { input, ...this.#graph.stepOptions(step) },
      );
    } catch (error) {
      // If the agent had answered before the stop, the visit counts as completed.
      const status = said === undefined ? statusOf(error) : "completed";
      ctx.emitEvent(stepEnd({ flow, step, status }));
      throw error;
    }
  }

  async #hire(worker: HostedAgent, visited: Visit, ctx: RunContext): Promise<JsonValue> {
    const { node, visit, input: given } = visited;
    const deps = this.#deps.scopeForWorker(this.#deps.role, ctx);
    const prompt = wordsOf(given);
    const isFirst = visit === 1 && this.#graph.ways.some(({ from, to }) => from === START && to === node);
    const question = this.#question;
    const brief =
      question === undefined ? prompt : briefOf(prompt, isFirst ? question : laterQuestion(question));
    const input = question !== undefined && this.#graph.answers(node) ? inFormWanted(brief, question) : brief;
    const heard = (words: string): void => {
      this.#heard.set(node, words);
      this.#show();
    };
    const end = await runWorker(deps, { worker, input, onPartialText: heard });
    if (end.kind === "stopped") heard(end.text);
    const text = requireAnswer(deps, node, end);
    if (end.kind !== "answered") return text;
    this.#note(visited, end.output);
    return end.output;
  }

  async #choose(ctx: RunContext, from: string, value: JsonValue): Promise<readonly string[]> {
    const router = this.#graph.router(from);
    if (router === undefined) return [];
    return ctx.step(
      `${from} routes`,
      async () => {
        const chosen = await router.choose(value, wordsOf(value));
        const names: readonly string[] = typeof chosen === "string" ? [chosen] : chosen;
        const known: readonly string[] = router.to;
        const unknown = names.filter((name) => !known.includes(name));
        if (names.length > 0 && unknown.length === 0) return names;
        throw new Fault(
          "invalid_argument",
          `the router at ${from} chose ${unknown.join(", ") || "no node"}: expected one of ${known.join(", ")}`,
        );
      },
      { input: value },
    );
  }
}

/**
 * Returns the part of the question for nodes after the first: the instructions, without the conversation and the
 * attachments.
 */
function laterQuestion(question: PromptContext): PromptContext {
  return { ...question, history: Transcript.empty, attachments: [] };
}

/**
 * J5: executes a function. If it throws after its task was cancelled, the cancel is the cause, so that a resumed run
 * executes it again.
 */
async function work(node: NodeFunction, { input, visit }: Visit, inside: StepContext): Promise<JsonValue> {
  const { idempotencyKey, attempt, signal } = inside;
  try {
    return await node(input, {
      text: wordsOf(input),
      visit,
      idempotencyKey,
      attempt,
      signal,
      get ctx() {
        return inside.ctx;
      },
    });
  } catch (error) {
    if (signal.reason instanceof CancellationError) throw signal.reason;
    throw error;
  }
}

function isStopped(ctx: RunContext): boolean {
  try {
    ctx.check();
    return false;
  } catch {
    return true;
  }
}

/** An error with which one branch ends all branches at a limit. It is not a fault, because nothing failed. */
class BoundReached extends Error {
  readonly met: BoundMet;

  constructor(met: BoundMet) {
    super(`${met.bound} met at ${met.node}`);
    this.met = met;
  }
}

/** Converts a value to text: a list of texts is joined by blank lines, other values are serialised as JSON. */
function wordsOf(value: JsonValue): string {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return joined(value);
  return jsonText(value);
}
