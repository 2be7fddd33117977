import {
  rootTaskId as root,
  type HostedAgent,
  type NextRun,
  type StepAddress,
  type TaskOutcome,
  type TaskReport,
} from "../../kernel/index.ts";
import {
  answersOf,
  endChange,
  endEvents,
  historyToErase,
  runEnd,
  sessionChangesAtEnd,
  withTimeUsed,
} from "../journal/task-end.ts";
import { endMails } from "../journal/run-calls.ts";
import type { TaskState } from "../journal/task-state.ts";
import type { DeliveryCounts } from "./delivery-counts.ts";
import { nextRunEvents, submitNext, type EndedRun } from "./next-runs.ts";
import type { RunLedger } from "./run-ledger.ts";
import { carryOver, reportUnread } from "./unread-input.ts";

/** A run whose tasks end, with everything that their ends change. */
export interface EndingRun extends EndedRun {
  readonly ledger: RunLedger;
  readonly deliveries: DeliveryCounts;
}

/** How a task ended. */
export interface TaskEnd {
  readonly outcome: TaskOutcome;
  readonly endedOn: readonly StepAddress[];
  /** The runs that the end of a root submits. */
  readonly next: readonly NextRun[];
  readonly report: TaskReport;
  /** The agent of the task. `undefined` if this process does not host it. */
  readonly agent: HostedAgent | undefined;
  /** Epoch milliseconds. */
  readonly at: number;
}

/**
 * Adds the end of a task to the next commit: its session entries, its outcome, the changes for its messages, and
 * its last events.
 */
export function recordTaskEnd(run: EndingRun, task: TaskState, end: TaskEnd): void {
  const { log, state, ledger, deliveries } = run;
  const { taskId } = task.record;
  const { endedOn, next, report, agent, at } = end;
  const outcome = withTimeUsed(end.outcome, task, at);
  if (taskId !== root) reportUnread(run, taskId, outcome);
  for (const draft of nextRunEvents(run, next)) log.emit(taskId, draft, at, task);
  const sessions = sessionChangesAtEnd(task, outcome, report, state, { at, agent });
  const tasks = [endChange(taskId, { outcome, endedOn, next })];
  log.add(sessions.length === 0 ? { tasks } : { tasks, sessions }, at);
  const answers = answersOf(task, outcome, log.lease.runId, at);
  for (const change of answers?.inbox ?? [])
    if (change.type === "nack")
      for (const draft of deliveries.deadLetterEvents(change.messageIds)) log.emit(taskId, draft);
  ledger.loseAll(taskId);
  for (const draft of endEvents(task, outcome)) log.emit(taskId, draft, at, task);
  if (answers !== undefined) log.add(answers, at);
}

/**
 * Adds the end of the run to the next commit: the next runs, the mail to its callers, what retention erases, and
 * `run_end`.
 */
export function recordRunEnd(run: EndedRun, at: number | undefined): void {
  const { log, state, worker } = run;
  // Before the unread input: a compaction needs an idle session, and the input follows it.
  submitNext(run);
  carryOver(run);
  const mail = endMails(state, log.lease.runId, at ?? worker.clock.now());
  if (mail.length > 0) log.add({ mail }, at);
  const erasures = historyToErase(state);
  if (erasures !== undefined) log.add(erasures, at);
  log.emit(root, runEnd(state), at);
}
