import {
  digestOf,
  rootTaskId as rootTask,
  type Commit,
  type Hash,
  type JsonObject,
  type JsonValue,
  type StepAddress,
  type StepOpening,
  type StepRecord,
} from "../../../../kernel/index.ts";
import { batchChanges, type BatchedChange } from "./entry-batch.ts";
import { foldJson, unfoldJson } from "./folded-json.ts";
import type { RunKey } from "../db/run-row.ts";
import { decodeBooking, encodeBooking, type Bookkeeper } from "./stored-booking.ts";
import { decodeChange, encodeChange, type FindEntries } from "./stored-change.ts";
import type { StoredCommit, StoredOpening, StoredStep } from "./stored-commit.ts";
import { decodeEvents, encodeEvents } from "./stored-event.ts";
import { decodeReply, encodeReply } from "./stored-reply.ts";

type Run = Pick<RunKey, "runId" | "agentId" | "sessionId">;

/** What a commit need not say, since its run and its row do. */
export interface CommitFrame extends Run {
  readonly number: number;
  readonly at: number;
  /** The seq after its last event. */
  readonly nextEvent: number;
}

/**
 * What most first commits hold. Stored ones name these by their place, and what follows after them: the list must not change. Made for
 * each, since they become part of what is read.
 */
function knownOf({ runId, agentId, sessionId }: Run): readonly JsonValue[] {
  return [
    { maxTokens: null, maxCostUsd: null, maxTurns: null, deadlineMs: null },
    { maxAgents: 50, allowPreempt: true },
    runId,
    agentId,
    sessionId,
  ];
}

function rootOf({ agentId }: Run): Bookkeeper {
  return { taskId: rootTask, agentId };
}

/**
 * The text of a commit's row: nothing that its row says, and no message twice. The first one, of which every run has one, is folded,
 * unless it has steps: that of a fork may be very large, and folding takes time.
 * `sessions`: the commit's own, for who has them.
 */
export function encodeCommit(
  commit: Commit,
  run: Run,
  hash: Hash,
  sessions: readonly BatchedChange[] = batchChanges(commit.sessions ?? []),
): string {
  const { at, opens, steps, events, ledger } = commit;
  const { runId, agentId } = run;
  const root = rootOf(run);
  // What is undefined is not in the text.
  const ofTurn: StoredCommit = {
    steps: isAny(steps) ? steps.map((step) => encodeStep(step, hash)) : undefined,
    events: isAny(events) ? encodeEvents(events, { runId, agentId, at, steps: steps ?? [] }) : undefined,
    opens: isAny(opens) ? opens.map(encodeOpening) : undefined,
    ledger: isAny(ledger) ? ledger.map((command) => encodeBooking(command, root)) : undefined,
  };
  const stored = isOfTurn(commit) ? ofTurn : { ...ofTurn, ...encodeRest(commit, run, sessions) };
  if (commit.number > 0) return JSON.stringify(stored);
  if (stored.steps !== undefined) return JSON.stringify({ plain: stored });
  return JSON.stringify(foldJson(stored as unknown as JsonObject, knownOf(run)));
}

/**
 * The commit as it was, but for entries that were removed from their sessions since. Throws a `SyntaxError` when the text is not what
 * `encodeCommit` wrote.
 */
export function decodeCommit(body: string, frame: CommitFrame, find: FindEntries): Commit {
  const parsed = JSON.parse(body) as JsonValue;
  const stored = (frame.number === 0
    ? unfoldJson(parsed, knownOf(frame))
    : parsed) as unknown as StoredCommit;
  const { opens, steps: storedSteps, events, ledger, sessions } = stored;
  // The parsed object becomes the commit: copying it would take as long as parsing it.
  const commit = stored as unknown as { -readonly [Key in keyof Commit]: Commit[Key] };
  commit.number = frame.number;
  commit.at = frame.at;
  const steps = storedSteps?.map(decodeStep) ?? [];
  if (storedSteps !== undefined) commit.steps = steps;
  if (events !== undefined) commit.events = decodeEvents(events, { ...frame, steps }, frame.nextEvent);
  if (opens !== undefined) commit.opens = opens.map(decodeOpening);
  if (ledger !== undefined) {
    const root = rootOf(frame);
    commit.ledger = ledger.map((booking) => decodeBooking(booking, root));
  }
  if (sessions !== undefined)
    commit.sessions = sessions.flatMap((change) => decodeChange(change, frame, find));
  return commit;
}

/** Whether it has nothing but what a commit of every turn has: most are such. */
function isOfTurn({
  voids,
  tasks,
  resolves,
  headcount,
  sessions,
  erases,
  mailThrough,
  mail,
  inbox,
  topics,
}: Commit): boolean {
  const more = voids ?? tasks ?? resolves ?? headcount ?? sessions ?? erases;
  return (more ?? mailThrough ?? mail ?? inbox ?? topics) === undefined;
}

function encodeRest(commit: Commit, run: Run, sessions: readonly BatchedChange[]): StoredCommit {
  return {
    sessions: isAny(sessions) ? sessions.map((change) => encodeChange(change, run)) : undefined,
    voids: unlessEmpty(commit.voids),
    tasks: unlessEmpty(commit.tasks),
    resolves: unlessEmpty(commit.resolves),
    headcount: unlessEmpty(commit.headcount),
    erases: unlessEmpty(commit.erases),
    mailThrough: commit.mailThrough,
    mail: unlessEmpty(commit.mail),
    inbox: unlessEmpty(commit.inbox),
    topics: unlessEmpty(commit.topics),
  };
}

function isAny<Item>(list: readonly Item[] | undefined): list is readonly Item[] {
  return list !== undefined && list.length > 0;
}

function unlessEmpty<Item>(list: readonly Item[] | undefined): readonly Item[] | undefined {
  return isAny(list) ? list : undefined;
}

function encodeOpening({ taskId, address, seq }: StepOpening): StoredOpening {
  return taskId === rootTask ? [address, seq] : [address, seq, taskId];
}

function decodeOpening([address, seq, taskId = rootTask]: StoredOpening): StepOpening {
  return { taskId, address: address as StepAddress, seq };
}

function encodeStep(step: StepRecord, hash: Hash): StoredStep {
  const { taskId, address, kind, name, outcome } = step;
  const digest = digestOf(step, hash);
  if (outcome.kind === "failed") return [address, kind, name, digest, null, taskId, outcome.failure];
  const value = kind === "llm" ? encodeReply(outcome.value) : outcome.value;
  return taskId === rootTask
    ? [address, kind, name, digest, value]
    : [address, kind, name, digest, value, taskId];
}

function decodeStep([
  address,
  kind,
  name,
  digest,
  stored,
  taskId = rootTask,
  failure,
]: StoredStep): StepRecord {
  const value = kind === "llm" ? decodeReply(stored as JsonValue) : stored;
  const outcome = failure === undefined ? { kind: "ok", value } : { kind: "failed", failure };
  return { taskId, address, kind, name, digest, outcome } as StepRecord;
}
