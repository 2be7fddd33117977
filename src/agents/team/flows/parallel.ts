import {
  Fault,
  type HostedAgent,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type RunContext,
} from "../../../kernel/index.ts";
import { requireAnswer, runWorker, stopIfBudgetSpent, type WorkerResult } from "../run-worker.ts";
import { loadPromptContext } from "../../context/prompt-context.ts";
import {
  briefOf,
  endStatus,
  flowSteps,
  inFormWanted,
  joined,
  workersOf,
  type FlowStep,
} from "./flow-step.ts";
import { stepEnd, stepStart, withFlowEvents } from "./flow-events.ts";

/**
 * How several texts are combined: joined, the most frequent one, or the result of a function, in the order of the
 * branches.
 */
export type Merge = "concat" | "vote" | ((texts: readonly string[]) => string | Promise<string>);

export interface ParallelFlowOptions {
  readonly branches: readonly HostedAgent[];
  /** How the answers are combined. A function is journaled, so that it is called only once. Default: `"concat"`. */
  readonly merge?: Merge;
}

/**
 * An architecture that runs several agents on the same input in parallel. A branch without an answer contributes an
 * empty text. If no branch answers, or the flow's own budget is used up, the flow stops as the branch did.
 */
export class ParallelFlow implements Architecture {
  readonly name = "parallel";
  readonly requiresModel = false;
  readonly hasOwnCalls = false;
  readonly #branches: readonly FlowStep[];
  readonly #merge: Merge;

  constructor({ branches, merge = "concat" }: ParallelFlowOptions) {
    this.#branches = flowSteps(this.name, "branches", branches);
    if (typeof merge !== "function" && merge !== "concat" && merge !== "vote")
      throw new Fault(
        "invalid_argument",
        `invalid merge ${String(merge)} of a parallel flow: expected "concat", "vote" or a function of the texts`,
      );
    this.#merge = merge;
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return withFlowEvents(this.name, session, this.#go(session, deps, prompt));
  }

  declaredWorkers(): Readonly<Record<string, HostedAgent>> {
    return workersOf(this.#branches);
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const flow = this.name;
    const question = await loadPromptContext(session, deps, prompt);
    const told = briefOf(prompt, question);
    // With a vote, one of the answers is the flow's answer, so each branch is given the output schema. Merged texts are
    // not.
    const input = this.#merge === "vote" ? inFormWanted(told, question) : told;
    const texts = this.#branches.map(() => "");
    const branches = this.#branches.map(({ name: step, worker }, index) => {
      const heard = (text: string): void => {
        texts[index] = text;
        session.output = joined(texts);
      };
      const branch = async (ctx: RunContext): Promise<WorkerResult> => {
        ctx.emitEvent(stepStart({ flow, step }));
        const own = deps.scopeForWorker(deps.role, ctx);
        const end = await runWorker(own, { worker, input, onPartialText: heard });
        if (end.kind !== "refused") heard(end.text);
        return end;
      };
      return [`branch_${index + 1}`, branch] as const;
    });
    const ends = Object.values(await deps.ctx.parallel(Object.fromEntries(branches)));
    for (const [index, { name: step }] of this.#branches.entries())
      yield stepEnd({ flow, step, status: endStatus(ends[index]) });
    stopIfBudgetSpent(deps, ends);
    const [first] = ends;
    if (first !== undefined && !ends.some(({ kind }) => kind === "answered"))
      requireAnswer(deps, this.#branches[0]?.name ?? "", first);
    session.output = await this.#merged(
      deps,
      ends.map((end) => (end.kind === "answered" ? end.text : "")),
    );
  }

  #merged({ ctx }: Dependencies, texts: readonly string[]): string | Promise<string> {
    const merge = this.#merge;
    if (merge === "concat") return joined(texts);
    if (merge === "vote") return elected(texts);
    return ctx.step("merge", async () => merge(texts), { input: [...texts] });
  }
}

/** Returns the most frequent text; among equally frequent ones, the first. Empty texts do not count. */
function elected(texts: readonly string[]): string {
  const votes = new Map<string, number>();
  for (const text of texts) if (text !== "") votes.set(text, (votes.get(text) ?? 0) + 1);
  let [winner, most] = ["", 0];
  for (const [text, count] of votes) if (count > most) [winner, most] = [text, count];
  return winner;
}
