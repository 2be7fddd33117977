import {
  Fault,
  formatRunId,
  formatTaskId,
  type Clock,
  type Commit,
  type Event,
  type IdSource,
  type RunId,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";

export interface ForkOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly origin: RunRecord;
  /** A seq of the origin; with one owner any prefix of its log is a consistent cut of the tree. */
  readonly at: number;
}

/**
 * A new run that shares the origin's commits up to the event `at`. Commits are whole: one that reaches past it is left out. Steps that
 * were in flight at the cut run again, under new idempotency keys, since those carry the run's id.
 */
export async function forkRun({ store, clock, ids, origin, at }: ForkOptions): Promise<RunRecord> {
  if (!Number.isSafeInteger(at) || at < 0) {
    throw new Fault("invalid_argument", `at is ${at}: it must be the seq of an event of ${origin.runId}`);
  }
  const record: RunRecord = { ...origin, runId: formatRunId(ids.next()), createdAt: clock.now() };
  const commits = await commitsUpTo(store, origin.runId, at);
  const merged = mergeCommits(commits, record.runId);
  const events = merged.events ?? [];
  const fork: Event = {
    seq: events.length,
    runId: record.runId,
    taskId: formatTaskId(0),
    agentId: record.agentId,
    parentId: null,
    at: clock.now(),
    type: "run_fork",
    data: { origin: origin.runId, at },
  };
  await store.journal.create(record, { ...merged, number: 0, at: clock.now(), events: [...events, fork] });
  return record;
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

/** One commit that leaves a run in the state the many did. Money starts anew: what the origin spent is the origin's. */
function mergeCommits(commits: readonly Commit[], runId: RunId): Omit<Commit, "number" | "at"> {
  const all = <Key extends "opens" | "steps" | "voids" | "tasks" | "resolves" | "headcount">(key: Key) =>
    commits.flatMap((commit) => (commit[key] ?? []) as NonNullable<Commit[Key]>[number][]);
  const events = commits.flatMap((commit) => commit.events ?? []).map((event) => ({ ...event, runId }));
  const opened = commits
    .flatMap((commit) => commit.ledger ?? [])
    .filter(({ type }) => type === "open" || type === "close" || type === "reprioritize");
  return {
    opens: all("opens"),
    steps: all("steps"),
    voids: all("voids"),
    tasks: all("tasks"),
    resolves: all("resolves"),
    headcount: all("headcount"),
    ledger: opened,
    events,
  };
}
