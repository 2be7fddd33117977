import { Fault } from "../../kernel/index.ts";

/** A whole number from `minimum` on, or a fault that names the option. */
export function requireLimit(option: string, value: number, minimum: number): number {
  if (Number.isSafeInteger(value) && value >= minimum) return value;
  throw new Fault("invalid_argument", `${option} is ${value}: it must be a whole number from ${minimum} on`);
}
