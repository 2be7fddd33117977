import {
  CancellationError,
  Fault,
  jsonText,
  type HostedAgent,
  type AgentSession,
  type Dependencies,
  type JsonValue,
  type RunContext,
  type StepContext,
} from "../../kernel/index.ts";
import { requireAnswer, runWorker } from "../architectures/run-worker.ts";
import { loadPromptContext, type PromptContext } from "../architectures/prompt-context.ts";
import { briefOf, inFormWanted, joined } from "./flow-step.ts";
import { statusOf, stepEnd, stepStart } from "./told-flow.ts";
import { START, type NodeFunction, type WorkflowGraph } from "./workflow-graph.ts";
import type { BoundMet, Visit, WorkflowSchedule } from "./workflow-schedule.ts";

const flow = "workflow";

/** A workflow under way: for each node a branch that waits to be called on, and does a visit at each call. */
export class WorkflowWalk {
  readonly #graph: WorkflowGraph;
  readonly #schedule: WorkflowSchedule;
  readonly #session: AgentSession;
  readonly #deps: Dependencies;
  readonly #calls: Map<string, PromiseWithResolvers<Visit | undefined>>;
  /** At work. */
  readonly #underWay = new Set<Promise<void>>();
  /** What nodes had said when they were stopped, by name. */
  readonly #heard = new Map<string, string>();
  #last: { readonly visit: Visit; readonly value: JsonValue } | undefined;
  #question: PromptContext | undefined;

  constructor(graph: WorkflowGraph, schedule: WorkflowSchedule, session: AgentSession, deps: Dependencies) {
    this.#graph = graph;
    this.#schedule = schedule;
    this.#session = session;
    this.#deps = deps;
    this.#calls = new Map(graph.names.map((name) => [name, Promise.withResolvers()]));
  }

  /** Gives the bound that ended it before its end, if one did. */
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

  /** B5: who is stopped leaves together with the others, who are stopped as well: given up, they would not be heard. */
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

  /** Of visits that do not build upon each other, the node's that was declared first, whoever was quicker. */
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

  /** B5: what came to the end is the answer so far; before that what the last node came to, or else what the first had said by then. */
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
   * Its end is told with its record: the branch may have no other step for long. J5: what an agent came to is a value to the journal, so that
   * all who stopped at once go on at once; a fault of the step's would be taken back for one of them alone.
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
        { input },
      );
    } catch (error) {
      // A stop that comes when it has answered does not make it unsaid.
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
    const told = isFirst && question !== undefined ? briefOf(prompt, question) : prompt;
    const input = question !== undefined && this.#graph.answers(node) ? inFormWanted(told, question) : told;
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
          `the router at ${from} chose ${unknown.join(", ") || "nothing"}; it must choose among ${known.join(", ")}`,
        );
      },
      { input: value },
    );
  }
}

/** J5: what it throws when it was told to stop is the stop, so that whoever goes on begins it anew. */
async function work(node: NodeFunction, { input, visit }: Visit, inside: StepContext): Promise<JsonValue> {
  const { idempotencyKey, signal } = inside;
  try {
    return await node(input, {
      text: wordsOf(input),
      visit,
      idempotencyKey,
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

/** Thrown by one branch to end them all; no fault, for nothing failed. */
class BoundReached extends Error {
  readonly met: BoundMet;

  constructor(met: BoundMet) {
    super(`${met.bound} met at ${met.node}`);
    this.met = met;
  }
}

/** A list of texts is what several said: with blank lines between. Other values as JSON. */
function wordsOf(value: JsonValue): string {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return joined(value);
  return jsonText(value);
}
