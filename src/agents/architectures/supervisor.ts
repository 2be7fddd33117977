import {
  assistantMessage,
  Fault,
  HistoryRetention,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type HostedAgent,
  type JsonObject,
  type Tool,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
  withWork,
} from "../../kernel/index.ts";
import { joinAnswers, outputText, type HandedAnswer } from "../team/handed-answers.ts";
import { ownTool, refusal, said } from "../base/own-tool.ts";
import { runWorker, stopIfBudgetSpent, describeWorkerFailure, type WorkerJob } from "../team/run-worker.ts";
import { react } from "./react.ts";
import { architectureEvent } from "../context/role-call.ts";
import {
  spawnOptionsOf,
  isMemberName,
  memberNameRule,
  TeamMembers,
  type Members,
} from "../team/team-members.ts";
import { isBlank } from "../base/answer-text.ts";

/** Options of `supervisor`. */
export interface SupervisorOptions {
  /** Agents to delegate to, by name. */
  readonly workers: Members;
  /** Architecture that gets the delegation tools. Default: `react()`. */
  readonly base?: Architecture;
  /**
   * Agent from which the model may create workers with instructions of its choice (`spawn_worker`). If absent, the
   * model cannot create workers.
   */
  readonly spawnable?: HostedAgent;
  /** Maximum number of workers that the model creates in one invocation. Default: 5. */
  readonly maxSpawned?: number;
  /** Whether workers remember their work in this session, also from earlier invocations. Default: `false`. */
  readonly remember?: boolean;
}

/** Name of `spawnable` among the declared workers. No member can have this name. */
const spawnableRole = "(spawned)";

const knownOptions = optionTable({
  workers: is.any,
  base: is.any,
  spawnable: is.any,
  maxSpawned: is.integer({ from: 1, default: 5 }),
  remember: is.boolean({ default: false }),
} satisfies OptionKinds<SupervisorOptions>);

/**
 * Adds workers to any architecture: the model delegates tasks with `delegate`, and several tasks of one turn run in
 * parallel. `forward_message` makes a worker's last answer the final answer verbatim, without another model call. H4: a
 * worker that fails or gets no seat is a tool result that the model can react to.
 */
export class Supervisor implements Architecture {
  readonly name = "supervisor";
  readonly base: Architecture;
  readonly requiresModel: boolean;
  readonly #workers: TeamMembers;
  readonly #spawnable: HostedAgent | undefined;
  readonly #maxSpawned: number;
  readonly #remember: boolean;
  /**
   * State by session. A session that runs this architecture several times, for example because of a stop hook, has
   * one state.
   */
  readonly #states = new WeakMap<AgentSession, DelegationState>();

  constructor(options: SupervisorOptions) {
    const {
      workers,
      base = react(),
      spawnable,
      maxSpawned,
      remember,
    } = knownOptions.read("supervisor()", options);
    this.base = base;
    this.requiresModel = this.base.requiresModel ?? true;
    this.#workers = new TeamMembers("supervisor", "workers", workers);
    for (let inner: Architecture | undefined = base; inner !== undefined; inner = inner.base) {
      if (inner instanceof Supervisor)
        throw new Fault(
          "invalid_argument",
          `supervisor has another supervisor as its base, and both add a tool ${delegateName}: give all workers to one of them, or make the inner one an agent and add it as a worker`,
        );
    }
    for (const name of Object.keys(base.declaredWorkers())) {
      if (this.#workers.find(name) !== undefined)
        throw new Fault(
          "invalid_argument",
          `supervisor and its base ${base.name} both have a worker named ${name}: rename one of them`,
        );
    }
    this.#spawnable = spawnable;
    this.#maxSpawned = maxSpawned;
    this.#remember = remember;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const state = this.#states.get(session) ?? new DelegationState();
    this.#states.set(session, state);
    yield architectureEvent(this.name, "workers_ready", { workers: this.#workers.names });
    const tools = this.#tools(state, deps);
    const equipped = deps.withExtraTools(tools, (result, { callId }) => state.record(callId, result));
    try {
      yield* this.base.run(session, equipped, prompt);
    } catch (error) {
      // B5: a stopped supervisor keeps what its workers have answered.
      session.output = joinAnswers(session.output, state.named);
      throw error;
    }
    const forwarded = state.forwardedAt(session);
    if (forwarded !== undefined) {
      const { worker, answer } = forwarded;
      session.output = answer;
      session.messages = session.messages.append(assistantMessage(session.output));
      yield architectureEvent(this.name, "forwarded", { worker });
    }
    yield architectureEvent(this.name, "completed", { delegations: state.delegations });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    const spawnable = this.#spawnable === undefined ? {} : { [spawnableRole]: this.#spawnable };
    return { ...this.base.declaredWorkers(), ...this.#workers.agents, ...spawnable };
  }

  #tools(state: DelegationState, deps: Dependencies): readonly Tool[] {
    const tools = [this.#delegateTool(state, deps), forwardTool(state)];
    return this.#spawnable === undefined ? tools : [...tools, this.#spawnTool(state)];
  }

  #delegateTool(state: DelegationState, deps: Dependencies): Tool {
    const queue = new Queue();
    const more = this.#spawnable === undefined ? "" : "\nand the workers that you create with spawn_worker";
    return ownTool({
      name: delegateName,
      description: `Delegates a task to a worker and returns its answer. The worker knows only what the task says. Workers:\n${this.#workers.describeAll()}${more}`,
      input: {
        worker: { description: "Name of the worker" },
        task: { description: "Everything the worker needs to know" },
      },
      suspends: true,
      execute: async ({ worker, task }, { ctx }) => {
        const job = this.#jobOf(state, worker, task);
        if (job === undefined) return refusal(this.#unknown(state, worker));
        // H4: the model can react to a refused seat.
        const work = (): ReturnType<typeof runWorker> =>
          runWorker(deps.scopeForWorker(deps.role, ctx), {
            ...job,
            options: { onFull: "refuse", ...job.options },
          });
        // Tasks for a worker that remembers run one after another: in parallel, only one of them would be remembered.
        const isAlone = job.options?.retention === HistoryRetention.PERMANENT;
        const result = await (isAlone ? queue.next(worker, work) : work());
        stopIfBudgetSpent(deps, [result]);
        if (result.kind === "answered")
          return isBlank(result.text)
            ? refusal(`${worker} gave an empty answer`, { delegated: worker })
            : withWork(said(result.text, { delegated: worker }), result.work);
        const why = result.kind === "refused" ? { refused: result.reason } : { status: result.status };
        const advice =
          result.kind === "refused" ? ". Do it yourself, or try again when another worker has finished" : "";
        return refusal(`${describeWorkerFailure(worker, result)}${advice}`, { delegated: worker, ...why });
      },
    });
  }

  #spawnTool(state: DelegationState): Tool {
    return ownTool({
      name: "spawn_worker",
      description: `Creates a worker for tasks that no other worker is suited for. You can create at most ${this.#maxSpawned}.`,
      input: {
        name: { description: `Name of the new worker: ${memberNameRule}` },
        instructions: { description: "What the worker does and how" },
      },
      concurrency: "sequential",
      execute: ({ name, instructions }, { ctx }) => {
        const { spawned } = state;
        if (this.#workers.find(name) !== undefined || spawned.has(name))
          return refusal(`there is already a worker ${name}: choose another name`);
        if (!isMemberName(name))
          return refusal(`${name} is not a valid name for a worker: use ${memberNameRule}`);
        if (spawned.size >= this.#maxSpawned)
          return refusal(`you have created ${spawned.size} workers, which is the maximum: use one of them`);
        ctx.emitEvent(architectureEvent(this.name, "worker_spawned", { worker: name, instructions }));
        return said(`created worker ${name}: delegate to it`, { spawned: name, instructions });
      },
    });
  }

  #jobOf({ spawned }: DelegationState, name: string, task: string): WorkerJob | undefined {
    const member = this.#workers.find(name);
    if (member !== undefined) {
      const options = spawnOptionsOf(member, this.#remember ? `worker_${name}` : undefined);
      return { worker: member.agent, input: task, options };
    }
    const instructions = spawned.get(name);
    if (instructions === undefined || this.#spawnable === undefined) return undefined;
    return { worker: this.#spawnable, input: { prompt: task, instructions } };
  }

  #unknown({ spawned }: DelegationState, worker: string): string {
    return `there is no worker ${worker}; there are: ${[...this.#workers.names, ...spawned.keys()].join(", ")}`;
  }
}

/**
 * State of the workers of an invocation so far. J7: it is derived from tool results, which a replay returns as
 * well.
 */
class DelegationState {
  /** Last answer of each worker, by name. */
  readonly answers = new Map<string, string>();
  /** Instructions of the workers that the model created, by name. */
  readonly spawned = new Map<string, string>();
  delegations = 0;

  /** The latest answers of workers, with the names of the workers. */
  get named(): readonly HandedAnswer[] {
    return [...this.answers].map(([name, text]) => ({ name, text }));
  }

  /** Forwarded answers, by the id of the `forward_message` call. */
  readonly #forwarded = new Map<string, Forwarded>();

  /** Updates the state from the result of one call. */
  record(callId: string, { isError, output, metadata = {} }: ToolResult): void {
    const { delegated, spawned, instructions, forwarded } = metadata as ResultMetadata;
    if (delegated !== undefined) this.delegations++;
    if (isError) return;
    if (forwarded !== undefined)
      this.#forwarded.set(callId, { worker: forwarded, answer: this.answers.get(forwarded) ?? "" });
    if (delegated !== undefined) this.answers.set(delegated, outputText(output));
    if (spawned !== undefined) this.spawned.set(spawned, instructions ?? "");
  }

  /**
   * Returns the answer that the last message of the conversation forwards. An answer that was forwarded in a
   * discarded attempt is ignored.
   */
  forwardedAt({ messages }: AgentSession): Forwarded | undefined {
    const last = messages.at(-1);
    const results = last?.role === "tool" ? last.content : [];
    const forward = results.findLast(({ callId }) => this.#forwarded.has(callId));
    return forward && this.#forwarded.get(forward.callId);
  }
}

interface Forwarded {
  readonly worker: string;
  readonly answer: string;
}

/** Metadata of the results of this architecture's tools. */
interface ResultMetadata extends JsonObject {
  readonly delegated?: string;
  readonly spawned?: string;
  readonly instructions?: string;
  readonly forwarded?: string;
}

const delegateName = "delegate";
const forwardName = "forward_message";

function forwardTool({ answers }: DelegationState): Tool {
  return ownTool({
    name: forwardName,
    description:
      "Makes a worker's last answer your final answer, verbatim. Use it instead of repeating what a worker said, and do not call another tool after it.",
    input: { worker: { description: "Name of the worker" } },
    // Sequential calls run after the delegations of the same turn.
    concurrency: "sequential",
    execute: ({ worker }) =>
      answers.has(worker)
        ? {
            ...said(`the answer of ${worker} is your final answer`, { forwarded: worker }),
            terminate: "always",
          }
        : refusal(`${worker} has no answer to forward: delegate to it first, or answer yourself`),
  });
}

/** Runs functions with the same name one after another, in the order in which they were added. */
class Queue {
  readonly #last = new Map<string, Promise<unknown>>();

  next<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const own = before.then(work, work);
    this.#last.set(name, own);
    return own;
  }
}

/**
 * Creates an architecture that adds workers to a base architecture, so that its model can delegate tasks. Use it if
 * parts of a task can be done in parallel, or if a worker's answer should be passed on verbatim.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { supervisor } from "reeve/architectures";
 *
 * const researcher = new Agent({ name: "researcher", model: "anthropic/claude-sonnet-5", description: "Finds sources." });
 * const writer = new Agent({ name: "writer", model: "anthropic/claude-sonnet-5", description: "Writes texts." });
 * const team = new Agent({
 *   name: "lead",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: supervisor({ workers: { researcher, writer } }),
 * });
 * ```
 */
export function supervisor(options: SupervisorOptions): Supervisor {
  return new Supervisor(options);
}
