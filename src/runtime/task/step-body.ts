import { Fault, type TaskId } from "../../kernel/index.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import type { ActiveStep } from "./active-step.ts";

/**
 * The body of a step. Records that it adds synchronously when it returns are part of the commit with the step's
 * record.
 */
export type Body<Value, Step = StepIdentity> = (
  open: ActiveStep,
  step: Step,
) => Done<Value> | Promise<Done<Value>>;

/** The result of a step's body: its value, or a function that computes the value when the step is recorded. */
type Done<Value> = Value | (() => Value);

/** What runs in a scope: a step, or a call that consists of several. */
export type Call = StepIdentity | string;

/** Creates the fault for a call that starts after the code of its task has ended. */
export function lateCall(call: Call, taskId: TaskId): Fault {
  return new Fault(
    "closed",
    `${shown(call)} was called after task ${taskId} had ended; await all work before the agent or the tool returns`,
  );
}

/** J2: creates the fault for a call that starts while another call of its scope is in flight. */
export function ambiguous(call: Call, open: Call): Fault {
  return new Fault(
    "journal_ambiguous",
    `${shown(call)} was called while ${shown(open)} was in flight; await it first, or use ctx.parallel, ctx.map, ctx.tools, ctx.joinAll, ctx.race or ctx.any`,
  );
}

/**
 * J4: whether the error says that the journal does not match the code. If so, the task fails, and its code does not
 * receive the error.
 */
export function isMismatch(error: unknown): boolean {
  return Fault.is(error) && error.code === "journal_mismatch";
}

function shown(call: Call): string {
  return typeof call === "string" ? call : `${call.kind} ${call.name}`;
}
