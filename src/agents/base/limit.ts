import { Fault } from "../../kernel/index.ts";

/** Checks that an option is an integer of at least `minimum`. */
export function requireLimit(option: string, value: number, minimum: number): number {
  if (Number.isSafeInteger(value) && value >= minimum) return value;
  throw new Fault("invalid_argument", `invalid ${option} ${value}: expected an integer from ${minimum}`);
}
