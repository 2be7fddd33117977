import {
  HistoryRetention,
  Priority,
  rootTaskId as root,
  toolCallsOf,
  type ChatMessage,
  type JsonObject,
  type JsonValue,
  type NextRun,
  type RunContext,
  type SessionChange,
  type SessionEntry,
  type Turn,
} from "../../../kernel/index.ts";
import type { Reviewer } from "./reviewer.ts";

/** Type of the custom entries with the number of tool calls since the last review, by reviewer. */
const entryType = "reviewers";

/** Key of the run's metadata that names the reviewer of a review. */
export const reviewKey = "reviewer";

/** Tool calls since the last review, by the name of the reviewer. */
export type CallCounts = Readonly<Record<string, number>>;

/**
 * Returns the counts at the end of a session path. A compaction keeps the latest entries, and therefore the counts.
 */
export function callCounts(path: readonly SessionEntry[]): CallCounts {
  const entry = path.findLast((each) => each.type === "custom" && each.customType === entryType);
  return entry?.type === "custom" ? readCounts(entry.data) : {};
}

function readCounts(data: JsonValue): CallCounts {
  const counts: Record<string, number> = {};
  if (typeof data !== "object" || data === null) return counts;
  for (const [name, count] of Object.entries(data as JsonObject))
    if (typeof count === "number" && Number.isSafeInteger(count)) counts[name] = count;
  return counts;
}

/** The changes that the end of an invocation makes for its reviewers. */
export interface ReviewSchedule {
  /** Stores the new counts. */
  readonly change: Extract<SessionChange, { type: "append" }>;
  /** The reviews that are due. */
  readonly next: readonly NextRun[];
}

/** An invocation that ends. */
interface EndedInvocation {
  readonly turn: Turn;
  /** The index of the invocation within its task. */
  readonly place: number;
  readonly messages: readonly ChatMessage[];
  /** Id of the last session entry of the invocation. */
  readonly leafId: string | null;
  /**
   * Whether the invocation was stopped. If so, no review starts, because the user may have cancelled the
   * invocation.
   */
  readonly isStopped: boolean;
}

/** Counts the tool calls of an invocation. `undefined` if there are none, or if the invocation keeps no history. */
export function scheduleReviews(
  reviewers: readonly Reviewer[],
  { taskId, agentId, facts, meta }: RunContext,
  { turn, place, messages, leafId, isStopped }: EndedInvocation,
): ReviewSchedule | undefined {
  const { sessionId, at, resumeCount } = turn;
  if (sessionId === null || taskId !== root || reviewers.length === 0) return undefined;
  if (meta.supervision?.retention !== HistoryRetention.PERMANENT) return undefined;
  const calls = messages.reduce((sum, message) => sum + callsIn(message), 0);
  if (calls === 0) return undefined;
  const before = readCounts(turn.carried);
  const counts: Record<string, number> = {};
  const next: NextRun[] = [];
  for (const reviewer of reviewers) {
    const count = (before[reviewer.name] ?? 0) + calls;
    const isDue = !isStopped && count >= reviewer.every;
    counts[reviewer.name] = isDue ? 0 : count;
    if (isDue) next.push(reviewRun(reviewer));
  }
  const { runId } = facts;
  const id = `${runId}/${taskId}.reviewers.${place}.${resumeCount}`;
  const base = { id, parentId: leafId, at, runId, taskId } as const;
  const entry: SessionEntry = { ...base, type: "custom", customType: entryType, data: counts };
  return { change: { type: "append", sessionId, agentId, entry, visibility: "visible" }, next };
}

function callsIn(message: ChatMessage): number {
  return message.role === "assistant" ? toolCallsOf(message).length : 0;
}

function reviewRun({ name, prompt, tools, budget }: Reviewer): NextRun {
  return {
    key: `review-${name}`,
    input: prompt,
    shares: { tools, place: `review-${name}` },
    isAlone: true,
    budget,
    priority: Priority.BACKGROUND,
    retention: HistoryRetention.NONE,
    metadata: { [reviewKey]: name },
  };
}
