import { isWhole, memberCount } from "./member-count.ts";
import {
  type Commit,
  type Hash,
  type JsonValue,
  type LlmReply,
  type StepAddress,
  type StepOpening,
  type StepRecord,
  digestOf,
  rootTaskId,
} from "../../../kernel/index.ts";
import type { RunKey } from "./stored-run.ts";
import { batchChanges, type BatchedChange } from "./entry-batch.ts";
import { decodeBooking, encodeBooking, type Bookkeeper } from "./stored-booking.ts";
import { decodeChange, encodeChange, type FindEntries } from "./stored-change.ts";
import type { StoredCommit, StoredOpening, StoredStep } from "./stored-commit.ts";
import { decodeEvents, encodeEvents } from "./stored-event.ts";

/** The stored form of a model call's reply: a list of values without member names. */
type BriefReply = readonly [
  message: LlmReply["message"],
  stopReason: LlmReply["stopReason"],
  inputTokens: number,
  outputTokens: number,
  cacheReadTokens: number,
  cacheWriteTokens: number,
  reasoningTokens: number,
  costUsd: number | null,
  provider: string,
  modelId: string,
];

/**
 * Returns the stored value of a model call's step. A reply without additional members is stored as a list of its
 * values. A list is stored as the only item of another list, and any other value unchanged.
 */
function encodeReply(value: JsonValue): unknown {
  return Array.isArray(value) ? [value] : (briefReply(value as Partial<LlmReply> | null) ?? value);
}

function decodeReply(stored: JsonValue): JsonValue {
  if (!Array.isArray(stored)) return stored;
  if (stored.length === 1) return stored[0] as JsonValue;
  const [message, stopReason, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, ...others] =
    stored as unknown as BriefReply;
  const [reasoningTokens, costUsd, provider, modelId] = others;
  const usage = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, costUsd };
  const reply: LlmReply = { message, stopReason, usage, model: { provider, modelId } };
  return reply as unknown as JsonValue;
}

function briefReply(value: Partial<LlmReply> | null): BriefReply | undefined {
  if (value === null) return undefined;
  const { message, stopReason, usage, model } = value;
  if (message === undefined || stopReason === undefined || usage === undefined || model === undefined)
    return undefined;
  if (memberCount(value) !== 4 || memberCount(usage) !== 6 || memberCount(model) !== 2) return undefined;
  const brief = [
    message,
    stopReason,
    usage.inputTokens,
    usage.outputTokens,
    usage.cacheReadTokens,
    usage.cacheWriteTokens,
    usage.reasoningTokens,
    usage.costUsd,
    model.provider,
    model.modelId,
  ] as const;
  return isWhole(brief) ? brief : undefined;
}

type Run = Pick<RunKey, "runId" | "agentId" | "sessionId">;

/**
 * The facts about a commit that its text does not contain, because columns of its row or of the run's row contain
 * them.
 */
export interface CommitFrame extends Run {
  readonly number: number;
  readonly at: number;
  /** Seq after the last event of the commit. */
  readonly nextEvent: number;
}

/**
 * Returns the JSON that the row of a commit stores. It differs from the commit to keep the text short. Events refer
 * to content that a step or a new task of the commit contains. Session entries are named only, because the
 * `entries` table contains them. Steps, openings, and the replies, events and bookings of every turn are lists
 * without member names.
 */
export function encodeCommit(
  commit: Commit,
  run: Run,
  hash: Hash,
  sessions: readonly BatchedChange[] = batchChanges(commit.sessions ?? []),
): StoredCommit {
  const { at, opens, steps = [], events, tasks = [], ledger } = commit;
  const { runId, agentId } = run;
  // JSON leaves out members that are undefined.
  return {
    ...commit,
    number: undefined,
    at: undefined,
    opens: opens?.map(encodeOpening),
    steps: commit.steps && steps.map((step) => encodeStep(step, hash)),
    events: events && encodeEvents(events, { runId, agentId, at, steps, tasks }),
    ledger: ledger?.map((command) => encodeBooking(command, rootOf(run))),
    sessions: sessions.length === 0 ? undefined : sessions.map((change) => encodeChange(change, run)),
  };
}

/**
 * Returns the commit. Entries that were removed from their session in the meantime are missing in it. Throws a
 * `SyntaxError` if `encodeCommit` did not create the stored value. The stored value must not be used afterwards.
 */
export function decodeCommit(stored: StoredCommit, frame: CommitFrame, find: FindEntries): Commit {
  const { opens, steps: storedSteps, events, tasks = [], ledger, sessions } = stored;
  // The stored object becomes the commit: a copy would take as long as parsing. Bench: `runtime`, row "replay".
  const commit = stored as unknown as { -readonly [Key in keyof Commit]: Commit[Key] };
  commit.number = frame.number;
  commit.at = frame.at;
  const steps = storedSteps?.map(decodeStep) ?? [];
  if (storedSteps !== undefined) commit.steps = steps;
  if (events !== undefined) commit.events = decodeEvents(events, { ...frame, steps, tasks }, frame.nextEvent);
  if (opens !== undefined) commit.opens = opens.map(decodeOpening);
  if (ledger !== undefined) commit.ledger = ledger.map((booking) => decodeBooking(booking, rootOf(frame)));
  if (sessions !== undefined)
    commit.sessions = sessions.flatMap((change) => decodeChange(change, frame, find));
  return commit;
}

function rootOf({ agentId }: Run): Bookkeeper {
  return { taskId: rootTaskId, agentId };
}

function encodeOpening({ taskId, address, seq }: StepOpening): StoredOpening {
  return taskId === rootTaskId ? [address, seq] : [address, seq, taskId];
}

function decodeOpening([address, seq, taskId = rootTaskId]: StoredOpening): StepOpening {
  return { taskId, address: address as StepAddress, seq };
}

function encodeStep(step: StepRecord, hash: Hash): StoredStep {
  const { taskId, address, kind, name, outcome } = step;
  const digest = digestOf(step, hash);
  if (outcome.kind === "failed") return [address, kind, name, digest, null, taskId, outcome.failure];
  const value = kind === "llm" ? encodeReply(outcome.value) : outcome.value;
  return taskId === rootTaskId
    ? [address, kind, name, digest, value]
    : [address, kind, name, digest, value, taskId];
}

function decodeStep([
  address,
  kind,
  name,
  digest,
  stored,
  taskId = rootTaskId,
  failure,
]: StoredStep): StepRecord {
  const value = kind === "llm" ? decodeReply(stored as JsonValue) : stored;
  const outcome = failure === undefined ? { kind: "ok", value } : { kind: "failed", failure };
  return { taskId, address, kind, name, digest, outcome } as StepRecord;
}
