import type { ApprovalDecision, PersonQuestion } from "./approval.ts";
import type { Duration } from "../base/duration.ts";
import type { JsonValue } from "../base/json-value.ts";
import type {
  ReceivedUpdate,
  UpdateReply,
  WaitForPromiseOptions,
  WaitForSignalOptions,
  WaitForUpdateOptions,
} from "./run-messages.ts";

/** The durable waits of `RunContext`. A wait survives restarts, and the run may be dropped from memory meanwhile. */
export interface WaitContext {
  /**
   * Waits for a duration (milliseconds, or a text such as `2 hours`), or until a date. The wait survives restarts, and
   * the run may be dropped from memory meanwhile. The end is journaled at the first call.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   *
   * async function waitOneDay(ctx: RunContext): Promise<void> {
   *   await ctx.sleep("1 day");
   * }
   * ```
   */
  sleep(time: Duration | Date): Promise<void>;
  /**
   * Waits until a time, in epoch milliseconds. The time of the first call is journaled: a replay waits for that time,
   * even if the code passes a later one.
   */
  sleepUntil(atMs: number): Promise<void>;
  /**
   * Waits for a signal sent with `RunHandle.signal` and returns its value, or `undefined` after the timeout. A signal
   * that arrives early is kept. Each signal is consumed by one wait. J5: if `accept` throws, its error is the record of the
   * wait, which a resumed run repeats: it waits for the next signal.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   *
   * async function isPaid(ctx: RunContext): Promise<boolean> {
   *   const payment = await ctx.waitForSignal("payment", { timeoutMs: 3_600_000 });
   *   return payment !== undefined;
   * }
   * ```
   */
  waitForSignal(name: string, options?: WaitForSignalOptions): Promise<JsonValue | undefined>;
  /**
   * Waits for an update that a caller sent with `RunHandle.update`, or returns `undefined` after the timeout. An update that
   * arrives early is kept. `accept` checks it before it is accepted; the wait continues after a refused one. Answer an
   * accepted update with `answerUpdate`.
   */
  waitForUpdate(name: string, options?: WaitForUpdateOptions): Promise<ReceivedUpdate | undefined>;
  /** Answers an update. The reply is part of the commit that records this call, so that an update has one reply. */
  answerUpdate(name: string, update: ReceivedUpdate, reply: UpdateReply): Promise<void>;
  /** Returns the id of a new promise, which any run or process may settle. The same on every replay. Not a journaled call. */
  newPromise(): string;
  /**
   * Waits until a promise of this task is settled, also before this call. Returns its value, or throws its error. J5: if the
   * error of the promise, or the one of `accept`, ended the run, a resumed run waits again, and the promise may be settled
   * again.
   */
  waitForPromise(id: string, options?: WaitForPromiseOptions): Promise<JsonValue>;
  /**
   * Asks a person and waits durably until `RunHandle.approve` answers. The task's clock stops meanwhile (H5). The
   * caller defines what `approved` means; `input` of the decision, if present, is the answer.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   *
   * async function mayPublish(ctx: RunContext, draft: string): Promise<boolean> {
   *   const { decision } = await ctx.approval({
   *     toolName: "publish",
   *     callId: "publish-1",
   *     input: { draft },
   *     reason: "Publishing needs an editor's approval.",
   *   });
   *   return decision === "approved";
   * }
   * ```
   */
  approval(question: PersonQuestion): Promise<ApprovalDecision>;
}
