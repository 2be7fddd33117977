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
import { setAnswer } from "../base/answer-text.ts";

/** Options of `treeOfThoughts`. */
export interface TreeOfThoughtsOptions {
  /** Number of next thoughts that are proposed after each followed thought. Default: 3. */
  readonly branches?: number;
  /** Maximum number of levels. Default: 3. */
  readonly depth?: number;
  /** Number of thoughts per level from which the search continues (beam width). Default: 2. */
  readonly beam?: number;
  /** Score from 0 to 1 at which a thought ends the search. Default: 1. */
  readonly solvedScore?: number;
  /** Score from 0 to 1 below which a thought is not followed. Default: 0. */
  readonly minScore?: number;
  /**
   * Whether calls of one level run in parallel. `false` runs them one after another, with the same answer. Default:
   * `true`.
   */
  readonly parallel?: boolean;
  /**
   * Whether a last call writes the answer from the best chain of thoughts. `false` makes the last thought of the chain
   * the answer. Default: `true`.
   */
  readonly synthesizeFinal?: boolean;
}

/** One thought of the tree. */
interface Thought {
  /** Position in the tree: `2.1` is the first thought that follows the second one. */
  readonly id: string;
  /** Id of the previous thought. `null` on the first level. */
  readonly parentId: string | null;
  readonly text: string;
  readonly score: number;
}

const knownOptions = optionTable({
  branches: is.integer({ from: 1, default: 3 }),
  depth: is.integer({ from: 1, default: 3 }),
  beam: is.integer({ from: 1, default: 2 }),
  solvedScore: is.number({ from: 0, to: 1, default: 1 }),
  minScore: is.number({ from: 0, to: 1, default: 0 }),
  parallel: is.boolean({ default: true }),
  synthesizeFinal: is.boolean({ default: true }),
} satisfies OptionKinds<TreeOfThoughtsOptions>);

/**
 * Searches for a chain of thoughts level by level: proposes several next thoughts, scores them, and follows the best.
 * If a level has no thought to follow, the answer comes from the level before.
 *
 * Roles: `proposer`, `evaluator`, `synthesizer`.
 */
export class TreeOfThoughts implements Architecture {
  readonly name = "tree-of-thoughts";
  readonly #options: Required<TreeOfThoughtsOptions>;

  constructor(options: TreeOfThoughtsOptions = {}) {
    this.#options = knownOptions.read("treeOfThoughts()", options);
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const { depth, beam, minScore, solvedScore } = this.#options;
    const promptContext = await loadPromptContext(session, deps, prompt);
    const search: Search = { session, deps, promptContext };
    const tree: Thought[] = [];
    const chainOf = (thought: Thought): readonly Thought[] => chainTo(tree, thought);
    yield architectureEvent("tot", "started", { ...this.#options });
    let frontier: readonly Thought[] = [];
    let endReason = "depth_reached";
    for (let level = 1; level <= depth; level++) {
      deps.ctx.check();
      yield architectureEvent("tot", "level_started", { level, frontier: frontier.map(({ id }) => id) });
      const chains = frontier.length === 0 ? [[]] : frontier.map(chainOf);
      const proposals = await this.#propose(search, chains);
      yield architectureEvent("tot", "proposed", { level, thoughts: proposals.map(({ text }) => text) });
      if (proposals.length === 0) {
        yield architectureEvent("tot", "no_thoughts", { level });
        endReason = "no_thoughts";
        break;
      }
      const thoughts = await this.#score(search, proposals, chainOf);
      tree.push(...thoughts);
      yield architectureEvent("tot", "evaluated", {
        level,
        scores: thoughts.map(({ id, score }) => ({ id, score })),
      });
      const kept = thoughts
        .filter(({ score }) => score >= minScore)
        .toSorted((one, other) => other.score - one.score)
        .slice(0, beam);
      const followed = new Set(kept);
      const pruned = thoughts.filter((thought) => !followed.has(thought)).map(({ id }) => id);
      if (pruned.length > 0) yield architectureEvent("tot", "pruned", { level, pruned });
      session.metadata["tree"] = { thoughts: tree.map(toJson), best: (kept[0] ?? frontier[0])?.id ?? null };
      if (kept[0] === undefined) {
        yield architectureEvent("tot", "empty_beam", { level });
        endReason = "empty_beam";
        break;
      }
      frontier = kept;
      session.output = kept[0].text;
      if (kept[0].score >= solvedScore) {
        yield architectureEvent("tot", "solved", { level, id: kept[0].id, score: kept[0].score });
        endReason = "solved";
        break;
      }
    }
    const [best] = frontier;
    if (best === undefined) {
      session.interrupted = true;
      session.interruptionReason = endReason;
      return;
    }
    if (this.#options.synthesizeFinal) {
      const hasText = setAnswer(session, await synthesize(search, chainOf(best)));
      yield architectureEvent("tot", hasText ? "synthesized" : "empty_answer", { id: best.id });
    }
    yield architectureEvent("tot", "completed", {
      end: endReason,
      id: best.id,
      score: best.score,
      thoughts: tree.length,
    });
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }

  /** Makes one model call per chain. Each call proposes all next thoughts of its chain. */
  async #propose(
    { session, deps, promptContext }: Search,
    chains: readonly (readonly Thought[])[],
  ): Promise<readonly Proposal[]> {
    const { branches, parallel } = this.#options;
    const work = { role: "proposer", items: chains, parallel };
    const reply = await mapInBranches(deps, work, (scoped, chain) =>
      askSupportingRole(session, scoped, promptContext, {
        role: "proposer",
        roleInstructions: `You propose how to continue a line of thought towards the answer to a task: ${branches} different next thoughts, each one step further, or the answer itself if it is near. Reply with a JSON list of texts and nothing else.`,
        prompt: markdownSections({ Task: promptContext.prompt, "Thoughts so far": chainText(chain) }),
      }),
    );
    return reply.flatMap((text, index) => {
      const parentId = chains[index]?.at(-1)?.id ?? null;
      return (parseTextList(text) ?? []).slice(0, branches).map((thought, place) => ({
        id: parentId === null ? `${place + 1}` : `${parentId}.${place + 1}`,
        parentId,
        text: thought,
      }));
    });
  }

  async #score(
    { session, deps, promptContext }: Search,
    proposals: readonly Proposal[],
    chainOf: (thought: Thought) => readonly Thought[],
  ): Promise<readonly Thought[]> {
    const work = { role: "evaluator", items: proposals, parallel: this.#options.parallel };
    return mapInBranches(deps, work, async (scoped, proposal) => {
      const ask = (correction: string): Promise<string> =>
        askSupportingRole(session, scoped, promptContext, {
          role: "evaluator",
          roleInstructions:
            'You judge a line of thought towards the answer to a task: how likely is it to lead to the answer? Reply with JSON and nothing else: {"score": a number from 0 (leads nowhere) to 1 (is the correct answer)}.',
          prompt: markdownSections({
            Task: promptContext.prompt,
            "Thoughts so far": chainText(chainOf({ ...proposal, score: 0 })),
            Correction: correction,
          }),
        });
      const { score } = await askForScore(ask);
      return { ...proposal, score };
    });
  }
}

/**
 * Creates an architecture that searches through chains of thoughts, level by level, and follows the best. Use it for
 * puzzles and plans in which a wrong first step cannot be corrected later.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { treeOfThoughts } from "reeve/architectures";
 *
 * const agent = new Agent({
 *   name: "puzzler",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: treeOfThoughts({ branches: 4, depth: 3, beam: 2 }),
 * });
 * ```
 */
export function treeOfThoughts(options?: TreeOfThoughtsOptions): TreeOfThoughts {
  return new TreeOfThoughts(options);
}

type Proposal = Omit<Thought, "score">;

/** What the calls of one search need. */
interface Search {
  readonly session: AgentSession;
  readonly deps: Dependencies;
  readonly promptContext: PromptContext;
}

function chainTo(tree: readonly Thought[], thought: Thought): readonly Thought[] {
  const parent = tree.find(({ id }) => id === thought.parentId);
  return parent === undefined ? [thought] : [...chainTo(tree, parent), thought];
}

function chainText(chain: readonly Thought[]): string {
  return chain.map(({ text }, index) => `${index + 1}. ${text}`).join("\n");
}

function synthesize({ session, deps, promptContext }: Search, chain: readonly Thought[]): Promise<string> {
  return askAnsweringRole(session, deps, promptContext, {
    role: "synthesizer",
    roleInstructions:
      "Write the answer that the thoughts lead to. Give only the answer, without the thoughts, unless the task asks for them.",
    prompt: markdownSections({ Task: promptContext.prompt, Thoughts: chainText(chain) }),
  });
}

function toJson(thought: Thought): JsonObject {
  return { ...thought };
}
