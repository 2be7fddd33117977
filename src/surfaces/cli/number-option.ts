import { Fault } from "../../kernel/index.ts";

/** Reads an option that is a positive integer. */
export function positiveInteger(option: string, text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Fault("invalid_argument", `invalid ${option} ${text}: expected an integer from 1`);
}
