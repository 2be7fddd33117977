import {
  jsonText,
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
  runWorker,
  stopIfBudgetSpent,
  describeWorkerFailure,
  type WorkerResult,
} from "../team/run-worker.ts";
import { findObjectWith } from "./json-parsing.ts";
import { loadPromptContext, markdownSections, type PromptContext } from "../context/prompt-context.ts";
import { architectureEvent } from "../context/role-call.ts";
import { spawnOptionsOf, TeamMembers, workerBrief, type Members } from "../team/team-members.ts";
import { isBlank, setAnswer } from "../base/answer-text.ts";
import { endOnWorkerInterruption } from "../team/worker-interruption.ts";

/** Options of `blackboard`. */
export interface BlackboardOptions {
  /** Agents that write on the board, by name. */
  readonly agents: Members;
  /**
   * Chooses the next agent and decides when the question is answered. If absent, the agents write in turn until one of
   * them writes an entry of kind `answer`.
   */
  readonly coordinator?: Advisor;
  /** Writes the answer from the board. If absent, the content of the last entry of kind `answer` is the answer. */
  readonly decider?: Advisor;
  /** Maximum number of rounds; each round adds at most one entry. Default: 10. */
  readonly maxRounds?: number;
}

/** One entry of the board. */
interface Entry {
  readonly agent: string;
  /** `note`, `answer`, `problem`, or another kind that the agent chose. */
  readonly kind: string;
  readonly content: string;
}

/** The coordinator's decision for one round. */
interface Choice {
  readonly terminate: boolean;
  readonly nextAgent: string;
  readonly instruction: string;
}

const contributorInstructions =
  'You and other agents work on a question by writing on a board that all of you see. Add what you know that is not on the board yet. Reply with JSON and nothing else: {"kind": "note", or "answer" if it answers the question, "content": "<your entry>", "private": "<a note that only you see when it is your turn again, or empty>"}. A reply that is not JSON counts as a note.';

const knownOptions = optionTable({
  agents: is.any,
  coordinator: is.any,
  decider: is.any,
  maxRounds: is.integer({ from: 1, default: 10 }),
} satisfies OptionKinds<BlackboardOptions>);

/**
 * Agents write on a shared board, one at a time, until the question is answered. Each agent is spawned for one entry
 * and sees the board and its own private notes.
 *
 * Roles: `coordinator`, `decider`.
 */
export class Blackboard implements Architecture {
  readonly name = "blackboard";
  readonly requiresModel: boolean;
  readonly #agents: TeamMembers;
  readonly #workers: ReturnType<Architecture["declaredWorkers"]>;
  readonly #coordinator: Advisor | undefined;
  readonly #decider: Advisor | undefined;
  readonly #maxRounds: number;

  constructor(options: BlackboardOptions) {
    const { agents, coordinator, decider, maxRounds } = knownOptions.read("blackboard()", options);
    this.#agents = new TeamMembers("blackboard", "agents", agents);
    this.#workers = teamWorkers("blackboard", this.#agents, { coordinator, decider });
    this.#coordinator = coordinator;
    this.#decider = decider;
    this.#maxRounds = maxRounds;
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
      // B5: keeps the best entry as the output, in case the budget runs out before the answer.
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
        roleInstructions:
          "Other agents worked on a question on a shared board. Answer the question from the entries of the board, and write nothing else.",
        prompt: markdownSections({ Question: promptContext.prompt, Board: board.render() }),
      });
      if (!setAnswer(session, decided)) yield architectureEvent(this.name, "empty_answer");
    }
    yield architectureEvent(this.name, "completed", {
      entries,
      by: this.#decider === undefined ? "entry" : "decider",
    });
  }

  /**
   * Chooses the next agent. `undefined` means that the coordinator's reply names no agent, so that this round adds
   * no entry.
   */
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
      roleInstructions: `Other agents work on a question by writing on a shared board, one at a time. You choose who writes next, or decide that the question is answered; you do not answer it yourself. Agents:\n${this.#agents.describeAll()}\nReply with JSON and nothing else: {"terminate": <true if the question is answered>, "nextAgent": "<one of the names>", "instruction": "<what the agent should look at>"}.`,
      prompt: markdownSections({
        Question: promptContext.prompt,
        Board: board.render(),
        Rounds: `This is round ${round} of at most ${this.#maxRounds}.`,
      }),
    });
    return parseChoice(reply);
  }
}

/** The shared entries of a board, and the private notes of each agent. */
class Board {
  readonly entries: Entry[] = [];
  readonly #private = new Map<string, string[]>();

  /** Content of the last entry of kind `answer`. */
  get answer(): string | undefined {
    return this.entries.findLast(({ kind }) => kind === "answer")?.content;
  }

  /** The answer, or else the content of the last entry that is not a problem. Empty if there is no such entry. */
  get best(): string {
    return this.answer ?? this.entries.findLast(isContribution)?.content ?? "";
  }

  /** Adds the reply of a worker as an entry. If the worker gave no answer, adds an entry of kind `problem`. */
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
    "Your private notes": board.privateNotes(agent).join("\n\n"),
    "What to look at": instruction,
  });
  return workerBrief({ ...promptContext, prompt }, contributorInstructions);
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

/** Creates an entry. An entry with blank content never counts as an answer. */
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

/**
 * Creates an architecture in which agents work on a question by writing on a shared board. Use it if you cannot know
 * in advance which agents have to contribute.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { blackboard } from "reeve/architectures";
 *
 * const chemist = new Agent({ name: "chemist", model: "anthropic/claude-sonnet-5" });
 * const lawyer = new Agent({ name: "lawyer", model: "anthropic/claude-sonnet-5" });
 * const team = new Agent({
 *   name: "experts",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: blackboard({ agents: { chemist, lawyer }, coordinator: "self", decider: "self" }),
 * });
 * ```
 */
export function blackboard(options: BlackboardOptions): Blackboard {
  return new Blackboard(options);
}
