import {
  Fault,
  HistoryRetention,
  turnKey,
  type AgentId,
  type Clock,
  type Commit,
  type HostedAgent,
  type RunId,
  type RunRecord,
  type TaskId,
} from "../../kernel/index.ts";
import { TaskContext } from "../context/task-context.ts";
import { TaskInboxView } from "../context/task-inbox.ts";
import { RunLog, type LogStore } from "../journal/run-log.ts";
import { RunState } from "../journal/run-state.ts";
import type { TaskState } from "../journal/task-state.ts";
import { insideTask } from "../process/async-context.ts";
import { LiveContext } from "../process/live-contexts.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import type { TaskHost } from "../task/task-host.ts";
import { TaskRunner } from "../task/task-runner.ts";
import { unopened } from "../task/unopened.ts";
import { WaitRegistry } from "../task/wait-registry.ts";
import { ContinueAsNew } from "../context/continue-as-new.ts";
import { TaskReplay, type ReplayDifference } from "./task-replay.ts";
import { insideSources, WatchedSources, type SourceUse } from "./watched-sources.ts";

/** A task that was not replayed. */
export interface SkippedTask {
  /** Id of the run. */
  readonly runId: RunId;
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Id of its agent or workflow. */
  readonly agentId: AgentId;
  /** Why it was not replayed. */
  readonly reason: string;
}

/** What the check of one run found. */
export interface CheckedRun {
  /** Id of the run. */
  readonly runId: RunId;
  /** Id of the workflow, or of the agent of the root task. */
  readonly agentId: AgentId;
  /** Number of tasks that were replayed. */
  readonly tasks: number;
  /** Number of recorded steps that the replayed code requested. */
  readonly steps: number;
  /** The first difference of each task that differs. */
  readonly differences: readonly ReplayDifference[];
  /** The tasks that were not replayed. */
  readonly skipped: readonly SkippedTask[];
  /** Uses of the machine's time and random numbers by the code outside the bodies of steps. */
  readonly uses: readonly SourceUse[];
}

/**
 * Replays the journal of a run with the current code, inside `watching`. It writes nothing and executes no body of
 * a step: the code stops where the journal ends. Costs O(commits of the run).
 */
export async function checkRun(worker: WorkerContext, runId: RunId): Promise<CheckedRun> {
  const commits: Commit[] = [];
  const record = await worker.store.journal.replay(runId, (commit) => void commits.push(commit));
  // The passes have different times and random numbers, so that code which depends on them asks for different steps.
  const first = new OfflineRun(worker, record, commits, 1);
  const second = new OfflineRun(worker, record, commits, 2);
  const differences: ReplayDifference[] = [];
  const skipped: SkippedTask[] = [];
  let [tasks, steps] = [0, 0];
  for (const task of first.state.tasks.values()) {
    const { taskId, agentId } = task.record;
    const agent = worker.agents.get(agentId);
    const reason = skipReason(task, agent);
    if (agent === undefined || reason !== undefined) {
      skipped.push({ runId, taskId, agentId, reason: reason ?? "" });
      continue;
    }
    const once = await first.replay(taskId, agent);
    const again = await second.replay(taskId, agent);
    tasks++;
    steps += once.reached;
    const found = once.compare(again, worker.hash, first.sources.uses) ?? once.judge();
    if (found !== undefined) differences.push({ runId, taskId, agentId, ...found });
  }
  const { uses } = first.sources;
  return { runId, agentId: record.agentId, tasks, steps, differences, skipped, uses };
}

/** Returns why a task is not replayed. `undefined` if it is replayed. */
function skipReason({ record }: TaskState, agent: HostedAgent | undefined): string | undefined {
  const { agentId, supervision } = record;
  if (agent === undefined) return `the code of ${agentId} was not given`;
  if (agent.runKind !== "workflow") return `${agentId} is an agent, and only workflows are replayed`;
  if (supervision.retention === HistoryRetention.NONE)
    return "the values of its steps are not kept (HistoryRetention.NONE)";
  return undefined;
}

/** One replay of a run: its state according to the stored commits, and a log that writes nothing. */
class OfflineRun {
  readonly state: RunState;
  readonly sources: WatchedSources;
  readonly #worker: WorkerContext;
  readonly #host: TaskHost;
  readonly #log: RunLog;

  constructor(worker: WorkerContext, record: RunRecord, commits: readonly Commit[], seed: number) {
    const state = new RunState(worker.unknownPrice);
    for (const commit of commits) state.fold(commit);
    const at = commits.at(-1)?.at ?? record.createdAt;
    this.state = state;
    this.sources = new WatchedSources(at, seed);
    // At this time, no deadline has passed that had not passed for the run.
    const clock = stoppedAt(at);
    this.#worker = { ...worker, clock };
    this.#host = offlineHost(clock, record, state);
    this.#log = new RunLog({
      store: writesNothing,
      lease: { runId: record.runId, workerId: "replay-check", epoch: 0 },
      state,
      clock,
      idleFlusher: worker.idleFlusher,
      observers: { show: ignore, showDelta: ignore },
      owner: { onStep: ignore, onUsage: ignore, onWriteFailure: ignore },
    });
  }

  async replay(taskId: TaskId, agent: HostedAgent): Promise<TaskReplay> {
    const { state, sources } = this;
    const replay = new TaskReplay(state.task(taskId));
    const worker = this.#worker;
    const host = this.#host;
    const runner = new TaskRunner({ taskId, agent, worker, log: this.#log, state, host, probe: replay });
    const ctx = new TaskContext(runner, runner.task.journal);
    const code = (): Promise<unknown> => agent.run(ctx, new TaskInboxView(ctx, runner, []));
    insideTask(runner.inside, () => insideSources(sources, () => runner.run(code))).then(
      (ending) => replay.end(ending),
      (reason: unknown) =>
        replay.end(reason instanceof ContinueAsNew ? { error: reason } : { mismatch: Fault.from(reason) }),
    );
    await replay.settled();
    runner.drop();
    return replay;
  }
}

const ignore = (): undefined => undefined;

function stoppedAt(at: number): Clock {
  return { now: () => at, schedule: () => ignore };
}

const writesNothing: LogStore = {
  journal: { append: (_, commit) => commit },
  events: { putDelta: ignore },
  leases: { check: async () => undefined },
  usage: { draw: pendingForever },
};

/** Creates the host of a task that starts no step. The task has a seat, and its requests to the run have no effect. */
function offlineHost(clock: Clock, record: RunRecord, state: RunState): TaskHost {
  const { tenantId, kind, priority } = record;
  const [root] = state.tasks.values();
  const hasContext = root?.record.hasContext === true;
  const value = unopened("the context of the run");
  return {
    tenantId,
    kind,
    flow: record.flow,
    turn: turnKey(record),
    ledger: {
      fits: () => true,
      reserve: ignore,
      whenDecided: pendingForever,
      whenFreed: ignore,
      apply: ignore,
      lose: ignore,
    },
    capShare: undefined,
    waits: new WaitRegistry(clock, state.resolutions),
    live:
      hasContext && root !== undefined
        ? new LiveContext(tenantId, root.record, undefined, { value })
        : undefined,
    seats: {
      status: () => "seated",
      hasSeat: () => true,
      isHeldSeated: () => false,
      priority: () => priority,
      settle: ignore,
      suspend: ignore,
      wake: ignore,
    },
    deliveries: { note: ignore },
    listener: { noteIdle: ignore, stayAwake: ignore, noteCallEnd: ignore },
    spawn: () => {
      throw new Fault("internal", "a replay check starts no task");
    },
    whenEnded: pendingForever,
    cancel: ignore,
    askForTopUp: ignore,
    unshield: ignore,
    cancelAbandoned: () => false,
  };
}
