import { Fault } from "../../kernel/index.ts";

/** A bound of an architecture: an integer from 1. */
export function requireCount(where: string, name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new Fault("invalid_argument", `${name} of ${where} is ${value}: it must be an integer from 1`);
}

/** A score an architecture goes by. */
export function requireScore(where: string, name: string, value: number): number {
  if (value >= 0 && value <= 1) return value;
  throw new Fault("invalid_argument", `${name} of ${where} is ${value}: it must be a number from 0 to 1`);
}
