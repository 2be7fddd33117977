import { Fault } from "../../kernel/index.ts";

/** Checks that an option is a number of at least `least`. */
export function atLeast(option: string, value: number, least: number): number {
  if (value >= least) return value;
  throw new Fault("invalid_argument", `invalid ${option} ${value}: expected a number of at least ${least}`);
}
