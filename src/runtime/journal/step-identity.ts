import { digestOf, Fault, type Hash, type StepRecord } from "../../kernel/index.ts";

/** The identity of a step: its address, and the kind, name and digest that the code gives it. */
export interface StepIdentity extends Omit<StepRecord, "outcome" | "taskId"> {
  /** J9: former names of the step. */
  readonly formerNames?: readonly string[];
  /** Present if the body of the step only executes branches of the code, whose steps have their own records. */
  readonly hasBranches?: true;
}

/** J9: returns the identity with the former names that `formerly` gives. */
export function formerlyNamed(
  step: StepIdentity,
  formerly: string | readonly string[] | undefined,
): StepIdentity {
  if (formerly === undefined) return step;
  return { ...step, formerNames: typeof formerly === "string" ? [formerly] : formerly };
}

/** J4: returns a `journal_mismatch` fault if the record at the address of `step` belongs to another step. */
export function findMismatch(recorded: StepRecord, step: StepIdentity, hash: Hash): Fault | undefined {
  if (recorded.kind !== step.kind) return mismatch(step, "kind", recorded.kind, step.kind);
  if (recorded.name !== step.name && step.formerNames?.includes(recorded.name) !== true)
    return mismatch(step, "name", recorded.name, step.name);
  const before = digestOf(recorded, hash);
  const now = digestOf(step, hash);
  return before === now ? undefined : mismatch(step, `arguments of ${step.kind} ${step.name}`, before, now);
}

function mismatch({ address }: StepIdentity, field: string, recorded: string, now: string): Fault {
  return new Fault(
    "journal_mismatch",
    `step ${address} does not match its record in ${field}: recorded ${recorded}, now ${now}. The agent's code, files or input have changed since the run started, or its project has lost trust; resume the run with what started it, or run reeve trust`,
    { details: { address, field, recorded, now } },
  );
}
