import type {
  AgentSession,
  Architecture,
  Dependencies,
  EmittableEvent,
  JsonObject,
} from "../../kernel/index.ts";
import { parseScore } from "./json-parsing.ts";
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

export interface GraphOfThoughtsOptions {
  /** What is done with thoughts, in this order. The best thought of the last one is the answer. See `usualOperations`. */
  readonly operations?: readonly ThoughtOperation[];
  /** `false`: one call after another; the answer is the same. */
  readonly parallel?: boolean;
}

interface Thought {
  readonly id: string;
  readonly text: string;
  /** The thoughts it was made of. */
  readonly from: readonly string[];
  readonly score: number | null;
  /** Why it has its score. */
  readonly reason: string;
}

/**
 * Works on whole answers by a small graph of operations: several drafts, scores, the best, several made into one, rewritten. Unlike a tree's,
 * its thoughts may have several parents. Roles: `thinker`, `evaluator`, `aggregator`, `refiner`.
 */
export class GraphOfThoughts implements Architecture {
  readonly name = "graph-of-thoughts";
  readonly #operations: readonly ResolvedOperation[];
  readonly #parallel: boolean;

  constructor({ operations = usualOperations, parallel = true }: GraphOfThoughtsOptions = {}) {
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

/** Answers that are drafted, scored, put together and rewritten, as a graph of operations says. */
export function graphOfThoughts(options?: GraphOfThoughtsOptions): GraphOfThoughts {
  return new GraphOfThoughts(options);
}

interface ThoughtWorkParts {
  readonly session: AgentSession;
  readonly deps: Dependencies;
  readonly promptContext: PromptContext;
  readonly parallel: boolean;
}

class ThoughtOperations {
  readonly #parts: ThoughtWorkParts;
  /** By id, in the order in which they came up; with its score, once it has one. */
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

  /** Numbered when all are there: not by who came first. Who said nothing had no thought. */
  #add(fresh: readonly Omit<Thought, "id" | "score" | "reason">[]): readonly Thought[] {
    const reason = fresh.filter(({ text }) => !isBlank(text));
    return reason.map((each) => {
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
        duty: `You write one of ${count} answers to the same task, number ${number}, that do not know each other. Take a way of your own to it.`,
        prompt: markdownSections({ Task: promptContext.prompt }),
      }),
    );
    return this.#add(texts.map((text) => ({ text, from: [] })));
  }

  async #score(thoughts: readonly Thought[]): Promise<readonly Thought[]> {
    const { session, deps, promptContext, parallel } = this.#parts;
    const items = thoughts.filter(({ score }) => score === null);
    const reason = await mapInBranches(deps, { role: "evaluator", items, parallel }, (scoped, { text }) =>
      askSupportingRole(session, scoped, promptContext, {
        role: "evaluator",
        duty: 'You judge how well an answer does its task: right, complete, as asked. Answer with JSON and nothing else: {"score": a number from 0 (useless) to 1 (nothing to add), "reason": what is wrong or missing}.',
        prompt: markdownSections({ Task: promptContext.prompt, Answer: text }),
      }),
    );
    for (const [index, thought] of items.entries()) {
      const reply = reason[index] ?? "";
      this.#thoughts.set(thought.id, { ...thought, score: parseScore(reply) ?? 0, reason: reply });
    }
    return thoughts.map((each) => this.#thoughts.get(each.id) ?? each);
  }

  /** One; of an aggregator that says nothing, the best of those it was given. */
  async #aggregate(thoughts: readonly Thought[]): Promise<readonly Thought[]> {
    const { session, deps, promptContext } = this.#parts;
    const text = await askAnsweringRole(session, deps, promptContext, {
      role: "aggregator",
      duty: "Several answers to one task are given. Write one that has what is right in each and the mistakes of none. Give the whole answer and nothing else.",
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
            duty: "Write the answer to the task anew, better by what its judge says. Give the whole answer and nothing else.",
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

/** Best first; among equals the later one, which was made of more. */
function ranked(thoughts: readonly Thought[]): readonly Thought[] {
  return thoughts.toReversed().toSorted((one, other) => (other.score ?? -1) - (one.score ?? -1));
}

function toJson({ reason: _reason, ...thought }: Thought): JsonObject {
  return { ...thought, from: [...thought.from] };
}
