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

/** The durable waits of `RunContext`. A wait survives restarts. While it lasts, the run may be dropped from memory. */
export interface WaitContext {
  /**
   * Waits for a duration (milliseconds, or a text such as `2 hours`), or until a date. The wait survives restarts,
   * because the first call records its end. While it lasts, the run may be dropped from memory.
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
   * Waits until a time, in epoch milliseconds. The first call records this time, and a replay waits for it, even if
   * the code passes another one.
   */
  sleepUntil(atMs: number): Promise<void>;
  /**
   * Waits for a signal sent with `RunHandle.signal` and returns its value, or `undefined` after the timeout. A
   * signal that arrives before the call is kept. Each signal is consumed by one wait. J5: if `accept` throws, the
   * wait fails with its error. If this ends the run, a resumed run repeats the wait and takes the next signal.
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
   * Waits for an update that a caller sent with `RunHandle.update`, or returns `undefined` after the timeout. An
   * update that arrives before the call is kept. `accept` can refuse an update; the wait then continues. Reply to
   * the returned update with `answerUpdate`.
   */
  waitForUpdate(name: string, options?: WaitForUpdateOptions): Promise<ReceivedUpdate | undefined>;
  /**
   * Replies to an update. The reply is part of the commit that records this call, so that each update has only one
   * reply.
   */
  answerUpdate(name: string, update: ReceivedUpdate, reply: UpdateReply): Promise<void>;
  /**
   * Returns the id of a new promise, which any run or process may settle. The id is the same on every replay. The
   * call is not journaled.
   */
  newPromise(): string;
  /**
   * Waits until a promise of this task is settled, and returns its value or throws its error. A promise that is
   * already settled ends the wait at once. J5: if the error of the promise or of `accept` ended the run, a resumed
   * run waits again, and the promise may be settled again.
   */
  waitForPromise(id: string, options?: WaitForPromiseOptions): Promise<JsonValue>;
  /**
   * Asks a person and waits durably until `RunHandle.approve` answers. The time in which it waits does not count
   * for the task's deadline (H5). The caller defines what `approved` means; `input` of the decision, if present, is
   * the answer.
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
