import type { JsonValue } from "../base/json-value.ts";
import { eventSources, type EventSource } from "../events/event-source.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { ToolResult } from "../messages/tool-call.ts";
import type { ForeignCallView } from "../run/approval.ts";

/** The program that the body of `ctx.attempt` runs. */
export interface ProgramOptions {
  /** Name of the program. A remembered approval applies only to the program with this name. */
  readonly name: string;
  /** Description of how the program reports what it does. The events of the program are marked with it. */
  readonly source: EventSource;
  /**
   * How long the run stays in memory, and the program alive, while the program only waits for people, in
   * milliseconds. When this time has passed, the attempt ends and its questions stay open. The first answer starts
   * the next attempt. Default: 3_600_000.
   */
  readonly idleMs?: number;
  /**
   * L21: whether the program leaves something on this machine that later attempts need, such as files or a
   * conversation. If `true`, only workers of this machine claim the run from the first attempt on. Default:
   * `false`.
   */
  readonly staysOnHost?: boolean;
}

export const programTable = optionTable({
  name: is.text({ required: true }),
  source: is.choice(eventSources, { required: true }),
  idleMs: is.integer({ from: 0, default: 3_600_000 }),
  staysOnHost: is.boolean({ default: false }),
} satisfies OptionKinds<ProgramOptions>);

/** A call that a program wants to make with one of its own tools, which are not tools of the agent. */
export interface ForeignCall {
  /** Id of the call, as the program gives it. */
  readonly callId: string;
  /** Name of the tool, as the program gives it. */
  readonly toolName: string;
  /** Arguments of the call. `null` if the program does not report them. */
  readonly input: JsonValue;
  /** What the program tells a person about the call. Absent if it tells nothing. */
  readonly view?: ForeignCallView;
}

/** Options of `attempt.permit`. */
export interface PermitOptions {
  /**
   * H2: how long a question may wait while the task has no seat or the run is paused, in milliseconds. The limit
   * counts before the question is asked and after it was answered. After it `permit` fails with `seat_lost`, and
   * the answer applies when the next attempt asks about the same call. If absent, the question waits until the task
   * is recalled. A question that a person has been asked waits for its answer as long as the attempt lives.
   */
  readonly seatWaitMs?: number;
}

export const permitTable = optionTable({
  seatWaitMs: is.integer({ from: 0 }),
} satisfies OptionKinds<PermitOptions>);

/** The decision on a call that a program wants to make. `reason` says which person or which check refused the call. */
export type ForeignVerdict =
  | { readonly decision: "approved" }
  | { readonly decision: "refused"; readonly reason: string };

/** A report of a program about what it says or does. */
export type ForeignReport =
  /** The next piece of the message that the program is writing. */
  | { readonly type: "text" | "reasoning"; readonly text: string }
  /** The message is complete. If no piece of it was reported before, this report has no effect. */
  | { readonly type: "message_end" }
  /** A tool call has started. */
  | ({ readonly type: "call_start" } & ForeignCall)
  /** A tool call has made progress. Readers see the update; it is not stored. */
  | { readonly type: "call_update"; readonly callId: string; readonly update: JsonValue }
  /** A tool call has ended. */
  | {
      readonly type: "call_end";
      readonly callId: string;
      readonly toolName: string;
      readonly result: ToolResult;
      readonly durationMs: number;
      readonly status: "ok" | "error" | "denied";
      /**
       * What the program has reported about its call since `call_start`. It contains only the fields that have
       * changed.
       */
      readonly view?: ForeignCallView;
    };

/** What earlier attempts of the same `ctx.attempt` step left behind. */
export interface EarlierAttempts {
  /** Values that earlier attempts stored with `keep`, oldest first. */
  readonly kept: readonly JsonValue[];
  /** The steering that earlier attempts read. It is not delivered again. */
  readonly steering: readonly JsonValue[];
  /** The follow-ups that earlier attempts read. They are not delivered again. */
  readonly followUps: readonly JsonValue[];
}

/** The part of an attempt that connects a program to the run. */
export interface ProgramContext {
  /** What earlier attempts of this step left behind. */
  readonly earlier: EarlierAttempts;
  /** Stores a value that later attempts of this step find in `earlier.kept`. It is durable when the promise resolves. */
  keep(value: JsonValue): Promise<void>;
  /** Resolves when steering waits for the task. Never settles after the end of the attempt. */
  whenSteered(): Promise<void>;
  /** Returns the steering that waits for the task, oldest first, and marks it as read. Empty if no steering waits. */
  steering(): Promise<readonly JsonValue[]>;
  /**
   * Returns the follow-ups that wait for the task, oldest first, and marks them as read. Empty if none waits. Call
   * it when the program would otherwise end.
   */
  followUps(): Promise<readonly JsonValue[]>;
  /**
   * Asks whether the program may make a call with one of its own tools. The agent's permissions, remembered
   * approvals, hooks and guardrails decide, as for a call of an agent's tool that is `critical`. A person is asked
   * with the kind `foreign_tool_call`. Only for an attempt with a `program`.
   */
  permit(call: ForeignCall, options?: PermitOptions): Promise<ForeignVerdict>;
  /** Writes what the program says or does to the log, marked with its `source`. Only for an attempt with a `program`. */
  tell(report: ForeignReport): void;
}
