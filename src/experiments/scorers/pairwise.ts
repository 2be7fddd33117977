import type { ModelLike } from "../../capabilities/index.ts";
import {
  describeValue,
  Fault,
  is,
  jsonText,
  optionTable,
  type JsonSchema,
  type JsonValue,
  type OptionKinds,
} from "../../kernel/index.ts";
import { readBaseline } from "../baseline.ts";
import type { DurableScorer, ExperimentResult, ScorerInput, ScorerOutput } from "../contract.ts";
import { inputText } from "../input-text.ts";
import { askAll, scorerAgent } from "./judge.ts";
import { namedKinds, type NamedOptions } from "./named-scorer.ts";

/** Options of `pairwise`. */
export interface PairwiseOptions extends NamedOptions {
  /** The model that compares. */
  readonly model: ModelLike;
  /** What makes an answer better, in words. */
  readonly rubric: string;
  /**
   * The other answer of the comparison: the answer of an earlier variant of the experiment, or the stored answer in
   * a baseline file that `reeve eval --save` wrote.
   */
  readonly against: { readonly variant: string } | { readonly baseline: string };
  /** Number of times that the question is asked in both orders. Default: 1, which means two questions. */
  readonly votes?: number;
}

const pairwiseTable = optionTable({
  ...namedKinds,
  model: is.any,
  rubric: is.text({ empty: false, required: true }),
  against: is.any,
  votes: is.integer({ from: 1, to: 25, default: 1 }),
} satisfies OptionKinds<PairwiseOptions>);

const againstTable = optionTable({
  variant: is.text({ empty: false }),
  baseline: is.text({ empty: false }),
} satisfies OptionKinds<PairwiseOptions["against"]>);

/** What the judging model prefers. */
interface Choice {
  readonly reason: string;
  readonly better: "first" | "second" | "equal";
}

const choiceSchema = {
  type: "object",
  properties: {
    reason: { type: "string" },
    better: { type: "string", enum: ["first", "second", "equal"] },
  },
  required: ["reason", "better"],
  additionalProperties: false,
} as const satisfies JsonSchema;

/**
 * Creates a scorer that asks a model which of two answers is better. The score is 1 for the answer of the case's
 * variant, 0 for the other answer, and 0.5 if neither is better. Every question is asked in both orders, because
 * models prefer the answer that they read first; if the preference changes with the order, the score is 0.5. A case
 * without another answer is skipped.
 */
export function pairwise(options: PairwiseOptions): DurableScorer {
  const { name = "pairwise", model, rubric, against, votes } = pairwiseTable.read("pairwise()", options);
  const { variant, baseline } = againstTable.read("against of pairwise()", against) as {
    readonly variant?: string;
    readonly baseline?: string;
  };
  if ((variant === undefined) === (baseline === undefined))
    throw new Fault(
      "invalid_argument",
      `invalid against ${describeValue(against)} of pairwise(): expected { variant: "base" } or { baseline: "evals/baselines/main.json" }`,
    );
  const instructions = `You compare two answers to the same task by this rubric:\n\n${rubric}\n\nSay which answer is better: first, second or equal. State the reason first, in one or two sentences. Neither the order nor the length of the answers counts.`;
  const agent = scorerAgent("pairwise()", name, model, instructions);
  let stored: Promise<ExperimentResult> | undefined;
  return {
    name,
    agents: [agent],
    comparesVariants: variant !== undefined,
    score: async (given, ctx) => {
      let other: JsonValue | undefined;
      if (variant !== undefined) other = rivalOf(name, given, variant);
      else
        // Recorded: a baseline that changes meanwhile must not change the questions of a run.
        other = (
          await ctx.step(`${name}: stored answer`, async () => {
            stored ??= readBaseline(baseline as string);
            return { answer: storedAnswer(await stored, given) ?? null };
          })
        ).answer;
      if (other === undefined || other === null)
        return { score: null, reason: "there is no other answer to compare with" };
      const rival = other;
      const choices = await askAll(ctx, votes * 2, (each, index) =>
        each.agent(agent, question(given, rival, index % 2 === 1), { output: choiceSchema }),
      );
      return verdict(choices);
    },
  };
}

function rivalOf(scorer: string, { variant, rivals }: ScorerInput, wanted: string): JsonValue | undefined {
  if (variant === wanted) return undefined;
  if (rivals !== undefined && Object.hasOwn(rivals, wanted)) return rivals[wanted];
  throw new Fault(
    "invalid_argument",
    `scorer ${scorer} compares with variant ${wanted}, which is not before ${variant} in the variants of the experiment; list it first`,
  );
}

/** Returns the stored answer of the same variant, or of the only variant in the baseline. */
function storedAnswer({ results, variants }: ExperimentResult, given: ScorerInput): JsonValue | undefined {
  const variant = variants.includes(given.variant) ? given.variant : variants.length === 1 && variants[0];
  return results.find((each) => each.caseId === given.caseId && each.variant === variant)?.output;
}

function question({ input, output }: ScorerInput, other: JsonValue, isSwapped: boolean): string {
  const [first, second] = isSwapped ? [other, output] : [output, other];
  return [
    `The task:\n${JSON.stringify(inputText(input))}`,
    `The first answer:\n${JSON.stringify(jsonText(first))}`,
    `The second answer:\n${JSON.stringify(jsonText(second))}`,
  ].join("\n\n");
}

/**
 * Returns the mean over the pairs of questions. If the second question of a pair failed, the pair is treated as
 * undecided.
 */
function verdict(choices: readonly (Choice | Error)[]): ScorerOutput {
  const pairs = Array.from({ length: choices.length / 2 }, (_, at) => choices.slice(at * 2, at * 2 + 2));
  const points = pairs.map(([straight, swapped]) => {
    const one = pointsOf(straight, "first");
    const other = pointsOf(swapped, "second");
    return one === other ? one : 0.5;
  });
  const told = choices.filter((each): each is Choice => !(each instanceof Error));
  const changed = points.filter((each, at) => each === 0.5 && !isTie(pairs[at] ?? [])).length;
  const reason = told.map(({ better, reason: why }) => `${better}: ${why}`).join(" | ");
  return {
    score: points.reduce((sum, each) => sum + each, 0) / points.length,
    reason: changed === 0 ? reason : `${reason} | the order changed the preference`,
    metadata: { preferences: told.map(({ better }) => better), changedByOrder: changed },
  };
}

function pointsOf(choice: Choice | Error | undefined, own: "first" | "second"): number {
  if (choice === undefined || choice instanceof Error || choice.better === "equal") return 0.5;
  return choice.better === own ? 1 : 0;
}

function isTie(pair: readonly (Choice | Error)[]): boolean {
  return pair.every((each) => each instanceof Error || each.better === "equal");
}
