import {
  assertOutcome,
  attempt,
  deepFreeze,
  sealJson,
  digestOf,
  eraseCommit,
  Fault,
  isInScope,
  joinStarts,
  nothingSpent,
  rootTaskId,
  sameCaller,
  startsLater,
  turnKey,
  type ApprovalPage,
  type ApprovalQuery,
  type Commit,
  type Creation,
  type Erasure,
  type Event,
  type Hash,
  type Journal,
  type Lease,
  type Rest,
  type MaybePromise,
  type RunChangeList,
  type RunCountQuery,
  type RunId,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type RunSummary,
  type SingleFlight,
  type StepRecord,
  type Submission,
  type TaskRecord,
  type TenantScope,
  type CollectOptions,
  withoutInputs,
} from "../../../kernel/index.ts";
import { approvalChangesIn } from "../approval-changes.ts";
import {
  changePosition,
  countCursorOf,
  cursorOf,
  inListOrder,
  matches,
  pageOf,
  unknownCost,
  type RunCursor,
  type SelectedRun,
} from "../run-cursor.ts";
import { gatesOf } from "../flow-gates.ts";
import { endIn, spendIn } from "../run-end.ts";
import { hostIn } from "../run-host.ts";
import { forgottenMail } from "../forgotten-mail.ts";
import { stateChangeIn } from "../state-changes.ts";
import type { MemoryContents } from "./contents.ts";
import type { MemoryInbox } from "./inbox.ts";
import { mailToSubmitted } from "../submitted-mail.ts";
import type { MemoryMailbox } from "./mailbox.ts";
import { countingScores, memoryStatusOf, summaryOf } from "./run-summary.ts";
import type { MemoryRecords } from "./records.ts";
import type { MemorySessions } from "./sessions.ts";
import { ShownDeltas } from "./shown-deltas.ts";
import { type Tables, eventsContent } from "./tables.ts";
import type { RunRow } from "./run-row.ts";
import type { MemoryTopics } from "./topics.ts";
import type { MemoryUsageTotals } from "./usage-totals.ts";

/** The parts of the store that a commit changes in addition to its run. */
interface SiblingTables {
  readonly sessions: MemorySessions;
  readonly mailbox: MemoryMailbox;
  readonly inbox: MemoryInbox;
  readonly topics: MemoryTopics;
  readonly contents: MemoryContents;
  readonly usage: MemoryUsageTotals;
  readonly records: MemoryRecords;
}

/** A run that a query selects. */
interface ListedRow extends SelectedRun {
  readonly row: RunRow;
}

/** Shared empty lists. Most runs never replace them, so that these runs need no lists of their own. */
const noTasks: readonly never[] = [];
const noMail: readonly never[] = [];
const nobody: readonly never[] = [];
const noRuns: readonly never[] = [];
const none: readonly never[] = [];
const ready: Rest = { kind: "ready" };

export class MemoryJournal implements Journal {
  readonly #tables: Tables;
  readonly #siblings: SiblingTables;
  readonly #hash: Hash;

  constructor(tables: Tables, hash: Hash, siblings: SiblingTables) {
    this.#tables = tables;
    this.#hash = hash;
    this.#siblings = siblings;
  }

  create(record: RunRecord, first: Commit, flight?: SingleFlight): MaybePromise<Creation> {
    return attempt(() => this.#create(record, first, flight));
  }

  #create(record: RunRecord, first: Commit, flight?: SingleFlight): Creation {
    if (this.#tables.runs.has(record.runId)) return { kind: "exists" };
    const joined = record.flow?.collect === undefined ? undefined : this.#collect(record);
    if (joined !== undefined) return { kind: "steered", runId: joined };
    const instead = flight === undefined ? this.#refusal(record) : this.#steer(record, flight);
    if (instead !== undefined) return instead;
    if (first.inbox !== undefined && !this.#siblings.inbox.isFreeNow(first.inbox)) return { kind: "taken" };
    const row: RunRow = {
      record,
      turn: turnKey(record),
      place: this.#tables.tick(),
      change: 0,
      end: null,
      standing: null,
      spent: nothingSpent,
      questions: none,
      commits: [],
      events: [],
      erasedContents: undefined,
      mail: noMail,
      mailIds: undefined,
      mailCount: 0,
      deltas: new ShownDeltas(),
      isLive: true,
      epoch: 0,
      owner: null,
      recoveries: 0,
      lostOwner: null,
      recoveredAt: 0,
      isHeld: false,
      gates: gatesOf(record),
      passed: 0,
      isQueued: false,
      hasPlace: false,
      rest: startsLater(record) ? { kind: "suspended", wakeAt: record.startAt } : ready,
      readyAt: this.#tables.tick(),
      line: undefined,
      scores: undefined,
      watchers: nobody,
    };
    sealJson(record.metadata);
    for (const change of first.tasks ?? noTasks) if (change.type === "create") freezeGiven(change.task);
    this.#write(row, first);
    this.#tables.runs.set(record.runId, row);
    const siblings = this.#tables.ofSession.get(record.sessionId);
    if (siblings === undefined) this.#tables.ofSession.set(record.sessionId, [row]);
    else siblings.push(row);
    if (row.end === null) this.#tables.addUnfinished(row);
    this.#tables.place(row);
    this.#tables.announce({
      kind: "new",
      runId: record.runId,
      startAt: startsLater(record) ? record.startAt : (record.flow?.collect?.dueAt ?? null),
    });
    return { kind: "created" };
  }

  /**
   * L20: returns the run that has collected the start of this one, now or in an earlier call. `undefined` if there
   * is none.
   */
  #collect(record: RunRecord): RunId | undefined {
    const submission = `submit ${record.runId}`;
    const known = this.#tables.submitted.get(submission);
    if (known !== undefined) return known.record.runId;
    const { flow, createdAt } = record;
    const [gate] = gatesOf(record);
    const row = gate && this.#tables.flows.collectorAt(gate.id);
    const former = row?.record.flow?.collect;
    const collect = former && flow?.collect && joinStarts(former, flow.collect, createdAt);
    if (row === undefined || gate === undefined || collect === undefined) return undefined;
    row.record = { ...row.record, flow: { ...row.record.flow, collect } };
    row.gates = gatesOf(row.record);
    row.mailIds ??= new Set();
    row.mailIds.add(submission);
    this.#tables.submitted.set(submission, row);
    this.#tables.noteChange(row);
    this.#tables.flows.recheck(gate.id);
    const { runId } = row.record;
    const startAt = collect.dueAt <= createdAt ? null : collect.dueAt;
    this.#tables.announce({ kind: "new", runId, startAt });
    return runId;
  }

  async find(runId: RunId, scope?: TenantScope): Promise<RunRecord | undefined> {
    const record = this.#tables.runs.get(runId)?.record;
    return record !== undefined && isInScope(record, scope) ? record : undefined;
  }

  async summary(runId: RunId): Promise<RunSummary | undefined> {
    const row = this.#tables.runs.get(runId);
    return row === undefined ? undefined : summaryOf(row, this.#tables.workers);
  }

  async list(query: RunQuery = {}): Promise<RunPage> {
    const cursor = cursorOf(query);
    const inOrder = inListOrder(cursor);
    const { shown, next } = pageOf([...this.#select(query, cursor)].toSorted(inOrder), cursor);
    return { runs: shown.map(({ row }) => summaryOf(row, this.#tables.workers)), next };
  }

  async count(query: RunCountQuery = {}): Promise<number> {
    const cursor = countCursorOf(query);
    return Math.min(cursor.limit, [...this.#select(query, cursor)].length);
  }

  *#select(query: RunQuery, cursor: RunCursor): Iterable<ListedRow> {
    const { after, statuses } = cursor;
    const inOrder = inListOrder(cursor);
    for (const row of this.#tables.runs.values()) {
      const { place, record, end, spent } = row;
      const cost = spent.costUsd ?? unknownCost;
      const scores = row.scores === undefined ? none : countingScores(row);
      const listed = {
        row,
        record,
        place,
        createdAt: record.createdAt,
        endedAt: end?.at ?? null,
        cost,
        scores,
      };
      if (inOrder(after, listed) >= 0 || !matches(listed, query, cursor)) continue;
      if (statuses?.includes(memoryStatusOf(row, this.#tables.workers).status) ?? true) yield listed;
    }
  }

  /** K5: costs O(runs) if any has changed. */
  async changes(after?: string): Promise<RunChangeList> {
    const next = this.#tables.lastChange;
    const [since = next] = after === undefined ? [] : changePosition(after, 1);
    const runs: RunSummary[] = [];
    if (since !== next)
      for (const row of this.#tables.runs.values())
        if (row.change > since) runs.push(summaryOf(row, this.#tables.workers));
    return { runs, next: String(next) };
  }

  async approvals(query?: ApprovalQuery): Promise<ApprovalPage> {
    return this.#tables.approvals.list(query);
  }

  append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): MaybePromise<Commit> {
    return attempt(() => this.#append(lease, commit, submissions));
  }

  #append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): Commit {
    const row = this.#tables.owned(lease);
    const standing = row.commits[commit.number];
    if (standing !== undefined) return standing;
    this.#write(row, commit);
    if (submissions !== undefined) {
      for (const { run, first, flight, isAlone } of submissions)
        if (isAlone !== true || this.#unfinishedOf(run) === undefined) this.#create(run, first, flight);
      for (const mail of mailToSubmitted(commit, submissions)) this.#siblings.mailbox.putNow(mail);
    }
    if (commit.events !== undefined) for (const watcher of row.watchers) watcher.seeCommit(commit.events);
    return commit;
  }

  replay(runId: RunId, visit: (commit: Commit) => void): MaybePromise<RunRecord> {
    return attempt(() => {
      const row = this.#tables.run(runId);
      row.commits.forEach(visit);
      return row.record;
    });
  }

  async *read(runId: RunId, from = 0): AsyncIterable<Commit> {
    const { commits } = this.#tables.run(runId);
    const end = commits.length;
    for (let number = from; number < end; number++) {
      const commit = commits[number];
      if (commit !== undefined) yield commit;
    }
  }

  async delete(runId: RunId): Promise<void> {
    this.#deleteNow(runId);
  }

  #deleteNow(runId: RunId): void {
    this.#siblings.contents.releaseNow({ runId });
    this.#siblings.inbox.freeNow(runId);
    const row = this.#tables.runs.get(runId);
    if (row !== undefined) {
      this.#siblings.sessions.removeHiddenNow(row.record.sessionId, runId);
      this.#tables.ended.delete(row);
      this.#tables.removeUnfinished(row);
      this.#tables.leaveFlow(row);
      this.#tables.ready.remove(row);
      this.#tables.approvals.removeNow(row);
      for (const mailId of row.mailIds ?? noMail) this.#tables.submitted.delete(mailId);
      const siblings = this.#tables.ofSession.get(row.record.sessionId) ?? [];
      const place = siblings.indexOf(row);
      if (place >= 0) siblings.splice(place, 1);
      if (siblings.length === 0) this.#tables.ofSession.delete(row.record.sessionId);
    }
    this.#tables.runs.delete(runId);
    for (const watcher of row?.watchers ?? nobody) watcher.seeRemoval();
    // A deleted row can stay in memory until the next full garbage collection, because V8 chains the old tables of a `Map` to the
    // new ones. Without its arrays it is small.
    if (row !== undefined) row.commits.length = row.events.length = 0;
  }

  async collect({ endedBefore, only, except, scope }: CollectOptions): Promise<number> {
    const ended: RunRow[] = [];
    const kept = new Set(except?.());
    const rows =
      only === undefined
        ? this.#tables.ended.values()
        : only.flatMap((runId) => this.#tables.runs.get(runId) ?? none);
    for (const row of rows)
      if (isOver(row, endedBefore) && !kept.has(row.record.runId) && isInScope(row.record, scope))
        ended.push(row);
    for (const { record } of ended) this.#deleteNow(record.runId);
    return ended.length;
  }

  /**
   * S5: returns the outcome if the agent has an unfinished run in the session: this run gets the input, or the
   * input is refused.
   */
  #steer(run: RunRecord, { steering, always, scope }: SingleFlight): Creation | undefined {
    const { sessionId } = run;
    if (!this.#siblings.sessions.isAvailableNow(sessionId, scope)) return { kind: "foreign" };
    const receiver = this.#tables.submitted.get(steering.id);
    if (receiver !== undefined)
      return isInScope(receiver.record, scope)
        ? { kind: "steered", runId: receiver.record.runId }
        : { kind: "foreign" };
    const refusal = this.#refusal(run);
    if (refusal !== undefined) return refusal;
    const row = this.#unfinishedOf(run);
    if (row === undefined) return undefined;
    // A run that keeps no history has no session.
    if (!isInScope(row.record, scope)) return { kind: "foreign" };
    const { status } = memoryStatusOf(row);
    // A run that mail has woken is pending until a worker claims it. A held run waits for a compaction.
    const isLeft =
      status === "waiting" ||
      status === "paused" ||
      row.isHeld ||
      (row.owner === null && row.mail.length > 0);
    // L9: a run takes no input as steering before its start time.
    const isScheduled = startsLater({ startAt: row.record.startAt, createdAt: run.createdAt });
    if ((!always && (!isLeft || isScheduled)) || !sameCaller(row.record, run))
      return { kind: "busy", run: summaryOf(row) };
    this.#siblings.mailbox.putNow({ ...steering, runId: row.record.runId });
    return { kind: "steered", runId: row.record.runId };
  }

  /** S5: returns a refusal for a compaction in a session that is not idle. */
  #refusal({ kind, sessionId }: RunRecord): Creation | undefined {
    const run = kind === "compaction" ? this.#siblings.sessions.busyRun(sessionId) : undefined;
    return run === undefined ? undefined : { kind: "busy", run };
  }

  /** Returns the newest unfinished run of the agent in the session, apart from compactions. */
  #unfinishedOf({ agentId, sessionId }: RunRecord): RunRow | undefined {
    return this.#unfinishedIn(sessionId).findLast(
      ({ record }) => record.agentId === agentId && record.kind !== "compaction",
    );
  }

  #unfinishedIn(sessionId: RunRecord["sessionId"]): readonly RunRow[] {
    const unfinished = this.#tables.unfinished.get(sessionId);
    return unfinished === undefined ? noRuns : [...unfinished];
  }

  /** Writes the commit and applies its changes. It validates the commit before it changes anything. */
  #write(row: RunRow, commit: Commit): void {
    const { number, steps, events, sessions, mail, inbox, topics, mailThrough } = commit;
    if (number !== row.commits.length) {
      throw new Fault("invalid_argument", `commit ${number} leaves a gap: expected ${row.commits.length}`);
    }
    if (steps !== undefined) steps.forEach(sealOutcome);
    if (events !== undefined) refuseGap(events, row.events.length);
    if (sessions !== undefined) this.#siblings.sessions.applyNow(sessions, commit.at, row.record);
    row.commits.push(commit);
    if (events !== undefined)
      for (let index = 0; index < events.length; index++) row.events.push(events[index] as Event);
    const end = endIn(commit);
    if (end !== undefined) this.#tables.setEnd(row, end);
    if (commit.standing !== undefined) row.standing = commit.standing;
    row.spent = spendIn(commit) ?? row.spent;
    this.#tables.noteChange(row);
    const questions = approvalChangesIn(commit);
    if (questions !== undefined) this.#tables.approvals.applyNow(row, questions);
    if (commit.erases !== undefined) this.#erase(row, commit.erases);
    if (mail !== undefined) for (const each of mail) this.#siblings.mailbox.putNow(each);
    if (inbox !== undefined) this.#siblings.inbox.applyNow(inbox, { runId: row.record.runId, at: commit.at });
    if (topics !== undefined) this.#siblings.topics.applyNow(topics);
    if (commit.usage !== undefined) this.#siblings.usage.addNow(row.record, commit);
    const state = stateChangeIn(commit, row.record);
    if (state !== undefined) this.#siblings.records.changeNow(state);
    const host = hostIn(commit);
    if (host !== undefined) row.record = { ...row.record, host: row.record.host ?? host };
    for (const mailId of forgottenMail(commit)) row.mailIds?.delete(mailId);
    if (mailThrough !== undefined) this.#siblings.mailbox.consumeNow(row, mailThrough);
    if (events !== undefined) row.deltas.recorded(events);
  }

  #erase(row: RunRow, erasures: readonly Erasure[]): void {
    const { commits, events } = row;
    if (erasures.some(({ taskId }) => taskId === rootTaskId)) {
      row.record = {
        ...row.record,
        metadata: {},
        ...(row.record.flow && { flow: withoutInputs(row.record.flow) }),
      };
      row.scores = row.scores?.map((score) => ({ ...score, comment: null }));
    }
    const erasedContents = (row.erasedContents ??= new Map<number, string>());
    for (const [number, commit] of commits.entries()) {
      const wordless = eraseCommit(commit, erasures);
      if (wordless === commit) continue;
      const erased = this.#withoutArguments(wordless, erasures);
      if (!erasedContents.has(number)) erasedContents.set(number, eventsContent(commit, this.#hash));
      commits[number] = erased;
      for (const event of erased.events ?? []) events[event.seq] = event;
    }
  }

  /**
   * Returns the commit without erased arguments. It first computes the digests that were not computed yet, because
   * they are computed from the arguments and the transcript.
   */
  #withoutArguments(commit: Commit, erasures: readonly Erasure[]): Commit {
    if (commit.steps === undefined) return commit;
    const steps = commit.steps.map((step) =>
      erasures.some(({ taskId }) => taskId === step.taskId)
        ? { ...step, digest: digestOf(step, this.#hash) }
        : step,
    );
    return { ...commit, steps };
  }
}

/**
 * Freezes the input of a task, because the caller still has a reference to it, and the events of the task share it.
 */
function freezeGiven({ input, messages, metadata }: TaskRecord): void {
  sealJson(input);
  sealJson(messages);
  sealJson(metadata);
}

/** Whether the run ended before this time and has no owner, no unread mail and no reader. */
/** A ready run waits for an owner, which may have to finish the end of the run. */
function isOver({ end, owner, rest, mail, watchers }: RunRow, endedBefore: number): boolean {
  if (end === null || end.at >= endedBefore || rest.kind === "ready") return false;
  return owner === null && mail.length === 0 && watchers.length === 0;
}

function refuseGap(events: readonly Event[], from: number): void {
  for (let index = 0; index < events.length; index++) {
    const { seq } = events[index] as Event;
    if (seq !== from + index)
      throw new Fault("invalid_argument", `event ${seq} leaves a gap: expected ${from + index}`);
  }
}

/**
 * J1, J10: checks and freezes an outcome, so that no reader can change it. A frozen outcome was checked when it was
 * recorded.
 */
function sealOutcome(step: StepRecord): void {
  if (Object.isFrozen(step.outcome)) return;
  assertOutcome(step);
  deepFreeze(step.outcome);
}
