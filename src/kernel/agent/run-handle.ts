import type { ApprovalDecision } from "../run/approval.ts";
import type { Delta } from "../messages/delta.ts";
import type { Event } from "../events/event.ts";
import type { TailOptions } from "../stores/event-log.ts";
import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { TopUp } from "../limits/ledger.ts";
import type { Priority } from "../limits/priority.ts";
import type { RunResult } from "../run/run-result.ts";
import type { RunSnapshot } from "../limits/run-snapshot.ts";

/** A submitted run, from any process. Every order is a mail to its owner: durable when the promise resolves. */
export interface RunHandle {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  /** Of its root. */
  readonly agentId: AgentId;
  /** The same run, for orders in this name; it stands in the events they cause. */
  as(by: string): RunHandle;
  /** To its end; of one that ended and has orders to go on it shows more only once they are obeyed. C3: leaving the loop leaves the run alone. */
  events(options?: TailOptions): AsyncIterable<Event | Delta>;
  /** Of an agent of your own, `output` is what its `run` returned. */
  result(): Promise<RunResult<JsonValue>>;
  /** Seats and money as they stand in the store now, whoever drives the run. Costs O(commits of the run). */
  snapshot(): Promise<RunSnapshot>;
  cancel(reason?: string): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  topUp(add: Partial<TopUp>, taskId?: string): Promise<void>;
  reprioritize(taskId: string, priority: Priority): Promise<void>;
  /**
   * For the turn that comes next. What the run waits for now it goes on waiting for. S5: what it has not heard when it completes, or is told
   * after that, starts the next run of its agent in the session.
   */
  steer(input: JsonValue): Promise<void>;
  /** For when the run would otherwise be done; else as `steer`. */
  followUp(input: JsonValue): Promise<void>;
  /** Resolves a `waitForSignal` of a task; of the root unless told. */
  signal(name: string, value?: JsonValue, taskId?: string): Promise<void>;
  approve(approvalId: string, decision: ApprovalDecision): Promise<void>;
  /**
   * A new run that shares everything up to the event `at` (its seq), in a session of its own that is this run's as it was there: it sees nothing
   * that was said since, and says nothing in this run's. Forking again there under the same `runId` is forking once.
   */
  fork(options: { readonly at: number; readonly runId?: string }): Promise<RunHandle>;
}
