import {
  jsonText,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
} from "../../kernel/index.ts";
import { askAdvisor, teamWorkers, type Advisor } from "./advisor.ts";
import { requireCount } from "./option-checks.ts";
import { runWorker, stopIfBudgetSpent, describeWorkerFailure, type WorkerResult } from "./run-worker.ts";
import { findObjectWith } from "./json-parsing.ts";
import { loadPromptContext, markdownSections, type PromptContext } from "./prompt-context.ts";
import { architectureEvent } from "./role-call.ts";
import { spawnOptionsOf, TeamMembers, workerBrief, type Members } from "./team-members.ts";
import { isBlank, setAnswer } from "./answer-text.ts";
import { endOnWorkerInterruption } from "./worker-interruption.ts";

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
  readonly #agents: TeamMembers;
  readonly #workers: ReturnType<Architecture["declaredWorkers"]>;
  readonly #coordinator: Advisor | undefined;
  readonly #decider: Advisor | undefined;
  readonly #maxRounds: number;

  constructor({ agents, coordinator, decider, maxRounds = 10 }: BlackboardOptions) {
    this.#agents = new TeamMembers("blackboard", "agents", agents);
    this.#workers = teamWorkers("blackboard", this.#agents, { coordinator, decider });
    this.#coordinator = coordinator;
    this.#decider = decider;
    this.#maxRounds = requireCount("blackboard", "maxRounds", maxRounds);
    this.requiresModel = coordinator === "self" || decider === "self";
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return endOnWorkerInterruption(session, this.#work(session, deps, prompt));
  }

  async *#work(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const board = new Board();
    yield architectureEvent(this.name, "started", { agents: this.#agents.names });
    let isDone = false;
    let round = 0;
    while (!isDone && round < this.#maxRounds) {
      deps.ctx.check();
      round++;
      const choice = await this.#choose(session, deps, promptContext, board, round);
      if (choice === undefined) {
        yield architectureEvent(this.name, "no_contributor", { round });
        continue;
      }
      const { terminate, nextAgent, instruction } = choice;
      if (this.#coordinator !== undefined)
        yield architectureEvent(this.name, "coordinator_decided", {
          round,
          terminate,
          nextAgent,
          instruction,
        });
      if (terminate) {
        isDone = true;
        break;
      }
      const member = this.#agents.find(nextAgent);
      if (member === undefined) {
        yield architectureEvent(this.name, "unknown_agent", { round, agent: nextAgent });
        continue;
      }
      yield architectureEvent(this.name, "invoking", { round, agent: nextAgent });
      const input = contributionBrief(promptContext, board, nextAgent, instruction);
      const result = await runWorker(deps, { worker: member.agent, input, options: spawnOptionsOf(member) });
      const entry = board.add(nextAgent, result);
      // B5: better than nothing, should the money end here.
      setAnswer(session, board.best);
      yield architectureEvent(this.name, "contribution", { round, ...entry });
      stopIfBudgetSpent(deps, [result]);
      isDone = this.#coordinator === undefined && entry.kind === "answer";
    }
    session.metadata["blackboard"] = { rounds: round, entries: board.entries.map((entry) => ({ ...entry })) };
    yield* this.#conclude(session, deps, promptContext, board, isDone);
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#workers;
  }

  async *#conclude(
    session: AgentSession,
    deps: Dependencies,
    promptContext: PromptContext,
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
      const decided = await askAdvisor(session, deps, promptContext, {
        by: this.#decider,
        role: "decider",
        answers: true,
        duty: "Others have worked on a question on a board. Answer the question from what is on it, and say nothing else.",
        prompt: markdownSections({ Question: promptContext.prompt, Board: board.render() }),
      });
      if (!setAnswer(session, decided)) yield architectureEvent(this.name, "empty_answer");
    }
    yield architectureEvent(this.name, "completed", {
      entries,
      by: this.#decider === undefined ? "entry" : "decider",
    });
  }

  /** `undefined`: nobody, this round. */
  async #choose(
    session: AgentSession,
    deps: Dependencies,
    promptContext: PromptContext,
    board: Board,
    round: number,
  ): Promise<Choice | undefined> {
    const { names } = this.#agents;
    if (this.#coordinator === undefined)
      return { terminate: false, nextAgent: names[(round - 1) % names.length] ?? "", instruction: "" };
    const reply = await askAdvisor(session, deps, promptContext, {
      by: this.#coordinator,
      role: "coordinator",
      duty: `Others work on a question by writing on a board, one at a time. You choose who writes next, or that the question is answered; you do not answer it. There are:\n${this.#agents.describeAll()}\nReply with JSON and nothing else: {"terminate": <true when it is answered>, "nextAgent": "<one of the names>", "instruction": "<what it is to look at>"}.`,
      prompt: markdownSections({
        Question: promptContext.prompt,
        Board: board.render(),
        Rounds: `This is round ${round} of at most ${this.#maxRounds}.`,
      }),
    });
    return parseChoice(reply);
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

  add(agent: string, result: WorkerResult): Entry {
    const { entry, privateNote } =
      result.kind === "answered"
        ? parseEntry(agent, result.text)
        : {
            entry: { agent, kind: "problem", content: describeWorkerFailure(agent, result) },
            privateNote: "",
          };
    this.entries.push(entry);
    if (privateNote !== "") this.#private.set(agent, [...this.privateNotes(agent), privateNote]);
    return entry;
  }

  privateNotes(agent: string): readonly string[] {
    return this.#private.get(agent) ?? [];
  }

  render(): string {
    if (this.entries.length === 0) return "(nothing yet)";
    return this.entries.map(({ agent, kind, content }) => `## ${agent}, ${kind}\n${content}`).join("\n\n");
  }
}

function isContribution({ kind, content }: Entry): boolean {
  return kind !== "problem" && !isBlank(content);
}

function contributionBrief(
  promptContext: PromptContext,
  board: Board,
  agent: string,
  instruction: string,
): ReturnType<typeof workerBrief> {
  const prompt = markdownSections({
    Question: promptContext.prompt,
    Board: board.render(),
    "What you wrote for yourself": board.privateNotes(agent).join("\n\n"),
    "What to look at": instruction,
  });
  return workerBrief({ ...promptContext, prompt }, contributorDuty);
}

function parseEntry(agent: string, reply: string): { readonly entry: Entry; readonly privateNote: string } {
  const parsed = findObjectWith(reply, ["content"]);
  const content = parsed?.["content"];
  if (parsed === undefined || content === undefined || content === null)
    return { entry: entryOf(agent, "note", reply), privateNote: "" };
  const { kind, private: privateNote } = parsed;
  const entryKind = typeof kind === "string" && kind !== "" ? kind.toLowerCase() : "note";
  return {
    entry: entryOf(agent, entryKind, jsonText(content)),
    privateNote: privateNote === undefined ? "" : jsonText(privateNote),
  };
}

/** Who writes nothing for others to see has not answered. */
function entryOf(agent: string, kind: string, content: string): Entry {
  return { agent, kind: isBlank(content) ? "note" : kind, content };
}

function parseChoice(reply: string): Choice | undefined {
  const parsed = findObjectWith(reply, ["terminate", "nextAgent", "next_agent"]);
  if (parsed === undefined) return undefined;
  const { terminate, nextAgent = parsed["next_agent"], instruction } = parsed;
  const agentName = typeof nextAgent === "string" ? nextAgent.trim() : "";
  if (terminate !== true && agentName === "") return undefined;
  return {
    terminate: terminate === true,
    nextAgent: agentName,
    instruction: typeof instruction === "string" ? instruction : "",
  };
}

/** Agents that work on a question by writing on a board that all of them see. */
export function blackboard(options: BlackboardOptions): Blackboard {
  return new Blackboard(options);
}
