import { type Failure, Fault } from "../base/fault.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import { assertJson } from "../base/json.ts";
import type { Hash } from "../base/sources.ts";
import type { AssistantMessage } from "../messages/chat-message.ts";
import type { ToolOutput } from "../messages/content.ts";
import type { StopReason } from "../messages/llm-reply.ts";
import type { Usage } from "../messages/usage.ts";

declare const brand: unique symbol;

/**
 * J2: position of a step in its task's journal. It consists of indexes and branch names from the task to the step,
 * joined by `/`. The third step of a task has the address `2`; if that step is a model call, its first tool call
 * has `2/0`; the fourth step of the branch `left` of the `parallel` at 5 has `5/left/3`. No address contains a
 * version.
 */
export type StepAddress = string & { readonly [brand]: "StepAddress" };

/**
 * Prefix of the addresses of the steps of a task, a branch or a tool's body. The scope of the task itself is empty.
 */
export type StepScope = StepAddress | "";

const branchName = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

/** Returns the address of the step with this index, from 0, in a scope. */
export function stepAt(scope: StepScope, index: number): StepAddress {
  if (!Number.isSafeInteger(index) || index < 0) {
    throw new Fault("invalid_argument", `invalid step index ${index}: use an integer from 0`);
  }
  return (scope === "" ? `${index}` : `${scope}/${index}`) as StepAddress;
}

/**
 * Returns the scope of a named branch of the step at `address`. A name never starts with a digit, so a branch and a
 * step cannot have the same address.
 */
export function branchScope(address: StepAddress, name: string): StepScope {
  if (!branchName.test(name)) {
    throw new Fault(
      "invalid_argument",
      `invalid branch name ${JSON.stringify(name)}: use 1 to 64 letters, digits, and _ . -, starting with a letter or _`,
    );
  }
  return `${address}/${name}` as StepAddress;
}

/**
 * The kind of call that a step records. `compensate` records that the code has registered a compensation. `abandon`
 * records that a step ended without some of its branches: their signals and inputs return to their queues (W1), and
 * their children are cancelled (C1).
 */
export type StepKind =
  | "turn"
  | "llm"
  | "gate"
  | "approval"
  | "tool"
  | "step"
  | "spawn"
  | "wait"
  | "send"
  | "drain"
  | "compaction"
  | "race"
  | "compensate"
  | "abandon"
  | "value";

/**
 * The result of a settled step. J10: the value is JSON. J5: a fault that the code received is recorded like a
 * value.
 */
export type StepOutcome =
  | { readonly kind: "ok"; readonly value: JsonValue }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Returns a frozen outcome for a value that was already checked to be JSON (J10) and is frozen (J1). */
export function sealedOutcome(value: JsonValue): StepOutcome {
  return Object.freeze({ kind: "ok", value });
}

/**
 * J4: digest of the step's name, arguments and transcript, but not of times such as `timeoutMs`. It is a string, or
 * an object that computes it when it is first needed. F1: a memory store needs a digest only when a task is dropped
 * or forked.
 */
export type StepDigest = string | { digest(hash: Hash): string };

/** The journal record of a settled step. @advanced */
export interface StepRecord {
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Address of the step in the task's journal. */
  readonly address: StepAddress;
  /** Kind of the recorded call. */
  readonly kind: StepKind;
  /** Name of the step. */
  readonly name: string;
  /** Digest that a replay compares (J4). */
  readonly digest: StepDigest;
  /** Result of the step. */
  readonly outcome: StepOutcome;
}

/**
 * Records that a step has started and its start events are in the log. E4: a worker that runs the step again does not
 * emit them again.
 */
export interface StepOpening {
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Address of the step in the task's journal. */
  readonly address: StepAddress;
  /** Sequence number of the last start event. Deltas of the step refer to it (E2). */
  readonly seq: number;
}

/** B1: the input tokens that a model counted for the request of a step that has begun. */
export interface TokenCount {
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Address of the step in the task's journal. */
  readonly address: StepAddress;
  /** Digest of the model and of the request. The count is valid only for this request. */
  readonly digest: string;
  /** Number of input tokens. */
  readonly tokens: number;
}

/**
 * J10: throws `not_json` if the outcome's value is not JSON. Stores call it. It skips a frozen outcome, because its
 * creator has checked it.
 */
export function assertOutcome({ address, outcome }: Pick<StepRecord, "address" | "outcome">): void {
  if (outcome.kind === "ok" && !Object.isFrozen(outcome))
    assertJson(outcome.value, `the value of step ${address}`);
}

/** Returns the digest of a step, computed with `hash` if it is not a string yet. @advanced */
export function digestOf({ digest }: Pick<StepRecord, "digest">, hash: Hash): string {
  return typeof digest === "string" ? digest : digest.digest(hash);
}

/** A tool call of a run and its result. */
export interface RunToolCall {
  /** Id that the provider gave the call. */
  readonly callId: string;
  /** Name of the called tool. */
  readonly toolName: string;
  /** Arguments with which the tool was executed. If it was not executed, the arguments as the model sent them. */
  readonly input: JsonValue;
  /** The result as the model saw it. `null` if the call has no result. */
  readonly output: ToolOutput | null;
  /** Outcome of the call. `denied`: a rule or a person denied it. `open`: the run ended before the call had a result. */
  readonly status: "ok" | "error" | "denied" | "open";
  /** Duration of the execution, in milliseconds. */
  readonly durationMs: number;
}

/** One model call of a run, with the tool calls that the model made in it. */
export interface RunStep {
  /** The task that made the call. */
  readonly taskId: TaskId;
  /** The agent that made the call. */
  readonly agentId: AgentId;
  /** Role whose model was called: `main` for the agent's own turns, or a supporting role such as `planner`. */
  readonly role: string;
  /** The model's message. */
  readonly message: AssistantMessage;
  /** Text of the message. */
  readonly text: string;
  /** Reasoning of the message. Empty if the provider returned none. */
  readonly reasoning: string;
  /** The tool calls of the message, with their results. */
  readonly toolCalls: readonly RunToolCall[];
  /** Why the model stopped. `null` if unknown. */
  readonly stopReason: StopReason | null;
  /** Usage and cost of the call. `null` if unknown. */
  readonly usage: Usage | null;
  /** The model that answered. `null` if unknown. */
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  /** Duration of the call, in milliseconds. */
  readonly durationMs: number;
}
