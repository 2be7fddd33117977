import {
  addUsage,
  describeValue,
  Fault,
  forkSessionId,
  formatRunId,
  isUnnamedSession,
  noUsage,
  parseRunId,
  rootTaskId,
  unnamedSessionId,
  type Clock,
  type Commit,
  type Event,
  type IdSource,
  type LlmReply,
  type RunId,
  type RunRecord,
  type SessionId,
  type StepOpening,
  type StepRecord,
  type Store,
  type TaskChange,
  type TaskId,
  type Usage,
} from "../../kernel/index.ts";

import { forkSession } from "./fork-session.ts";

export interface ForkOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly origin: RunRecord;
  /** A seq of the origin; with one owner any prefix of its log is a consistent cut of the tree. */
  readonly at: number;
  /** Whose order it is. */
  readonly by: string;
  /** Of the fork; a new one unless told. */
  readonly runId?: string;
}

/**
 * A new run that shares the origin's commits up to the event `at`, in a session that is the origin's as it was there. Commits are whole:
 * one that reaches past it is left out. Steps that were in flight at the cut run again, under new idempotency keys, since those carry
 * the run's id.
 */
export async function forkRun(options: ForkOptions): Promise<RunRecord> {
  const { store, clock, ids, origin, at, by } = options;
  if (!Number.isSafeInteger(at) || at < 0) {
    throw new Fault(
      "invalid_argument",
      `at is ${describeValue(at)}: it must be the seq of an event of ${origin.runId}`,
    );
  }
  const runId = options.runId === undefined ? formatRunId(ids.next()) : parseRunId(options.runId);
  const standing = await findFork(options, runId);
  if (standing !== undefined) return standing;
  const last = await store.events.lastSeq(origin.runId);
  if (at > last) {
    throw new Fault("invalid_argument", `at is ${at}: the last event of ${origin.runId} so far is ${last}`);
  }
  const sessionId = newSession(options, runId);
  const record: RunRecord = { ...origin, runId, sessionId, createdAt: clock.now() };
  const { agentId } = record;
  const commits = await commitsUpTo(store, origin.runId, at);
  const events = commits.flatMap((commit) => commit.events ?? []).map((event) => ({ ...event, runId }));
  refuseErased(commits, origin.runId);
  const merged = mergeCommits(commits, record);
  const session = await forkSession({ store, origin, fork: record, commits, steps: merged.steps });
  const inherited = usageOf(commits.flatMap(({ steps }) => steps ?? []));
  const fork: Event = {
    seq: events.length,
    runId,
    taskId: rootTaskId,
    agentId,
    parentId: null,
    at: clock.now(),
    type: "run_fork",
    data: { origin: origin.runId, at, sessionId, inherited, by },
  };
  const first: Commit = {
    ...merged,
    ...session,
    number: 0,
    at: clock.now(),
    events: [...events, fork],
  };
  const { kind } = await store.journal.create(record, first);
  return kind === "created" ? record : ((await findFork(options, runId)) ?? record);
}

/**
 * Nobody else is in it. Of an origin that was given none it is one that nobody named either, and is let go of as those are. An origin that
 * came back to a session has what others said in it: like that session, its fork's stays.
 */
function newSession({ ids, origin, runId: given }: ForkOptions, runId: RunId): SessionId {
  const nameOf = isUnnamedSession(origin.sessionId, origin.runId) ? unnamedSessionId : forkSessionId;
  return nameOf(runId, given === undefined ? undefined : ids.next());
}

/** The fork that stands under this id. Refuses when it is another run, or was made elsewhere. */
async function findFork({ store, origin, at }: ForkOptions, runId: RunId): Promise<RunRecord | undefined> {
  const record = await store.journal.find(runId);
  if (record === undefined) return undefined;
  for await (const { events = [] } of store.journal.read(runId)) {
    const fork = events.findLast((event) => event.type === "run_fork");
    if (fork?.data.origin === origin.runId && fork.data.at === at) return record;
    break;
  }
  throw new Fault("already_exists", `${runId} is there, and is no fork of ${origin.runId} at event ${at}`);
}

async function commitsUpTo(store: Store, runId: RunId, at: number): Promise<readonly Commit[]> {
  const commits: Commit[] = [];
  for await (const commit of store.journal.read(runId)) {
    if ((commit.events?.at(-1)?.seq ?? -1) > at) break;
    commits.push(commit);
  }
  if (commits.length === 0)
    throw new Fault("invalid_argument", `${runId} has no commit that ends at or before event ${at}`);
  return commits;
}

/** A task at work at the cut would go on from a journal whose words retention took. */
function refuseErased(commits: readonly Commit[], runId: RunId): void {
  const erased = new Set(
    commits.flatMap(({ events = [] }) => events.filter((event) => event.erased === true)).map(taskOf),
  );
  for (const { tasks = [] } of commits)
    for (const change of tasks) if (change.type === "end") erased.delete(change.taskId);
  const [taskId] = erased;
  if (taskId === undefined) return;
  throw new Fault(
    "invalid_argument",
    `${runId} cannot be forked there: ${taskId} keeps no history, and was at work`,
  );
}

function taskOf({ taskId }: Event): TaskId {
  return taskId;
}

/** One commit that leaves a run in the state the many did. Money starts anew: what the origin spent is the origin's. */
function mergeCommits(
  commits: readonly Commit[],
  fork: RunRecord,
): Omit<Commit, "number" | "at" | "events"> & { readonly steps: readonly StepRecord[] } {
  const ledger = commits
    .flatMap((commit) => commit.ledger ?? [])
    .filter(({ type }) => type === "open" || type === "close" || type === "reprioritize");
  return {
    ...mergeSteps(commits),
    tasks: commits.flatMap((commit) => commit.tasks ?? []).map((change) => rename(change, fork)),
    resolves: commits
      .flatMap((commit) => commit.resolves ?? [])
      .map(({ taskId, wait, value }) => ({ taskId, wait, value })),
    headcount: commits.flatMap((commit) => commit.headcount ?? []),
    ledger,
  };
}

/** What stands at the cut. Nothing is voided twice, and a journal that was left is left out (J8). */
function mergeSteps(commits: readonly Commit[]): { opens: StepOpening[]; steps: StepRecord[] } {
  const steps = new Map<string, StepRecord>();
  const opens = new Map<string, StepOpening>();
  for (const commit of commits) {
    for (const each of commit.voids ?? []) steps.delete(keyOf(each));
    for (const change of commit.tasks ?? []) {
      if (change.type !== "continue") continue;
      for (const [key, { taskId }] of steps) if (taskId === change.taskId) steps.delete(key);
      for (const [key, { taskId }] of opens) if (taskId === change.taskId) opens.delete(key);
    }
    for (const opening of commit.opens ?? []) opens.set(keyOf(opening), opening);
    for (const step of commit.steps ?? []) {
      steps.set(keyOf(step), step);
      opens.delete(keyOf(step));
    }
  }
  return { opens: [...opens.values()], steps: [...steps.values()] };
}

function usageOf(steps: readonly StepRecord[]): Usage {
  return steps
    .flatMap(({ kind, outcome }) => (kind === "llm" && outcome.kind === "ok" ? [outcome.value] : []))
    .map((value) => (value as unknown as LlmReply).usage)
    .reduce(addUsage, noUsage);
}

/** The tasks are the fork's: what they send, and the keys of what they do, say so. */
function rename(change: TaskChange, { runId, sessionId }: RunRecord): TaskChange {
  if (change.type !== "create") return change;
  const supervision = { ...change.task.supervision, runId, sessionId };
  return { ...change, task: { ...change.task, supervision } };
}

function keyOf({ taskId, address }: Pick<StepRecord, "taskId" | "address">): string {
  return `${taskId} ${address}`;
}
