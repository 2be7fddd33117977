import { Fault } from "../../kernel/index.ts";

/** Returns a limit of an architecture. Throws unless the limit is an integer of at least `minimum`. */
export function requireCount(where: string, name: string, value: number, minimum = 1): number {
  if (Number.isSafeInteger(value) && value >= minimum) return value;
  throw new Fault(
    "invalid_argument",
    `${name} of ${where} is ${value}: it must be an integer from ${minimum}`,
  );
}

/** Returns a score option of an architecture. Throws unless the score is a number from 0 to 1. */
export function requireScore(where: string, name: string, value: number): number {
  if (value >= 0 && value <= 1) return value;
  throw new Fault("invalid_argument", `${name} of ${where} is ${value}: it must be a number from 0 to 1`);
}
