import {
  Fault,
  reviveFault,
  sealedOutcome,
  sealJson,
  type JsonValue,
  type StepKind,
  type StepOutcome,
} from "../../kernel/index.ts";
import { isOutcome } from "../journal/recorded-faults.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import type { StepJournal } from "./step-journal.ts";
import type { SizeLimit } from "../process/size-limit.ts";

/**
 * Kinds of steps whose values need no size check. They consist of messages, signals and results whose sizes were
 * checked when they were sent.
 */
const received: ReadonlySet<StepKind> = new Set(["drain", "wait"]);

/**
 * Returns the outcome of a step for the journal. J10: throws for a value that is not JSON or is too large, before
 * it is recorded.
 */
export function outcomeOf({ kind, name }: StepIdentity, done: unknown, sizes: SizeLimit): StepOutcome {
  try {
    const value = settled(done) ?? null;
    // A tool's result was checked by its call, which reports problems to the model (T2). A turn was checked by its
    // creator, and a reply when its usage was settled.
    if (kind === "tool" || kind === "turn" || kind === "llm") return sealedOutcome(value as JsonValue);
    if (value === none) return noneOutcome;
    const where = `the value of ${kind} ${name}`;
    sealJson(value, where);
    if (kind === "step") sizes.assertBytes(value, where);
    else if (!received.has(kind)) sizes.assert(value, where);
    return sealedOutcome(value);
  } catch (error) {
    return failureOf(error);
  }
}

function settled(done: unknown): unknown {
  return typeof done === "function" ? (done as () => unknown)() : done;
}

/** The value of a step that found nothing. */
export const none: readonly never[] = Object.freeze([]);
export const noneOutcome: StepOutcome = Object.freeze({ kind: "ok", value: none });

/**
 * Returns the recorded failure of a step (J5). C2: a cancel is thrown and not recorded, because a replay is
 * cancelled again.
 */
export function failureOf(error: unknown): StepOutcome {
  const fault = Fault.from(error);
  if (!isOutcome(fault)) throw fault;
  return { kind: "failed", failure: fault.toJSON() };
}

/** Returns the value of a step for the code, converted by `as`. Throws the recorded fault of a failed step. */
export function valueOf<Given, Step extends StepIdentity = StepIdentity>(
  journal: Pick<StepJournal, "noteOrigins">,
  step: Step,
  outcome: StepOutcome,
  as?: (value: never, step: Step) => Given,
): Given {
  if (outcome.kind === "ok")
    return as === undefined ? (outcome.value as Given) : as(outcome.value as never, step);
  const fault = reviveFault(outcome.failure);
  journal.noteOrigins(fault, [step.address]);
  throw fault;
}
