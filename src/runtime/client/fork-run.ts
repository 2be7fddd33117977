import {
  missingRun,
  addUsage,
  canonicalJson,
  describeValue,
  Fault,
  flowOfFork,
  forkSessionId,
  formatRunId,
  isUnnamedSession,
  messageText,
  noUsage,
  parseRunId,
  rootTaskId,
  runTitle,
  unnamedSessionId,
  userMessage,
  type Clock,
  type Commit,
  type Event,
  type Hash,
  type IdSource,
  type JsonObject,
  type JsonValue,
  type LlmReply,
  type RunId,
  type RunRecord,
  type SessionId,
  type StepOpening,
  type StepRecord,
  type TaskChange,
  type TaskId,
  type Usage,
  type UserMessage,
} from "../../kernel/index.ts";
import { takenRunId } from "../journal/existing-run.ts";
import { storedRunId } from "../journal/run-ids.ts";
import type { RunStore } from "./run-store.ts";
import { ForkChanges, refuseEndedTask, type WantedFork } from "./fork-changes.ts";
import { AddedInput, type ForkInput } from "./fork-input.ts";
import { forkSession } from "./fork-session.ts";

export interface ForkOfRun {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly origin: RunRecord;
  /**
   * Sequence number (`seq`) of an event of the original run. The fork shares the commits up to it, except one that
   * extends beyond it. Because a run has one owner, its first commits always form a consistent state of all tasks.
   */
  readonly at: number;
  /** User in whose name the run is forked. */
  readonly by: string;
  /** Id of the fork. Default: a new id. */
  readonly runId?: string;
  /** Whether the commit that contains `at` is shared even if it extends beyond `at`. */
  readonly keepsCommit?: boolean;
  /** A checked user message that follows the shared events. If absent, the fork adds no message. */
  readonly input?: ForkInput;
  /** A checked input that replaces the one with which the run began. If absent, the input does not change. */
  readonly replacement?: JsonValue;
  /** The changes that the fork makes for the calls after the cut. */
  readonly wanted: WantedFork;
  readonly hash: Hash;
}

/**
 * Creates a run that shares the original run's commits up to event `at`, with a copy of the original session as it
 * was at that event. A commit with events after `at` is not shared. Steps that were in flight at `at` run again
 * with new idempotency keys, because a key contains the run id. A repeated call with the same `runId` returns the
 * existing fork.
 */
export async function forkRun(options: ForkOfRun): Promise<RunRecord> {
  const { store, clock, ids, origin, at } = options;
  if (!Number.isSafeInteger(at) || at < 0) {
    throw new Fault(
      "invalid_argument",
      `at is ${describeValue(at)}: it must be the seq of an event of ${origin.runId}`,
    );
  }
  const runId =
    options.runId === undefined
      ? formatRunId(ids.next())
      : await storedRunId(store.journal, origin.tenantId, parseRunId(options.runId));
  const existing = await findFork(options, runId);
  if (existing !== undefined) return existing;
  const last = await store.events.lastSeq(origin.runId);
  if (at > last) {
    throw new Fault("invalid_argument", `at is ${at}: the last event of ${origin.runId} so far is ${last}`);
  }
  const sessionId = newSession(options, runId);
  const commits = await sharedCommits(options);
  const title = options.replacement === undefined ? origin.title : newTitle(origin, options.replacement);
  const created = { title, runId, sessionId, createdAt: clock.now(), recoveries: 0 };
  const record: RunRecord = { ...origin, ...created, ...flowOfFork(origin.flow, runId) };
  const first = await firstCommit(options, record, commits);
  const { kind } = await store.journal.create(record, first);
  if (kind === "created") return record;
  const other = await findFork(options, runId);
  // S6: the run with this id belongs to another user of the tenant.
  if (other === undefined) throw takenRunId(runId);
  return other;
}

/** Creates the first commit of the fork. It combines the shared commits and contains what the fork adds to them. */
async function firstCommit(options: ForkOfRun, fork: RunRecord, commits: readonly Commit[]): Promise<Commit> {
  const { store, clock, origin, at, by, input, replacement, wanted, hash } = options;
  const { runId, sessionId, agentId } = fork;
  const { taskId, model } = wanted;
  const now = clock.now();
  const events = commits.flatMap((commit) => commit.events ?? []).map((event) => ({ ...event, runId }));
  const addition = input === undefined ? undefined : new AddedInput(origin, commits, input, taskId);
  const restarts = addition !== undefined && !addition.isSteering;
  refuseEndedTask(commits, wanted, at, restarts);
  const shared = mergeCommits([...commits, ...(addition?.changes(now) ?? [])], fork);
  const changes = new ForkChanges({ wanted, hash, by, at: now, commits, steps: shared.steps });
  const merged = {
    ...shared,
    requests: changes.requests(shared.requests),
    steps: shared.steps.map((step) => changes.step(step)),
    tasks: shared.tasks.map((change) => changes.task(change)),
    ledger: shared.ledger.map((command) => changes.ledger(command)),
  };
  const session = await forkSession({
    store,
    origin,
    fork,
    commits,
    steps: merged.steps,
    at: now,
    changedTask: taskId,
    ...(model !== undefined && { model: { ...model, entryId: `model_change_${runId}` } }),
    ...(addition !== undefined && { addition }),
    ...(replacement !== undefined && { replacement: messageOf(replacement) }),
  });
  const data: Event<"run_fork">["data"] = {
    origin: origin.runId,
    at,
    sessionId,
    inherited: usageOf(commits.flatMap(({ steps }) => steps ?? [])),
    by,
    ...(input !== undefined && { input: input as unknown as JsonValue }),
    ...(replacement !== undefined && { input: replacement, replacesInput: true }),
    ...changes.data,
  };
  const isChanged = wanted.instructions !== undefined || wanted.tools !== undefined;
  const seq = events.length;
  const recorded = new Set(merged.steps.map(keyOf));
  const event: Event = {
    seq,
    runId,
    taskId: rootTaskId,
    agentId,
    parentId: null,
    at: now,
    type: "run_fork",
    data,
  };
  return {
    ...merged,
    ...session,
    // A model call that is open at the cut starts again: its start would prove that nothing waited before it, and that it
    // was sent what the origin's call was sent.
    ...((addition?.isSteering === true || isChanged) && {
      opens: merged.opens.filter(
        (opening) => recorded.has(keyOf(opening)) || !isModelCallOf(taskId, opening, events),
      ),
    }),
    ...(addition?.isSteering === true && { resolves: [...merged.resolves, addition.resolution] }),
    number: 0,
    at: now,
    events: [...events, event],
  };
}

/** Whether the opening belongs to a model call of the task. */
function isModelCallOf(task: TaskId, { taskId, seq }: StepOpening, events: readonly Event[]): boolean {
  return taskId === task && events[seq]?.type === "message_start";
}

/** Returns the commits that the fork shares. With a replaced input, it is only the beginning of the run. */
async function sharedCommits(options: ForkOfRun): Promise<readonly Commit[]> {
  const { store, origin, at, keepsCommit = false, replacement } = options;
  const commits = await commitsUpTo(store, origin.runId, at, keepsCommit);
  if (replacement !== undefined) return [beginning(commits, origin, at, replacement)];
  refuseErased(commits, origin.runId, at);
  return commits;
}

/**
 * Returns the start of a run with another input: its root and its account. Throws if the root has called a model
 * before the cut.
 */
function beginning(commits: readonly Commit[], origin: RunRecord, at: number, input: JsonValue): Commit {
  const steps = commits.flatMap((commit) => commit.steps ?? []);
  if (origin.kind !== "invocation" || steps.some((step) => step.taskId === rootTaskId && step.kind === "llm"))
    throw new Fault(
      "invalid_argument",
      `the input of ${origin.runId} cannot be replaced in a fork at event ${at}: ${origin.kind === "invocation" ? "the model has seen it there" : `it is a ${origin.kind}`}; use the event of its first message_start`,
    );
  const [start] = commits.flatMap(({ events = [] }) => events.filter(({ type }) => type === "run_start"));
  const created = commits.flatMap(({ tasks = [] }) =>
    tasks.flatMap((change) => (change.type === "create" && change.task.parentId === null ? [change] : [])),
  );
  const ledger = commits.flatMap((commit) => commit.ledger ?? []);
  if (start?.type !== "run_start") throw missingRun(origin.runId);
  return {
    number: 0,
    at: start.at,
    events: [{ ...start, seq: 0, data: { ...start.data, input: asked(start.data.input, input) } }],
    tasks: created.map((change) => ({
      ...change,
      task: { ...change.task, input: asked(change.task.input, input) },
    })),
    ledger: ledger.filter((command) => command.type === "open" && command.taskId === rootTaskId),
  };
}

/** Returns the new input, with the part of the old input that describes the requested answer. */
function asked(old: JsonValue, input: JsonValue): JsonValue {
  const isMessage = typeof input === "string" || Array.isArray(input);
  const isRequest = typeof old === "object" && old !== null && !Array.isArray(old) && "prompt" in old;
  if (!isMessage || !isRequest) return input;
  const { value: _value, ...request } = old;
  return { ...request, prompt: input };
}

/** Returns the title of a run whose input was replaced. `null` for a run whose text is not kept. */
function newTitle({ title }: RunRecord, input: JsonValue): string | null {
  if (title === null) return null;
  return runTitle(messageText(messageOf(input)));
}

function messageOf(input: JsonValue): UserMessage {
  const isRequest = typeof input === "object" && input !== null && !Array.isArray(input);
  const prompt = isRequest ? (input as JsonObject)["prompt"] : input;
  return userMessage(prompt as unknown as ForkInput);
}

/**
 * Returns the id of the fork's new session. If the original session is unnamed, so is the new one, and retention
 * deletes it like other unnamed sessions. A named session may contain messages of other runs, so that its copy is
 * kept like a named session.
 */
function newSession({ ids, origin, runId: wantedId }: ForkOfRun, runId: RunId): SessionId {
  const makeId = isUnnamedSession(origin.sessionId, origin.runId) ? unnamedSessionId : forkSessionId;
  return makeId(runId, wantedId === undefined ? undefined : ids.next());
}

/**
 * Returns the existing fork with this id. Throws `already_exists` if the run with this id is not a fork of the
 * original run at `at`, or has another input or other changes.
 */
async function findFork(options: ForkOfRun, runId: RunId): Promise<RunRecord | undefined> {
  const { store, origin, at } = options;
  const record = await store.journal.find(runId);
  if (record === undefined) return undefined;
  for await (const { events = [] } of store.journal.read(runId)) {
    const fork = events.findLast((event) => event.type === "run_fork");
    if (fork?.data.origin !== origin.runId || fork.data.at !== at) break;
    if (isSameChange(options, fork)) return record;
    throw new Fault(
      "already_exists",
      `${runId} already exists as a fork of ${origin.runId} at event ${at} with another input or other changes; choose another \`runId\``,
    );
  }
  throw new Fault(
    "already_exists",
    `${runId} already exists and is not a fork of ${origin.runId} at event ${at}; choose another \`runId\``,
  );
}

function textOf(value: unknown): string {
  return canonicalJson(value ?? null);
}

/** Whether the fork was created with this input and these changes. Erased texts are not compared. */
function isSameChange(
  { input, replacement, wanted }: ForkOfRun,
  { data, erased }: Event<"run_fork">,
): boolean {
  const given = replacement ?? input;
  const { taskId, model, instructions, tools, budget, toolResults = [] } = wanted;
  const isSame = (one: unknown, other: unknown): boolean =>
    erased === true ? (one === undefined) === (other === undefined) : textOf(one) === textOf(other);
  return (
    isSame(given, data.input) &&
    isSame(instructions, data.instructions) &&
    (replacement === undefined) === (data.replacesInput === undefined) &&
    textOf(model) === textOf(data.model) &&
    textOf(tools) === textOf(data.tools) &&
    textOf(budget) === textOf(data.budget) &&
    taskId === (data.changedTask ?? rootTaskId) &&
    textOf(toolResults.map(({ callId }) => callId)) ===
      textOf((data.toolResults ?? []).map(({ callId }) => callId))
  );
}

/**
 * Returns the commits up to event `at`. With `keeps`, the commit that contains `at` is included even if it extends
 * beyond `at`.
 */
async function commitsUpTo(
  store: RunStore,
  runId: RunId,
  at: number,
  keeps: boolean,
): Promise<readonly Commit[]> {
  const commits: Commit[] = [];
  for await (const commit of store.journal.read(runId)) {
    const { events = [] } = commit;
    const isBeyond = (events.at(-1)?.seq ?? -1) > at;
    if (!isBeyond || (keeps && (events[0]?.seq ?? Infinity) <= at)) commits.push(commit);
    if (isBeyond) break;
  }
  if (commits.length === 0)
    throw new Fault(
      "invalid_argument",
      `${runId} cannot be forked at event ${at}: no commit ends at or before it; use a later event`,
    );
  return commits;
}

/** Throws if the fork would have to replay an unfinished task whose journal has lost its content by retention. */
function refuseErased(commits: readonly Commit[], runId: RunId, at: number): void {
  const erased = new Set(
    commits.flatMap(({ events = [] }) => events.filter((event) => event.erased === true)).map(taskOf),
  );
  for (const { tasks = [] } of commits)
    for (const change of tasks) if (change.type === "end") erased.delete(change.taskId);
  const [taskId] = erased;
  if (taskId === undefined) return;
  throw new Fault(
    "invalid_argument",
    `${runId} cannot be forked at event ${at}: ${taskId} is unfinished there and its history was erased; use an event at which it has ended`,
  );
}

function taskOf({ taskId }: Event): TaskId {
  return taskId;
}

/** Merges the commits into one with the same effect, except for money: the fork starts with nothing spent. */
function mergeCommits(
  commits: readonly Commit[],
  fork: RunRecord,
): Omit<Commit, "number" | "at" | "events"> &
  Required<Pick<Commit, "opens" | "requests" | "steps" | "resolves" | "tasks" | "ledger">> {
  const ledger = commits
    .flatMap((commit) => commit.ledger ?? [])
    .filter(({ type }) => type === "open" || type === "close" || type === "reprioritize");
  const standing = commits.findLast((commit) => commit.standing !== undefined)?.standing;
  return {
    ...(standing !== undefined && { standing }),
    ...mergeSteps(commits),
    tasks: commits.flatMap((commit) => commit.tasks ?? []).map((change) => renameTask(change, fork)),
    resolves: commits
      .flatMap((commit) => commit.resolves ?? [])
      .map(({ taskId, wait, value }) => ({ taskId, wait, value })),
    headcount: commits.flatMap((commit) => commit.headcount ?? []),
    ledger,
  };
}

/**
 * Returns the steps that are valid at the cut, and those in flight. J8: journals that tasks have ended with
 * `continueAsNew` are left out.
 */
function mergeSteps(commits: readonly Commit[]): Required<Pick<Commit, "opens" | "requests" | "steps">> {
  const steps = new Map<string, StepRecord>();
  // J11: the starts of recorded model calls stay, so that a reader finds what the calls were sent.
  const begunCalls = new Map<string, StepOpening>();
  const opens = new Map<string, StepOpening>();
  const failedStarts = new Map<string, StepOpening>();
  for (const commit of commits) {
    for (const each of commit.voids ?? []) {
      const key = keyOf(each);
      steps.delete(key);
      const start = failedStarts.get(key);
      if (start !== undefined) opens.set(key, start);
    }
    for (const change of commit.tasks ?? []) {
      if (change.type !== "continue") continue;
      for (const [key, { taskId }] of steps) if (taskId === change.taskId) steps.delete(key);
      for (const started of [opens, failedStarts])
        for (const [key, { taskId }] of started) if (taskId === change.taskId) started.delete(key);
    }
    for (const opening of commit.opens ?? []) opens.set(keyOf(opening), opening);
    for (const step of commit.steps ?? []) {
      const key = keyOf(step);
      const start = opens.get(key);
      if (start !== undefined && step.kind === "tool" && step.outcome.kind === "failed")
        failedStarts.set(key, start);
      if (start !== undefined && step.kind === "llm") begunCalls.set(key, start);
      steps.set(key, step);
      opens.delete(key);
    }
  }
  const begun = [...begunCalls].flatMap(([key, start]) => (steps.has(key) ? [start] : []));
  const requests = commits.flatMap((commit) => commit.requests ?? []);
  return { opens: [...begun, ...opens.values()], requests, steps: [...steps.values()] };
}

function usageOf(steps: readonly StepRecord[]): Usage {
  return steps
    .flatMap(({ kind, outcome }) => (kind === "llm" && outcome.kind === "ok" ? [outcome.value] : []))
    .map((value) => (value as unknown as LlmReply).usage)
    .reduce(addUsage, noUsage);
}

/**
 * Returns a task change with the fork's run id, so that the messages and idempotency keys of its tasks contain this
 * id.
 */
function renameTask(change: TaskChange, { runId, sessionId }: RunRecord): TaskChange {
  if (change.type !== "create") return change;
  const supervision = { ...change.task.supervision, runId, sessionId };
  return { ...change, task: { ...change.task, supervision } };
}

function keyOf({ taskId, address }: Pick<StepRecord, "taskId" | "address">): string {
  return `${taskId} ${address}`;
}
