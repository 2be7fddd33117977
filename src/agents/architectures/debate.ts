import type { AgentSession, Architecture, Dependencies, EmittableEvent } from "../../kernel/index.ts";
import { advised, workersOf, type Advisor } from "./advisor.ts";
import { countOf, scoreOf } from "./bound.ts";
import { endWith, hireAll, stopIfSpent, whyNot, type Job, type WorkerEnd } from "./hire.ts";
import { questionOf, titled, type Question } from "./question.ts";
import { note } from "./role-call.ts";
import { answerWanted, hiring, Roster, wholeQuestion, type Members } from "./roster.ts";
import { isSilent, takeAnswer } from "./spoken-answer.ts";
import { boundByWorkers } from "./worker-bound.ts";

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
  readonly #debaters: Roster;
  readonly #workers: ReturnType<Architecture["declaredWorkers"]>;
  readonly #rounds: number;
  readonly #alike: number | undefined;
  readonly #judge: Advisor | undefined;

  constructor(options: DebateOptions) {
    const { debaters, rounds = 2, detectConvergence = true, convergenceThreshold = 0.85, judge } = options;
    this.#debaters = new Roster("debate", "debaters", debaters, 2);
    this.#workers = workersOf("debate", this.#debaters, { judge });
    this.#rounds = countOf("debate", "rounds", rounds);
    const alike = scoreOf("debate", "convergenceThreshold", convergenceThreshold);
    this.#alike = detectConvergence ? alike : undefined;
    this.#judge = judge;
    this.requiresModel = judge === "self";
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return boundByWorkers(session, this.#go(session, deps, prompt));
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const question = await questionOf(session, deps, prompt);
    let positions: readonly Position[] = [];
    let rounds = 0;
    for (; rounds < this.#rounds; rounds++) {
      yield note(this.name, "round_started", { round: rounds });
      const jobs = this.#jobs(question, rounds, positions, firstOf(session, this.#debaters.names));
      const ends = await hireAll(deps, jobs);
      for (const [debater, end] of Object.entries(ends))
        yield note(this.name, "response", { round: rounds, debater, ...said(debater, end) });
      const spoken = answered(ends);
      if (spoken.length > 0) positions = spoken;
      else endAsFirst(session, deps, ends);
      // B5: better than nothing, should the money end here.
      takeAnswer(session, vote(positions));
      stopIfSpent(deps, Object.values(ends));
      if (positions.length < 2) break;
      if (this.#alike === undefined || !agree(positions, this.#alike)) continue;
      yield note(this.name, "converged", { round: rounds });
      break;
    }
    const held = Math.min(rounds + 1, this.#rounds);
    session.metadata["debate"] = { rounds: held, answers: Object.fromEntries(positions.map(byName)) };
    const by = this.#judge === undefined || positions.length < 2 ? "vote" : "judge";
    if (this.#judge !== undefined && by === "judge") {
      yield note(this.name, "judging", { answers: positions.length });
      const judged = await advised(session, deps, question, {
        by: this.#judge,
        role: "judge",
        answers: true,
        duty: "Several answers to one question were given. Say which is right and why the others are not, to yourself; reply with the best answer and nothing else, taking from each what is good.",
        prompt: titled({ Question: prompt, Answers: listed(positions) }),
      });
      if (!takeAnswer(session, judged)) yield note(this.name, "empty_answer");
    }
    yield note(this.name, "synthesized", { by });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#workers;
  }

  #jobs(
    question: Question,
    round: number,
    positions: readonly Position[],
    heard: (name: string, text: string) => void,
  ): Readonly<Record<string, Job>> {
    const whole = this.#judge === undefined ? answerWanted(question) : wholeQuestion(question);
    const taking = round === 0 ? this.#debaters.names : positions.map(({ name }) => name);
    const jobs = taking.map((name): [string, Job] => {
      const member = this.#debaters.get(name);
      const input = round === 0 ? whole : { ...whole, prompt: rebuttal(question, name, positions) };
      const own = (text: string): void => heard(name, text);
      return [name, { worker: member.agent, input, options: hiring(member), heard: own }];
    });
    return Object.fromEntries(jobs);
  }
}

/** B5: what the first of them had said by then, whoever left first, where nothing whole was said before. */
function firstOf(session: AgentSession, names: readonly string[]): (name: string, text: string) => void {
  const heard = new Map<string, string>();
  const isWhole = session.output !== "";
  return (name, text) => {
    heard.set(name, text);
    const first = names.find((each) => heard.has(each)) ?? name;
    if (!isWhole) session.output = heard.get(first) ?? "";
  };
}

function rebuttal(
  question: Question,
  name: string,
  positions: readonly Position[],
): ReturnType<typeof wholeQuestion>["prompt"] {
  const own = positions.find((each) => each.name === name)?.answer ?? "";
  const prompt = titled({
    Question: question.prompt,
    "Your answer so far": own,
    "What the others say": listed(positions.filter((each) => each.name !== name)),
    "What to do now":
      "Look at what the others say. Keep what you are sure of, change what they have right, and give your whole answer.",
  });
  return wholeQuestion({ ...question, prompt }).prompt;
}

function listed(positions: readonly Position[]): string {
  return positions.map(({ name, answer }) => `## ${name}\n${answer}`).join("\n\n");
}

function byName({ name, answer }: Position): [string, string] {
  return [name, answer];
}

function said(name: string, end: WorkerEnd): { readonly answer: string } | { readonly why: string } {
  if (end.kind !== "answered") return { why: whyNot(name, end) };
  return isSilent(end.text) ? { why: `${name} said nothing` } : { answer: end.text };
}

/** In the order of the debaters. */
function answered(ends: Readonly<Record<string, WorkerEnd>>): readonly Position[] {
  return Object.entries(ends).flatMap(([name, end]) =>
    end.kind === "answered" && !isSilent(end.text) ? [{ name, answer: end.text }] : [],
  );
}

/** Nobody answered: the first one's end is the debate's; where that had nothing to say, what was said before holds. */
function endAsFirst(
  session: AgentSession,
  deps: Dependencies,
  ends: Readonly<Record<string, WorkerEnd>>,
): void {
  const [first] = Object.entries(ends);
  if (first !== undefined) endWith(session, deps, ...first, session.output !== "");
}

/** Each with each other. */
function agree(positions: readonly Position[], threshold: number): boolean {
  const words = positions.map(({ answer }) => new Set(normalised(answer).split(" ").map(bare)));
  return words.every((one, index) =>
    words.slice(index + 1).every((other) => likeness(one, other) >= threshold),
  );
}

/** Jaccard's: what both have of what either has. */
function likeness(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
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
  return bare(answer.toLowerCase().replaceAll(/\s+/gu, " ").trim());
}

/** In one pass: an expression that looks for marks at the end looks at every run of them, as often as it is long. */
function bare(text: string): string {
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
