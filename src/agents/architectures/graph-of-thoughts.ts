import {
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { askForScore } from "./json-parsing.ts";
import { parseTextList } from "./list-parsing.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  loadPromptContext,
  markdownSections,
  type PromptContext,
} from "../context/prompt-context.ts";
import { architectureEvent } from "../context/role-call.ts";
import { mapInBranches } from "./map-in-branches.ts";
import { isBlank } from "../base/answer-text.ts";
import {
  inGroups,
  keepBest,
  ranked,
  uniqueThoughts,
  type Thought,
  joinedAfter,
  operationJson,
  resolveOperations,
  scoreBy,
  splitBy,
  usualOperations,
  type OperationOf,
  type ResolvedOperation,
  type ThoughtJudgement,
  type ThoughtOperation,
  type ThoughtScorer,
} from "./thought-operations.ts";

/** Options of `graphOfThoughts`. */
export interface GraphOfThoughtsOptions {
  /**
   * Operations in the order in which they run. The best thought of the last operation is the answer. Default:
   * `usualOperations`.
   */
  readonly operations?: readonly ThoughtOperation[];
  /**
   * Function that scores thoughts in the operations `score` and `refine`. If absent, the model of the role
   * `evaluator` scores them.
   */
  readonly scorer?: ThoughtScorer;
  /**
   * Whether calls of one operation run in parallel. `false` runs them one after another, with the same answer. Default:
   * `true`.
   */
  readonly parallel?: boolean;
}

const knownOptions = optionTable({
  operations: is.list(),
  scorer: is.callback({ hint: "to use a model, set models.evaluator of the agent" }),
  parallel: is.boolean({ default: true }),
} satisfies OptionKinds<GraphOfThoughtsOptions>);

/**
 * Works on thoughts with a graph of operations: splits the task or a thought, drafts several thoughts, scores them, keeps
 * the best, merges and refines them. Unlike in a tree, a thought may have several parents.
 *
 * Roles: `splitter`, `thinker`, `evaluator` (unless there is a `scorer`), `aggregator`, `refiner`.
 */
export class GraphOfThoughts implements Architecture {
  readonly name = "graph-of-thoughts";
  readonly #operations: readonly ResolvedOperation[];
  readonly #scorer: ThoughtScorer | undefined;
  readonly #parallel: boolean;

  constructor(options: GraphOfThoughtsOptions = {}) {
    const {
      operations = usualOperations,
      scorer,
      parallel,
    } = knownOptions.read("graphOfThoughts()", options);
    this.#scorer = scorer;
    this.#operations = resolveOperations(operations);
    this.#parallel = parallel;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const work = new ThoughtOperations({
      session,
      deps,
      promptContext,
      scorer: this.#scorer,
      parallel: this.#parallel,
    });
    yield architectureEvent("got", "started", { operations: this.#operations.map(operationJson) });
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

/** The parts with which the operations of one run work. */
interface ThoughtWorkParts {
  readonly session: AgentSession;
  readonly deps: Dependencies;
  readonly promptContext: PromptContext;
  readonly scorer: ThoughtScorer | undefined;
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
        return this.#generate(operation, operation.from.length === 0 ? [undefined] : thoughts);
      case "split":
        return this.#split(operation, operation.from.length === 0 ? [undefined] : thoughts);
      case "score":
        return this.#score(thoughts);
      case "keep_best":
        return keepBest(operation, thoughts);
      case "aggregate":
        return this.#aggregate(operation, thoughts);
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

  /** Writes thoughts from each origin, in order. `undefined` as an origin stands for the task. */
  async #generate(
    { count, instructions }: OperationOf<"generate">,
    origins: readonly (Thought | undefined)[],
  ): Promise<readonly Thought[]> {
    const { session, deps, promptContext, parallel } = this.#parts;
    const items = origins.flatMap((origin) =>
      Array.from({ length: count }, (_, index) => ({ origin, number: index + 1 })),
    );
    const texts = await mapInBranches(
      deps,
      { role: "thinker", items, parallel },
      (scoped, { origin, number }) =>
        askAnsweringRole(session, scoped, promptContext, {
          role: "thinker",
          roleInstructions:
            instructions ??
            (origin === undefined
              ? `You write answer number ${number} of ${count} independent answers to the same task. Find an approach of your own.`
              : `You see a task and a thought about it. Write the next thought, number ${number} of ${count} independent ones: do what the task asks with this thought, and give the whole result and nothing else.`),
          prompt: markdownSections({ Task: promptContext.prompt, Thought: origin?.text ?? "" }),
        }),
    );
    return this.#add(texts.map((text, index) => ({ text, from: idsOf(items[index]?.origin) })));
  }

  /**
   * Splits each origin into parts. `undefined` as an origin stands for the task. A thought that is not split
   * remains as it is.
   */
  async #split(
    { name, count, by, instructions }: OperationOf<"split">,
    origins: readonly (Thought | undefined)[],
  ): Promise<readonly Thought[]> {
    const { session, deps, promptContext, parallel } = this.#parts;
    const items = origins.map((origin) => ({ origin, text: origin?.text ?? promptContext.prompt }));
    const texts = items.map(({ text }) => text);
    const parts =
      by === undefined
        ? await mapInBranches(deps, { role: "splitter", items, parallel }, async (scoped, { origin }) => {
            const reply = await askSupportingRole(session, scoped, promptContext, {
              role: "splitter",
              roleInstructions: `${instructions ?? `You split work into parts that can be done separately, ${count} at most.`} Reply with a JSON list of texts, each with the whole content of its part, and nothing else.`,
              prompt: markdownSections({ Task: promptContext.prompt, "To split": origin?.text ?? "" }),
            });
            return joinedAfter(parseTextList(reply) ?? [], count);
          })
        : await deps.ctx.step("split", () => Promise.all(texts.map((text) => splitBy(name, by, text))), {
            input: texts,
          });
    return items.flatMap(({ origin, text }, index) => {
      const made = parts[index] ?? [];
      if (made.length === 0 && origin !== undefined) return [origin];
      const whole = made.length === 0 ? [text] : made;
      return this.#add(whole.map((part) => ({ text: part, from: idsOf(origin) })));
    });
  }

  async #score(thoughts: readonly Thought[]): Promise<readonly Thought[]> {
    const items = thoughts.filter(({ score }) => score === null);
    const judgements = await this.#judge(items);
    for (const [index, thought] of items.entries()) {
      const { score, reason } = judgements[index] ?? { score: 0, reason: "" };
      this.#thoughts.set(thought.id, { ...thought, score, reason });
    }
    return thoughts.map((each) => this.#thoughts.get(each.id) ?? each);
  }

  #judge(items: readonly Thought[]): Promise<readonly ThoughtJudgement[]> {
    const { session, deps, promptContext, scorer, parallel } = this.#parts;
    const { prompt: task } = promptContext;
    if (scorer !== undefined) {
      if (items.length === 0) return Promise.resolve([]);
      const judged = items.map(({ text, from }) => ({ text, parents: this.#textsOf(from), task }));
      return deps.ctx.step("score", () => Promise.all(judged.map((each) => scoreBy(scorer, each))), {
        input: judged,
      });
    }
    return mapInBranches(deps, { role: "evaluator", items, parallel }, async (scoped, { text }) => {
      const { reply: reason, score } = await askForScore((correction) =>
        askSupportingRole(session, scoped, promptContext, {
          role: "evaluator",
          roleInstructions:
            'You judge whether an answer is correct, complete and follows the task. Reply with JSON and nothing else: {"score": a number from 0 (useless) to 1 (nothing to improve), "reason": what is wrong or missing}.',
          prompt: markdownSections({ Task: task, Answer: text, Correction: correction }),
        }),
      );
      return { score, reason };
    });
  }

  #textsOf(ids: readonly string[]): readonly string[] {
    return ids.map((id) => this.#thoughts.get(id)?.text ?? "");
  }

  /**
   * Merges each group of thoughts. The only thought of a group is kept as it is. If the replies of the aggregator
   * are blank, the best thought of the group is kept.
   */
  async #aggregate(
    { groupSize, count, instructions }: OperationOf<"aggregate">,
    thoughts: readonly Thought[],
  ): Promise<readonly Thought[]> {
    const { session, deps, promptContext, parallel } = this.#parts;
    const groups = inGroups(thoughts, groupSize ?? thoughts.length);
    const items = groups.flatMap((group, index) =>
      group.length < 2 ? [] : Array.from({ length: count }, () => ({ group, index })),
    );
    const texts = await mapInBranches(deps, { role: "aggregator", items, parallel }, (scoped, { group }) =>
      askAnsweringRole(session, scoped, promptContext, {
        role: "aggregator",
        roleInstructions:
          instructions ??
          "You see several answers to one task. Write one answer that contains what is right in each, without their mistakes. Give the whole answer and nothing else.",
        prompt: markdownSections({ Task: promptContext.prompt, ...answerSections(group) }),
      }),
    );
    return groups.flatMap((group, index) => {
      const own = texts.filter((_, position) => items[position]?.index === index);
      const made = this.#add(own.map((text) => ({ text, from: group.map(({ id }) => id) })));
      return made.length > 0 ? made : ranked(group).slice(0, 1);
    });
  }

  async #refine(
    thoughts: readonly Thought[],
    { maxRounds, threshold, instructions }: OperationOf<"refine">,
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
              instructions ??
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

function idsOf(origin: Thought | undefined): readonly string[] {
  return origin === undefined ? [] : [origin.id];
}

function answerSections(thoughts: readonly Thought[]): Readonly<Record<string, string>> {
  const titled = thoughts.map(({ score, text }, index) => [
    `Answer ${index + 1}${score === null ? "" : ` (score ${score})`}`,
    text,
  ]);
  return Object.fromEntries(titled) as Record<string, string>;
}

function toJson({ reason: _reason, ...thought }: Thought): JsonObject {
  return { ...thought, from: [...thought.from] };
}
