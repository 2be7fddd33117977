import {
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { askAdvisor, teamWorkers, type Advisor } from "./advisor.ts";
import {
  adoptWorkerResult,
  runWorkers,
  stopIfBudgetSpent,
  describeWorkerFailure,
  type WorkerJob,
  type WorkerResult,
} from "../team/run-worker.ts";
import { loadPromptContext, markdownSections, type PromptContext } from "../context/prompt-context.ts";
import { architectureEvent } from "../context/role-call.ts";
import { answerBrief, spawnOptionsOf, TeamMembers, workerBrief, type Members } from "../team/team-members.ts";
import { isBlank, setAnswer } from "../base/answer-text.ts";
import { endOnWorkerInterruption } from "../team/worker-interruption.ts";

/** Options of `debate`. */
export interface DebateOptions {
  /** At least two agents, by name. Agents with different models or instructions find different arguments. */
  readonly debaters: Members;
  /** Maximum number of rounds. In the first round, no debater sees the answers of the others. Default: 2. */
  readonly rounds?: number;
  /** Whether to end the debate as soon as all answers are nearly the same. Default: `true`. */
  readonly detectConvergence?: boolean;
  /**
   * Similarity from 0 to 1 at which two answers count as the same. The similarity is the number of words that both
   * answers contain, divided by the number of words that at least one contains. Default: 0.85.
   */
  readonly convergenceThreshold?: number;
  /**
   * Writes the final answer from the answers of the last round. If absent, the most frequent answer is the final
   * one.
   */
  readonly judge?: Advisor;
}

/** The latest answer of one debater. */
interface Position {
  readonly name: string;
  readonly answer: string;
}

const knownOptions = optionTable({
  debaters: is.any,
  rounds: is.integer({ from: 1, default: 2 }),
  detectConvergence: is.boolean({ default: true }),
  convergenceThreshold: is.number({ from: 0, to: 1, default: 0.85 }),
  judge: is.any,
} satisfies OptionKinds<DebateOptions>);

/**
 * Several agents answer independently and then again after reading the other answers; a judge or a vote decides on one
 * answer. The agents are spawned again in every round. A debater without an answer leaves the debate, and the others
 * continue.
 *
 * Role: `judge`.
 */
export class Debate implements Architecture {
  readonly name = "debate";
  readonly requiresModel: boolean;
  readonly #debaters: TeamMembers;
  readonly #workers: ReturnType<Architecture["declaredWorkers"]>;
  readonly #rounds: number;
  readonly #convergenceThreshold: number | undefined;
  readonly #judge: Advisor | undefined;

  constructor(options: DebateOptions) {
    const { debaters, rounds, detectConvergence, convergenceThreshold, judge } = knownOptions.read(
      "debate()",
      options,
    );
    this.#debaters = new TeamMembers("debate", "debaters", debaters, 2);
    this.#workers = teamWorkers("debate", this.#debaters, { judge });
    this.#rounds = rounds;
    const threshold = convergenceThreshold;
    this.#convergenceThreshold = detectConvergence ? threshold : undefined;
    this.#judge = judge;
    this.requiresModel = judge === "self";
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return endOnWorkerInterruption(session, this.#work(session, deps, prompt));
  }

  async *#work(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    let positions: readonly Position[] = [];
    let rounds = 0;
    for (; rounds < this.#rounds; rounds++) {
      yield architectureEvent(this.name, "round_started", { round: rounds });
      const jobs = this.#jobs(
        promptContext,
        rounds,
        positions,
        keepFirstPartialText(session, this.#debaters.names),
      );
      const results = await runWorkers(deps, jobs);
      for (const [debater, result] of Object.entries(results))
        yield architectureEvent(this.name, "response", {
          round: rounds,
          debater,
          ...responseData(debater, result),
        });
      const answers = answersIn(results);
      if (answers.length > 0) positions = answers;
      else adoptFirstResult(session, deps, results);
      // B5: keeps the most frequent answer as the output, in case the budget runs out before the end.
      setAnswer(session, vote(positions));
      stopIfBudgetSpent(deps, Object.values(results));
      if (positions.length < 2) break;
      if (this.#convergenceThreshold === undefined || !haveConverged(positions, this.#convergenceThreshold))
        continue;
      yield architectureEvent(this.name, "converged", { round: rounds });
      break;
    }
    const roundsHeld = Math.min(rounds + 1, this.#rounds);
    session.metadata["debate"] = { rounds: roundsHeld, answers: Object.fromEntries(positions.map(toEntry)) };
    const by = this.#judge === undefined || positions.length < 2 ? "vote" : "judge";
    if (this.#judge !== undefined && by === "judge") {
      yield architectureEvent(this.name, "judging", { answers: positions.length });
      const judgement = await askAdvisor(session, deps, promptContext, {
        by: this.#judge,
        role: "judge",
        answers: true,
        roleInstructions:
          "You see several answers to one question. Decide for yourself which one is right and why the others are not. Reply with the best answer and nothing else; use what is good in each.",
        prompt: markdownSections({ Question: prompt, Answers: listPositions(positions) }),
      });
      if (!setAnswer(session, judgement)) yield architectureEvent(this.name, "empty_answer");
    }
    yield architectureEvent(this.name, "synthesized", { by });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#workers;
  }

  #jobs(
    promptContext: PromptContext,
    round: number,
    positions: readonly Position[],
    partialTexts: (name: string, text: string) => void,
  ): Readonly<Record<string, WorkerJob>> {
    const baseBrief = this.#judge === undefined ? answerBrief(promptContext) : workerBrief(promptContext);
    const participants = round === 0 ? this.#debaters.names : positions.map(({ name }) => name);
    const jobs = participants.map((name): [string, WorkerJob] => {
      const member = this.#debaters.get(name);
      const input =
        round === 0 ? baseBrief : { ...baseBrief, prompt: rebuttal(promptContext, name, positions) };
      const own = (text: string): void => partialTexts(name, text);
      return [name, { worker: member.agent, input, options: spawnOptionsOf(member), onPartialText: own }];
    });
    return Object.fromEntries(jobs);
  }
}

/**
 * B5: keeps a partial text if the debaters are cancelled before any answer is complete. It is the text of the first
 * debater in the order of `names`, not of the one that was cancelled first.
 */
function keepFirstPartialText(
  session: AgentSession,
  names: readonly string[],
): (name: string, text: string) => void {
  const partialTexts = new Map<string, string>();
  const hasAnswer = session.output !== "";
  return (name, text) => {
    partialTexts.set(name, text);
    const first = names.find((each) => partialTexts.has(each)) ?? name;
    if (!hasAnswer) session.output = partialTexts.get(first) ?? "";
  };
}

function rebuttal(
  promptContext: PromptContext,
  name: string,
  positions: readonly Position[],
): ReturnType<typeof workerBrief>["prompt"] {
  const own = positions.find((each) => each.name === name)?.answer ?? "";
  const prompt = markdownSections({
    Question: promptContext.prompt,
    "Your answer so far": own,
    "What the other debaters say": listPositions(positions.filter((each) => each.name !== name)),
    "What to do now":
      "Read the other answers. Keep what you are sure of, change what the others have right, and write your whole answer.",
  });
  return workerBrief({ ...promptContext, prompt }).prompt;
}

function listPositions(positions: readonly Position[]): string {
  return positions.map(({ name, answer }) => `## ${name}\n${answer}`).join("\n\n");
}

function toEntry({ name, answer }: Position): [string, string] {
  return [name, answer];
}

function responseData(
  name: string,
  result: WorkerResult,
): { readonly answer: string } | { readonly why: string } {
  if (result.kind !== "answered") return { why: describeWorkerFailure(name, result) };
  return isBlank(result.text) ? { why: `${name} gave an empty answer` } : { answer: result.text };
}

/** Returns the answers that are not blank, in the order of the debaters. */
function answersIn(results: Readonly<Record<string, WorkerResult>>): readonly Position[] {
  return Object.entries(results).flatMap(([name, result]) =>
    result.kind === "answered" && !isBlank(result.text) ? [{ name, answer: result.text }] : [],
  );
}

/**
 * Ends the debate with the result of the first debater if no debater answered. If that result has no text, the
 * answer of an earlier round is kept.
 */
function adoptFirstResult(
  session: AgentSession,
  deps: Dependencies,
  results: Readonly<Record<string, WorkerResult>>,
): void {
  const [first] = Object.entries(results);
  if (first !== undefined) adoptWorkerResult(session, deps, ...first, session.output !== "");
}

/** Whether every pair of answers is at least as similar as the threshold. */
function haveConverged(positions: readonly Position[], threshold: number): boolean {
  const words = positions.map(({ answer }) => new Set(normalised(answer).split(" ").map(withoutPunctuation)));
  return words.every((one, index) =>
    words.slice(index + 1).every((other) => jaccard(one, other) >= threshold),
  );
}

/**
 * Returns the Jaccard similarity: the number of words in both sets, divided by the number of words in at least one
 * of them.
 */
function jaccard(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const shared = [...one].filter((word) => other.has(word)).length;
  return shared / (one.size + other.size - shared);
}

/**
 * Returns the most frequent answer, compared without case and punctuation. If several are equally frequent, returns
 * the one that came first, in its original wording.
 */
function vote(positions: readonly Position[]): string {
  const votes = new Map<string, { readonly answer: string; count: number }>();
  for (const { answer } of positions) {
    const ballot = normalised(answer);
    const counted = votes.get(ballot);
    if (counted === undefined) votes.set(ballot, { answer, count: 1 });
    else counted.count++;
  }
  let winner = { answer: "", count: 0 };
  for (const each of votes.values()) if (each.count > winner.count) winner = each;
  return winner.answer;
}

/**
 * Removes differences that do not matter: case, white space, and punctuation around the text. Signs and decimal points
 * inside numbers stay.
 */
function normalised(answer: string): string {
  return withoutPunctuation(answer.toLowerCase().replaceAll(/\s+/gu, " ").trim());
}

/**
 * Removes punctuation around a text in one pass. A regular expression anchored at the end takes quadratic time on long
 * runs of punctuation.
 */
function withoutPunctuation(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && marksBefore.includes(text.charAt(from))) from++;
  while (to > from && marksAfter.includes(text.charAt(to - 1))) to--;
  return text.slice(from, to);
}

const marksBefore = "\"'*`([{";
const marksAfter = "\"'*`)]}.,;:!?";

/**
 * Creates an architecture in which several agents answer, read each other's answers and answer again; a judge or a
 * vote decides. Use it if a wrong answer is expensive.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { debate } from "reeve/architectures";
 *
 * const optimist = new Agent({ name: "optimist", model: "anthropic/claude-sonnet-5" });
 * const sceptic = new Agent({ name: "sceptic", model: "anthropic/claude-sonnet-5" });
 * const team = new Agent({
 *   name: "panel",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: debate({ debaters: { optimist, sceptic }, judge: "self" }),
 * });
 * ```
 */
export function debate(options: DebateOptions): Debate {
  return new Debate(options);
}
