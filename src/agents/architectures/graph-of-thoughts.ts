import {
  checkOptions,
  optionNames,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
} from "../../kernel/index.ts";
import { askForScore } from "./json-parsing.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  loadPromptContext,
  markdownSections,
  type PromptContext,
} from "./prompt-context.ts";
import { architectureEvent } from "./role-call.ts";
import { mapInBranches } from "./map-in-branches.ts";
import { isBlank } from "./answer-text.ts";
import {
  resolveOperations,
  usualOperations,
  type ResolvedOperation,
  type ThoughtOperation,
} from "./thought-operations.ts";

/** Options of `graphOfThoughts`. */
export interface GraphOfThoughtsOptions {
  /**
   * Operations in the order in which they run. The best thought of the last one is the answer. Default:
   * `usualOperations`.
   */
  readonly operations?: readonly ThoughtOperation[];
  /**
   * Whether calls of one operation run in parallel. `false` runs them one after another, with the same answer. Default:
   * `true`.
   */
  readonly parallel?: boolean;
}

/** One candidate answer. */
interface Thought {
  readonly id: string;
  readonly text: string;
  /** Ids of the thoughts that this one was made from. */
  readonly from: readonly string[];
  /** Score from 0 to 1; `null` until it is scored. */
  readonly score: number | null;
  /** The evaluator's reply, which explains the score. */
  readonly reason: string;
}

const knownOptions = optionNames<GraphOfThoughtsOptions>({ operations: true, parallel: true });

/**
 * Works on whole answers with a graph of operations: drafts several, scores them, keeps the best, merges and refines
 * them. Unlike in a tree, a thought may have several parents.
 *
 * Roles: `thinker`, `evaluator`, `aggregator`, `refiner`.
 */
export class GraphOfThoughts implements Architecture {
  readonly name = "graph-of-thoughts";
  readonly #operations: readonly ResolvedOperation[];
  readonly #parallel: boolean;

  constructor(options: GraphOfThoughtsOptions = {}) {
    checkOptions("graphOfThoughts()", options, knownOptions);
    const { operations = usualOperations, parallel = true } = options;
    this.#operations = resolveOperations(operations);
    this.#parallel = parallel;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const work = new ThoughtOperations({ session, deps, promptContext, parallel: this.#parallel });
    yield architectureEvent("got", "started", { operations: this.#operations.map((each) => ({ ...each })) });
    const results = new Map<string, readonly Thought[]>();
    let last: readonly Thought[] = [];
    for (const operation of this.#operations) {
      deps.ctx.check();
      const { name, from } = operation;
      yield architectureEvent("got", "operation_started", { operation: name, do: operation.do });
      last = await work.execute(operation, uniqueThoughts(from.flatMap((each) => results.get(each) ?? [])));
      results.set(name, last);
      const [best] = ranked(last);
      if (best !== undefined) session.output = best.text;
      session.metadata["thoughts"] = { thoughts: work.thoughts.map(toJson), best: best?.id ?? null };
      yield architectureEvent("got", "operation_completed", { operation: name, thoughts: last.map(toJson) });
    }
    const [best] = ranked(last);
    if (best === undefined) {
      session.interrupted = true;
      session.interruptionReason = "no_thoughts";
      return;
    }
    yield architectureEvent("got", "completed", { id: best.id, score: best.score });
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

/**
 * Creates an architecture that drafts several answers, scores, merges and refines them. Use it if several partly good
 * answers can be combined into a better one, such as for reports or designs.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { graphOfThoughts } from "reeve/architectures";
 *
 * const agent = new Agent({
 *   name: "designer",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: graphOfThoughts({
 *     operations: [{ do: "generate", count: 4 }, { do: "score" }, { do: "keep_best", count: 2 }, { do: "aggregate" }],
 *   }),
 * });
 * ```
 */
export function graphOfThoughts(options?: GraphOfThoughtsOptions): GraphOfThoughts {
  return new GraphOfThoughts(options);
}

/** What the operations of one run work with. */
interface ThoughtWorkParts {
  readonly session: AgentSession;
  readonly deps: Dependencies;
  readonly promptContext: PromptContext;
  readonly parallel: boolean;
}

/** The thoughts of one run, and the operations on them. */
class ThoughtOperations {
  readonly #parts: ThoughtWorkParts;
  /** Thoughts by id in the order of their creation, each with its score if it has one. */
  readonly #thoughts = new Map<string, Thought>();

  constructor(parts: ThoughtWorkParts) {
    this.#parts = parts;
  }

  get thoughts(): readonly Thought[] {
    return [...this.#thoughts.values()];
  }

  async execute(operation: ResolvedOperation, inputs: readonly Thought[]): Promise<readonly Thought[]> {
    const thoughts = inputs.map((each) => this.#thoughts.get(each.id) ?? each);
    switch (operation.do) {
      case "generate":
        return this.#generate(operation.count);
      case "score":
        return this.#score(thoughts);
      case "keep_best":
        return ranked(thoughts).slice(0, operation.count);
      case "aggregate":
        return thoughts.length < 2 ? thoughts : this.#aggregate(thoughts);
      case "refine":
        return this.#refine(thoughts, operation);
    }
  }

  /**
   * Adds thoughts in the order of the calls, not of the replies, so that ids are the same on replay. A blank reply adds
   * no thought.
   */
  #add(fresh: readonly Omit<Thought, "id" | "score" | "reason">[]): readonly Thought[] {
    const withText = fresh.filter(({ text }) => !isBlank(text));
    return withText.map((each) => {
      const thought: Thought = { ...each, id: `t${this.#thoughts.size + 1}`, score: null, reason: "" };
      this.#thoughts.set(thought.id, thought);
      return thought;
    });
  }

  async #generate(count: number): Promise<readonly Thought[]> {
    const { session, deps, promptContext, parallel } = this.#parts;
    const items = Array.from({ length: count }, (_, index) => index + 1);
    const texts = await mapInBranches(deps, { role: "thinker", items, parallel }, (scoped, number) =>
      askAnsweringRole(session, scoped, promptContext, {
        role: "thinker",
        roleInstructions: `You write answer number ${number} of ${count} independent answers to the same task. Find an approach of your own.`,
        prompt: markdownSections({ Task: promptContext.prompt }),
      }),
    );
    return this.#add(texts.map((text) => ({ text, from: [] })));
  }

  async #score(thoughts: readonly Thought[]): Promise<readonly Thought[]> {
    const { session, deps, promptContext, parallel } = this.#parts;
    const items = thoughts.filter(({ score }) => score === null);
    const replies = await mapInBranches(deps, { role: "evaluator", items, parallel }, (scoped, { text }) =>
      askForScore((correction) =>
        askSupportingRole(session, scoped, promptContext, {
          role: "evaluator",
          roleInstructions:
            'You judge whether an answer is correct, complete and follows the task. Reply with JSON and nothing else: {"score": a number from 0 (useless) to 1 (nothing to improve), "reason": what is wrong or missing}.',
          prompt: markdownSections({ Task: promptContext.prompt, Answer: text, Correction: correction }),
        }),
      ),
    );
    for (const [index, thought] of items.entries()) {
      const { reply, score } = replies[index] ?? { reply: "", score: 0 };
      this.#thoughts.set(thought.id, { ...thought, score, reason: reply });
    }
    return thoughts.map((each) => this.#thoughts.get(each.id) ?? each);
  }

  /** Merges several thoughts into one. If the aggregator's reply is blank, returns the best of the given thoughts. */
  async #aggregate(thoughts: readonly Thought[]): Promise<readonly Thought[]> {
    const { session, deps, promptContext } = this.#parts;
    const text = await askAnsweringRole(session, deps, promptContext, {
      role: "aggregator",
      roleInstructions:
        "You see several answers to one task. Write one answer that contains what is right in each, without their mistakes. Give the whole answer and nothing else.",
      prompt: markdownSections({
        Task: promptContext.prompt,
        ...Object.fromEntries(
          thoughts.map((each, index) => [
            `Answer ${index + 1}${each.score === null ? "" : ` (score ${each.score})`}`,
            each.text,
          ]),
        ),
      }),
    });
    const made = this.#add([{ text, from: thoughts.map(({ id }) => id) }]);
    return made.length > 0 ? made : ranked(thoughts).slice(0, 1);
  }

  async #refine(
    thoughts: readonly Thought[],
    { maxRounds, threshold }: Extract<ResolvedOperation, { readonly do: "refine" }>,
  ): Promise<readonly Thought[]> {
    const { session, deps, promptContext, parallel } = this.#parts;
    let best = await this.#score(thoughts);
    for (let round = 1; round <= maxRounds; round++) {
      const items = best.filter(({ score }) => (score ?? 0) < threshold);
      if (items.length === 0) break;
      deps.ctx.check();
      const texts = await mapInBranches(
        deps,
        { role: "refiner", items, parallel },
        (scoped, { text, reason }) =>
          askAnsweringRole(session, scoped, promptContext, {
            role: "refiner",
            roleInstructions:
              "Rewrite the answer to the task so that it fixes what the judgement criticises. Give the whole answer and nothing else.",
            prompt: markdownSections({ Task: promptContext.prompt, Answer: text, Judgement: reason }),
          }),
      );
      const drafts = this.#add(texts.map((text, index) => ({ text, from: [items[index]?.id ?? ""] })));
      const versions = await this.#score(drafts);
      best = best.map((thought) => {
        const version = versions.find(({ from }) => from.includes(thought.id));
        return version !== undefined && (version.score ?? 0) >= (thought.score ?? 0) ? version : thought;
      });
    }
    return best;
  }
}

function uniqueThoughts(thoughts: readonly Thought[]): readonly Thought[] {
  return [...new Map(thoughts.map((each) => [each.id, each])).values()];
}

/**
 * Sorts thoughts by score, best first. A tie goes to the later thought, which was made from more; thoughts without a
 * score come last.
 */
function ranked(thoughts: readonly Thought[]): readonly Thought[] {
  return thoughts.toReversed().toSorted((one, other) => (other.score ?? -1) - (one.score ?? -1));
}

function toJson({ reason: _reason, ...thought }: Thought): JsonObject {
  return { ...thought, from: [...thought.from] };
}
