import type { Failure } from "../base/fault.ts";
import type { Hash } from "../base/hash.ts";
import type { TaskId } from "../base/identity.ts";
import { assertJson } from "../base/json.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { StepAddress } from "./step-address.ts";

/**
 * The kind of call that a step records. `abandon` is not a call: it records that a step ended without some of its
 * branches, whose signals and inputs return to their queues (W1).
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
  | "abandon"
  | "value";

/** The result of a settled step. J10: the value is JSON. J5: a fault that code received is recorded like a value. */
export type StepOutcome =
  | { readonly kind: "ok"; readonly value: JsonValue }
  | { readonly kind: "failed"; readonly failure: Failure };

/** Returns a frozen outcome for a value that was checked to be JSON (J10) and cannot change any more (J1). */
export function sealedOutcome(value: JsonValue): StepOutcome {
  return Object.freeze({ kind: "ok", value });
}

/**
 * J4: digest of the step's name, arguments and transcript: a string, or an object that computes it on first need. F1: a
 * store in memory needs a digest only when a task is dropped or forked.
 */
export type StepDigest = string | { digest(hash: Hash): string };

/** The journal record of a settled step. */
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
  /** Digest of the model and of the request. The count holds for no other request. */
  readonly digest: string;
  /** Number of input tokens. */
  readonly tokens: number;
}

/**
 * J10: throws `not_json` unless the outcome's value is JSON. Stores call it. A frozen outcome was checked by its
 * creator.
 */
export function assertOutcome({ address, outcome }: Pick<StepRecord, "address" | "outcome">): void {
  if (outcome.kind === "ok" && !Object.isFrozen(outcome))
    assertJson(outcome.value, `the value of step ${address}`);
}

/** Returns the digest of a step, computed with `hash` if it is not a string yet. */
export function digestOf({ digest }: Pick<StepRecord, "digest">, hash: Hash): string {
  return typeof digest === "string" ? digest : digest.digest(hash);
}
