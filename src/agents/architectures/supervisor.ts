import {
  assistantMessage,
  Fault,
  HistoryRetention,
  textOf,
  type HostedAgent,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type Tool,
  type ToolOutput,
  type ToolResult,
} from "../../kernel/index.ts";
import { ownTool, refusal, said } from "../own-tool.ts";
import { requireCount } from "./option-checks.ts";
import { runWorker, stopIfBudgetSpent, describeWorkerFailure, type WorkerJob } from "./run-worker.ts";
import { react } from "./react.ts";
import { architectureEvent } from "./role-call.ts";
import { spawnOptionsOf, isMemberName, memberNameRule, TeamMembers, type Members } from "./team-members.ts";
import { isBlank } from "./answer-text.ts";

export interface SupervisorOptions {
  readonly workers: Members;
  /** What is made to think by it. ReAct unless told. */
  readonly base?: Architecture;
  /** Makes workers of its own as it goes, out of this agent: each has the instructions it is given. None unless told. */
  readonly spawnable?: HostedAgent;
  /** How many of these in one invocation. 5 unless told. */
  readonly maxSpawned?: number;
  /** Workers remember what they did in this session, in earlier invocations too. Not unless told. */
  readonly remember?: boolean;
}

/** No worker can have this name. */
const spawnableRole = "(spawned)";

/**
 * Any architecture, with workers to delegate to: those of one turn work side by side. `forward_message` gives a worker's last answer as
 * the final one, word for word, without another call. What a worker came to, good or bad, is a result to react to (H4).
 */
export class Supervisor implements Architecture {
  readonly name = "supervisor";
  readonly base: Architecture;
  readonly requiresModel: boolean;
  readonly #workers: TeamMembers;
  readonly #spawnable: HostedAgent | undefined;
  readonly #maxSpawned: number;
  readonly #remember: boolean;
  /** Of invocations under way: an architecture may be run several times in one. */
  readonly #states = new WeakMap<AgentSession, DelegationState>();

  constructor({ workers, base = react(), spawnable, maxSpawned = 5, remember = false }: SupervisorOptions) {
    this.base = base;
    this.requiresModel = base.requiresModel ?? true;
    this.#workers = new TeamMembers("supervisor", "workers", workers);
    for (let inner: Architecture | undefined = base; inner !== undefined; inner = inner.base) {
      if (inner instanceof Supervisor)
        throw new Fault(
          "invalid_argument",
          `supervisor is wrapped around a supervisor, and each would bring a tool ${delegateName}: give all workers to one of them, or make an agent of the inner one and let it be a worker`,
        );
    }
    for (const name of Object.keys(base.declaredWorkers())) {
      if (this.#workers.find(name) !== undefined)
        throw new Fault(
          "invalid_argument",
          `${base.name}, which supervisor is wrapped around, has a worker ${name}, too: give one of them another name`,
        );
    }
    this.#spawnable = spawnable;
    this.#maxSpawned = requireCount("supervisor", "maxSpawned", maxSpawned);
    this.#remember = remember;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const state = this.#states.get(session) ?? new DelegationState();
    this.#states.set(session, state);
    yield architectureEvent(this.name, "workers_ready", { workers: this.#workers.names });
    const tools = this.#tools(state, deps);
    const equipped = deps.withExtraTools(tools, (result, { callId }) => state.record(callId, result));
    yield* this.base.run(session, equipped, prompt);
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
    const more = this.#spawnable === undefined ? "" : "\nand those you make with spawn_worker";
    return ownTool({
      name: delegateName,
      description: `Has a worker do a task and gives its answer. It knows nothing but what the task says. There are:\n${this.#workers.describeAll()}${more}`,
      input: {
        worker: { description: "Whose task it is" },
        task: { description: "All that it needs to know" },
      },
      suspends: true,
      execute: async ({ worker, task }, { ctx }) => {
        const job = this.#jobOf(state, worker, task);
        if (job === undefined) return refusal(this.#unknown(state, worker));
        // H4: the model can react to a refusal.
        const work = (): ReturnType<typeof runWorker> =>
          runWorker(deps.scopeForWorker(deps.role, ctx), {
            ...job,
            options: { onFull: "refuse", ...job.options },
          });
        // One that remembers does one thing after another, or it would remember only one of them.
        const isAlone = job.options?.retention === HistoryRetention.PERMANENT;
        const result = await (isAlone ? queue.next(worker, work) : work());
        stopIfBudgetSpent(deps, [result]);
        if (result.kind === "answered")
          return isBlank(result.text)
            ? refusal(`${worker} said nothing`, { delegated: worker })
            : said(result.text, { delegated: worker });
        const why = result.kind === "refused" ? { refused: result.reason } : { status: result.status };
        const advice =
          result.kind === "refused" ? ". Do it yourself, or try again when someone has finished" : "";
        return refusal(`${describeWorkerFailure(worker, result)}${advice}`, { delegated: worker, ...why });
      },
    });
  }

  #spawnTool(state: DelegationState): Tool {
    return ownTool({
      name: "spawn_worker",
      description: `Makes a worker for tasks that none of the others is for. At most ${this.#maxSpawned}.`,
      input: {
        name: { description: `What to call it: ${memberNameRule}` },
        instructions: { description: "What it is and how it works" },
      },
      concurrency: "sequential",
      execute: ({ name, instructions }, { ctx }) => {
        const { spawned } = state;
        if (this.#workers.find(name) !== undefined || spawned.has(name))
          return refusal(`there is a worker ${name} already: choose another name`);
        if (!isMemberName(name)) return refusal(`${name} is no name for a worker: use ${memberNameRule}`);
        if (spawned.size >= this.#maxSpawned)
          return refusal(`there are ${spawned.size} workers you made, which is all you may: use one of them`);
        ctx.emitEvent(architectureEvent(this.name, "worker_spawned", { worker: name, instructions }));
        return said(`${name} is there: delegate to it`, { spawned: name, instructions });
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

/** What was made of an invocation's workers so far. J7: read from the results of calls, which are there on a replay too. */
class DelegationState {
  /** The last of each worker. */
  readonly answers = new Map<string, string>();
  /** Workers that were made up, with their instructions. */
  readonly spawned = new Map<string, string>();
  delegations = 0;
  /** By call: as it was said when it was forwarded. */
  readonly #forwarded = new Map<string, Forwarded>();

  record(callId: string, { isError, output, metadata = {} }: ToolResult): void {
    const { delegated, spawned, instructions, forwarded } = metadata as ResultMetadata;
    if (delegated !== undefined) this.delegations++;
    if (isError) return;
    if (forwarded !== undefined)
      this.#forwarded.set(callId, { worker: forwarded, answer: this.answers.get(forwarded) ?? "" });
    if (delegated !== undefined) this.answers.set(delegated, outputText(output));
    if (spawned !== undefined) this.spawned.set(spawned, instructions ?? "");
  }

  /** What a conversation ends on, the model having had no word after it. Not what was forwarded in an attempt that is not the answer. */
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
      "Gives a worker's last answer as your final answer, word for word. Use it instead of repeating what a worker said, and call nothing after it.",
    input: { worker: { description: "Whose answer it is" } },
    // After what is delegated in the same turn.
    concurrency: "sequential",
    execute: ({ worker }) =>
      answers.has(worker)
        ? { ...said(`the answer of ${worker} is your answer`, { forwarded: worker }), terminate: "always" }
        : refusal(`${worker} has said nothing to forward: delegate to it first, or answer yourself`),
  });
}

function outputText(output: ToolOutput): string {
  if (output.type === "text") return output.text;
  if (output.type === "json") return JSON.stringify(output.value);
  return textOf(output.parts);
}

/** Work under one name, one after another, in the order it came in. */
class Queue {
  readonly #last = new Map<string, Promise<unknown>>();

  next<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const own = before.then(work, work);
    this.#last.set(name, own);
    return own;
  }
}

/** Any architecture, with workers to delegate to. */
export function supervisor(options: SupervisorOptions): Supervisor {
  return new Supervisor(options);
}
