import type { Failure } from "../base/fault.ts";
import type { Hash } from "../base/hash.ts";
import type { TaskId } from "../base/identity.ts";
import { assertJson } from "../base/json.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { StepAddress } from "./step-address.ts";

/** What kind of call a step journals. */
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
  | "value";

/** What a settled step left behind. J10: the value is JSON. J5: a fault delivered to code is recorded like a value. */
export type StepOutcome =
  | { readonly kind: "ok"; readonly value: JsonValue }
  | { readonly kind: "failed"; readonly failure: Failure };

/** J1, J10: of a value that was looked at, once, and cannot change any more. */
export function sealedOutcome(value: JsonValue): StepOutcome {
  return Object.freeze({ kind: "ok", value });
}

/**
 * J4: covers the step's name, arguments and transcript. What has one is asked on first need: a store that keeps no bytes
 * asks when a task is dropped or forked (F1).
 */
export type StepDigest = string | { digest(hash: Hash): string };

export interface StepRecord {
  readonly taskId: TaskId;
  readonly address: StepAddress;
  readonly kind: StepKind;
  readonly name: string;
  readonly digest: StepDigest;
  readonly outcome: StepOutcome;
}

/**
 * A step was begun, and the events that say so are told: whoever runs it again does not tell them again (E4). `seq` is that of the
 * last of them, which deltas refer to (E2).
 */
export interface StepOpening {
  readonly taskId: TaskId;
  readonly address: StepAddress;
  readonly seq: number;
}

/** J10, for stores. An outcome that is frozen was looked at by who made it. */
export function assertOutcome({ address, outcome }: Pick<StepRecord, "address" | "outcome">): void {
  if (outcome.kind === "ok" && !Object.isFrozen(outcome))
    assertJson(outcome.value, `the value of step ${address}`);
}

export function digestOf({ digest }: Pick<StepRecord, "digest">, hash: Hash): string {
  return typeof digest === "string" ? digest : digest.digest(hash);
}
