import type { AgentSession, Architecture, Dependencies, EmittableEvent } from "../../kernel/index.ts";
import { askAdvisor, teamWorkers, type Advisor } from "./advisor.ts";
import { requireCount, requireScore } from "./option-checks.ts";
import {
  adoptWorkerResult,
  runWorkers,
  stopIfBudgetSpent,
  describeWorkerFailure,
  type WorkerJob,
  type WorkerResult,
} from "./run-worker.ts";
import { loadPromptContext, markdownSections, type PromptContext } from "./prompt-context.ts";
import { architectureEvent } from "./role-call.ts";
import { answerBrief, spawnOptionsOf, TeamMembers, workerBrief, type Members } from "./team-members.ts";
import { isBlank, setAnswer } from "./answer-text.ts";
import { endOnWorkerInterruption } from "./worker-interruption.ts";

export interface DebateOptions {
  /** At least two. Those that think by other models, or with other instructions, disagree in other ways. */
  readonly debaters: Members;
  /** The first, in which nobody knows what the others say, counts. 2 unless told. */
  readonly rounds?: number;
  /** Ends as soon as all say the same, more or less. Unless told not to. */
  readonly detectConvergence?: boolean;
  /** How alike answers must be for that: the share of words they have in common, from 0 to 1. 0.85 unless told. */
  readonly convergenceThreshold?: number;
  /** Puts the answers together. Without one the answer that most gave is the answer. */
  readonly judge?: Advisor;
}

interface Position {
  readonly name: string;
  readonly answer: string;
}

/**
 * Several agents answer, each by itself, then again in view of what the others said; a judge or a vote makes one answer of it. Each round
 * hires anew. A debater that comes to no answer is out; the rest go on. Role: `judge`.
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
    const { debaters, rounds = 2, detectConvergence = true, convergenceThreshold = 0.85, judge } = options;
    this.#debaters = new TeamMembers("debate", "debaters", debaters, 2);
    this.#workers = teamWorkers("debate", this.#debaters, { judge });
    this.#rounds = requireCount("debate", "rounds", rounds);
    const threshold = requireScore("debate", "convergenceThreshold", convergenceThreshold);
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
      // B5: better than nothing, should the money end here.
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
        duty: "Several answers to one question were given. Say which is right and why the others are not, to yourself; reply with the best answer and nothing else, taking from each what is good.",
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

/** B5: what the first of them had said by then, whoever left first, where nothing whole was said before. */
function keepFirstPartialText(
  session: AgentSession,
  names: readonly string[],
): (name: string, text: string) => void {
  const partialTexts = new Map<string, string>();
  const isWhole = session.output !== "";
  return (name, text) => {
    partialTexts.set(name, text);
    const first = names.find((each) => partialTexts.has(each)) ?? name;
    if (!isWhole) session.output = partialTexts.get(first) ?? "";
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
    "What the others say": listPositions(positions.filter((each) => each.name !== name)),
    "What to do now":
      "Look at what the others say. Keep what you are sure of, change what they have right, and give your whole answer.",
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
  return isBlank(result.text) ? { why: `${name} said nothing` } : { answer: result.text };
}

/** In the order of the debaters. */
function answersIn(results: Readonly<Record<string, WorkerResult>>): readonly Position[] {
  return Object.entries(results).flatMap(([name, result]) =>
    result.kind === "answered" && !isBlank(result.text) ? [{ name, answer: result.text }] : [],
  );
}

/** Nobody answered: the first one's end is the debate's; where that had nothing to say, what was said before holds. */
function adoptFirstResult(
  session: AgentSession,
  deps: Dependencies,
  results: Readonly<Record<string, WorkerResult>>,
): void {
  const [first] = Object.entries(results);
  if (first !== undefined) adoptWorkerResult(session, deps, ...first, session.output !== "");
}

/** Each with each other. */
function haveConverged(positions: readonly Position[], threshold: number): boolean {
  const words = positions.map(({ answer }) => new Set(normalised(answer).split(" ").map(withoutPunctuation)));
  return words.every((one, index) =>
    words.slice(index + 1).every((other) => jaccard(one, other) >= threshold),
  );
}

/** Jaccard's: what both have of what either has. */
function jaccard(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const shared = [...one].filter((word) => other.has(word)).length;
  return shared / (one.size + other.size - shared);
}

/** What most say, whatever their case and punctuation; of as many, what was said first, in the words of whoever said it first. */
function vote(positions: readonly Position[]): string {
  const votes = new Map<string, { readonly answer: string; count: number }>();
  for (const { answer } of positions) {
    const ballot = normalised(answer);
    const known = votes.get(ballot);
    if (known === undefined) votes.set(ballot, { answer, count: 1 });
    else known.count++;
  }
  let won = { answer: "", count: 0 };
  for (const each of votes.values()) if (each.count > won.count) won = each;
  return won.answer;
}

/** Without what makes no difference: case, blanks, and marks around it or at its end. A sign or a point inside a number does. */
function normalised(answer: string): string {
  return withoutPunctuation(answer.toLowerCase().replaceAll(/\s+/gu, " ").trim());
}

/** In one pass: an expression that looks for marks at the end looks at every run of them, as often as it is long. */
function withoutPunctuation(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && marksBefore.includes(text.charAt(from))) from++;
  while (to > from && marksAfter.includes(text.charAt(to - 1))) to--;
  return text.slice(from, to);
}

const marksBefore = "\"'*`([{";
const marksAfter = "\"'*`)]}.,;:!?";

/** Several agents that answer, look at each other's answers and answer again; a judge or a vote has the last word. */
export function debate(options: DebateOptions): Debate {
  return new Debate(options);
}
