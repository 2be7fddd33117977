import {
  assertMadeJson,
  Fault,
  rootTaskId,
  sealJson,
  type ChatMessage,
  type LlmReply,
  type NextRun,
  type SessionChange,
  type TaskReport,
} from "../../kernel/index.ts";
import type { SizeLimit } from "../process/size-limit.ts";
import { isPromise, refusedPromise } from "../task/refused-promise.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { checkReport } from "./context-options.ts";

/** Adds a report to the earlier reports of the task. */
export function noteReport(runner: TaskRunner, report: TaskReport): void {
  assertReported(report, runner.worker.sizes, runner.taskId === rootTaskId);
  const sessions = report.sessions && withSources(report.sessions, runner.replies);
  const next = report.next && withLater(runner.report.next ?? [], report.next);
  runner.report = { ...runner.report, ...report, ...(sessions && { sessions }), ...(next && { next }) };
}

/** Returns the next runs of all reports. A later report replaces runs with the same keys. */
function withLater(earlier: readonly NextRun[], later: readonly NextRun[]): readonly NextRun[] {
  return [...earlier.filter(({ key }) => !later.some((run) => run.key === key)), ...later];
}

/** J10: checks that a report is JSON, and that none of its values is too large. */
function assertReported(report: TaskReport, sizes: SizeLimit, isRoot: boolean): void {
  checkReport(report, isRoot);
  for (const member in report) {
    const value = report[member as keyof TaskReport];
    if (member === "sessions" || value === undefined) continue;
    const where = `the ${member} that the task reports`;
    if (typeof value === "string") {
      sizes.assert(value, where);
      continue;
    }
    if (isPromise(value)) throw refusedPromise(value, where);
    if (typeof value === "function") assertSynchronous(value, where);
    else {
      sealJson(value, where);
      sizes.assert(value, where);
    }
  }
  if (report.sessions !== undefined) assertEntries(report.sessions);
}

/**
 * Throws for an async function, because the runtime needs its result at the end of the task and cannot wait for it.
 */
function assertSynchronous(callback: object, where: string): void {
  if (Object.prototype.toString.call(callback) === "[object AsyncFunction]")
    throw new Fault("invalid_argument", `${where} is an async function: pass a synchronous one`);
}

/**
 * Checks reported session changes. Messages that are recorded replies and results are skipped, because they were
 * checked before.
 */
function assertEntries(changes: readonly SessionChange[]): void {
  for (const change of changes) {
    if (change.type === "append" && change.entry.type === "message" && isRecorded(change.entry.message))
      continue;
    if (change.type === "say" && change.batch.messages.every(isRecorded)) continue;
    assertMadeJson(change, "an entry that the task reports");
  }
}

/**
 * Adds to the messages that models wrote the model, the stop reason, the usage and the cost, so that their entries
 * contain these facts.
 */
function withSources(
  changes: readonly SessionChange[],
  replies: WeakMap<ChatMessage, LlmReply>,
): readonly SessionChange[] {
  return changes.map((change) => {
    if (change.type !== "say" || change.batch.sources !== undefined) return change;
    const sources = change.batch.messages.map((message) => replies.get(message) ?? null);
    if (sources.every((source) => source === null)) return change;
    return { ...change, batch: { ...change.batch, sources } };
  });
}

/** Whether a message is frozen and was therefore checked before. */
function isRecorded(message: ChatMessage): boolean {
  if (message.role !== "tool") return Object.isFrozen(message);
  for (const { output, providerMetadata } of message.content)
    if (providerMetadata !== undefined || !Object.isFrozen(output)) return false;
  return true;
}
