import {
  jsonText,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
} from "../../kernel/index.ts";
import { advised, workersOf, type Advisor } from "./advisor.ts";
import { countOf } from "./bound.ts";
import { hire, stopIfSpent, whyNot, type WorkerEnd } from "./hire.ts";
import { objectIn } from "./json-answer.ts";
import { questionOf, titled, type Question } from "./question.ts";
import { note } from "./role-call.ts";
import { hiring, Roster, wholeQuestion, type Members } from "./roster.ts";
import { isSilent, takeAnswer } from "./spoken-answer.ts";
import { boundByWorkers } from "./worker-bound.ts";

export interface BlackboardOptions {
  /** Those who write on the board. */
  readonly agents: Members;
  /** Chooses who writes next, and when it is done. Without one all write in turn, until one writes an answer. */
  readonly coordinator?: Advisor;
  /** Makes the answer of what is on the board. Without one the last entry of kind `answer` is the answer. */
  readonly decider?: Advisor;
  /** One entry each, at most. 10 unless told. */
  readonly maxRounds?: number;
}

interface Entry {
  readonly agent: string;
  /** `note`, `answer`, `problem`, or what the agent calls it. */
  readonly kind: string;
  readonly content: string;
}

interface Choice {
  readonly terminate: boolean;
  readonly nextAgent: string;
  readonly instruction: string;
}

const contributorDuty =
  'You and others work on a question by writing on a board that all of you see. Add what you know and nobody has written yet. Reply with JSON and nothing else: {"kind": "note", or "answer" if it answers the question, "content": "<your entry>", "private": "<what only you are to see when it is your turn again, or empty>"}. A reply that is no JSON is a note.';

/**
 * Agents write on a board that all see, one at a time, until the question is answered. Each is hired anew for its entry and sees the
 * board, and what it wrote for itself alone. Roles: `coordinator`, `decider`.
 */
export class Blackboard implements Architecture {
  readonly name = "blackboard";
  readonly requiresModel: boolean;
  readonly #agents: Roster;
  readonly #workers: ReturnType<Architecture["declaredWorkers"]>;
  readonly #coordinator: Advisor | undefined;
  readonly #decider: Advisor | undefined;
  readonly #maxRounds: number;

  constructor({ agents, coordinator, decider, maxRounds = 10 }: BlackboardOptions) {
    this.#agents = new Roster("blackboard", "agents", agents);
    this.#workers = workersOf("blackboard", this.#agents, { coordinator, decider });
    this.#coordinator = coordinator;
    this.#decider = decider;
    this.#maxRounds = countOf("blackboard", "maxRounds", maxRounds);
    this.requiresModel = coordinator === "self" || decider === "self";
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return boundByWorkers(session, this.#go(session, deps, prompt));
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const question = await questionOf(session, deps, prompt);
    const board = new Board();
    yield note(this.name, "started", { agents: this.#agents.names });
    let isDone = false;
    let round = 0;
    while (!isDone && round < this.#maxRounds) {
      deps.ctx.check();
      round++;
      const choice = await this.#choose(session, deps, question, board, round);
      if (choice === undefined) {
        yield note(this.name, "no_contributor", { round });
        continue;
      }
      const { terminate, nextAgent, instruction } = choice;
      if (this.#coordinator !== undefined)
        yield note(this.name, "coordinator_decided", { round, terminate, nextAgent, instruction });
      if (terminate) {
        isDone = true;
        break;
      }
      const member = this.#agents.find(nextAgent);
      if (member === undefined) {
        yield note(this.name, "unknown_agent", { round, agent: nextAgent });
        continue;
      }
      yield note(this.name, "invoking", { round, agent: nextAgent });
      const input = turnOf(question, board, nextAgent, instruction);
      const end = await hire(deps, { worker: member.agent, input, options: hiring(member) });
      const entry = board.add(nextAgent, end);
      // B5: better than nothing, should the money end here.
      takeAnswer(session, board.best);
      yield note(this.name, "contribution", { round, ...entry });
      stopIfSpent(deps, [end]);
      isDone = this.#coordinator === undefined && entry.kind === "answer";
    }
    session.metadata["blackboard"] = { rounds: round, entries: board.entries.map((entry) => ({ ...entry })) };
    yield* this.#conclude(session, deps, question, board, isDone);
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#workers;
  }

  async *#conclude(
    session: AgentSession,
    deps: Dependencies,
    question: Question,
    board: Board,
    isDone: boolean,
  ): AsyncIterable<EmittableEvent> {
    const entries = board.entries.length;
    const isAnswered = isDone ? board.best !== "" : board.answer !== undefined;
    if (this.#decider === undefined ? !isAnswered : entries === 0) {
      session.interrupted = true;
      session.interruptionReason = isDone ? "blackboard_empty" : "max_rounds";
      return;
    }
    if (this.#decider !== undefined) {
      const decided = await advised(session, deps, question, {
        by: this.#decider,
        role: "decider",
        answers: true,
        duty: "Others have worked on a question on a board. Answer the question from what is on it, and say nothing else.",
        prompt: titled({ Question: question.prompt, Board: board.shown() }),
      });
      if (!takeAnswer(session, decided)) yield note(this.name, "empty_answer");
    }
    yield note(this.name, "completed", { entries, by: this.#decider === undefined ? "entry" : "decider" });
  }

  /** `undefined`: nobody, this round. */
  async #choose(
    session: AgentSession,
    deps: Dependencies,
    question: Question,
    board: Board,
    round: number,
  ): Promise<Choice | undefined> {
    const { names } = this.#agents;
    if (this.#coordinator === undefined)
      return { terminate: false, nextAgent: names[(round - 1) % names.length] ?? "", instruction: "" };
    const said = await advised(session, deps, question, {
      by: this.#coordinator,
      role: "coordinator",
      duty: `Others work on a question by writing on a board, one at a time. You choose who writes next, or that the question is answered; you do not answer it. There are:\n${this.#agents.listed()}\nReply with JSON and nothing else: {"terminate": <true when it is answered>, "nextAgent": "<one of the names>", "instruction": "<what it is to look at>"}.`,
      prompt: titled({
        Question: question.prompt,
        Board: board.shown(),
        Rounds: `This is round ${round} of at most ${this.#maxRounds}.`,
      }),
    });
    return choiceIn(said);
  }
}

/** What was written, and for whom. */
class Board {
  readonly entries: Entry[] = [];
  readonly #private = new Map<string, string[]>();

  /** Of kind `answer`, the last. */
  get answer(): string | undefined {
    return this.entries.findLast(({ kind }) => kind === "answer")?.content;
  }

  get best(): string {
    return this.answer ?? this.entries.findLast(isContribution)?.content ?? "";
  }

  add(agent: string, end: WorkerEnd): Entry {
    const { entry, own } =
      end.kind === "answered"
        ? entryIn(agent, end.text)
        : { entry: { agent, kind: "problem", content: whyNot(agent, end) }, own: "" };
    this.entries.push(entry);
    if (own !== "") this.#private.set(agent, [...this.ownOf(agent), own]);
    return entry;
  }

  ownOf(agent: string): readonly string[] {
    return this.#private.get(agent) ?? [];
  }

  shown(): string {
    if (this.entries.length === 0) return "(nothing yet)";
    return this.entries.map(({ agent, kind, content }) => `## ${agent}, ${kind}\n${content}`).join("\n\n");
  }
}

function isContribution({ kind, content }: Entry): boolean {
  return kind !== "problem" && !isSilent(content);
}

function turnOf(
  question: Question,
  board: Board,
  agent: string,
  instruction: string,
): ReturnType<typeof wholeQuestion> {
  const prompt = titled({
    Question: question.prompt,
    Board: board.shown(),
    "What you wrote for yourself": board.ownOf(agent).join("\n\n"),
    "What to look at": instruction,
  });
  return wholeQuestion({ ...question, prompt }, contributorDuty);
}

function entryIn(agent: string, said: string): { readonly entry: Entry; readonly own: string } {
  const read = objectIn(said, ["content"]);
  const content = read?.["content"];
  if (read === undefined || content === undefined || content === null)
    return { entry: entryOf(agent, "note", said), own: "" };
  const { kind, private: own } = read;
  const called = typeof kind === "string" && kind !== "" ? kind.toLowerCase() : "note";
  return {
    entry: entryOf(agent, called, jsonText(content)),
    own: own === undefined ? "" : jsonText(own),
  };
}

/** Who writes nothing for others to see has not answered. */
function entryOf(agent: string, kind: string, content: string): Entry {
  return { agent, kind: isSilent(content) ? "note" : kind, content };
}

function choiceIn(said: string): Choice | undefined {
  const read = objectIn(said, ["terminate", "nextAgent", "next_agent"]);
  if (read === undefined) return undefined;
  const { terminate, nextAgent = read["next_agent"], instruction } = read;
  const named = typeof nextAgent === "string" ? nextAgent.trim() : "";
  if (terminate !== true && named === "") return undefined;
  return {
    terminate: terminate === true,
    nextAgent: named,
    instruction: typeof instruction === "string" ? instruction : "",
  };
}

/** Agents that work on a question by writing on a board that all of them see. */
export function blackboard(options: BlackboardOptions): Blackboard {
  return new Blackboard(options);
}
