import { Fault } from "../../kernel/index.ts";

/** An option that must be a number of at least `least`. */
export function atLeast(option: string, value: number, least: number): number {
  if (value >= least) return value;
  throw new Fault("invalid_argument", `${option} is ${value}: it must be a number of at least ${least}`);
}
