import { Fault } from "../../../kernel/index.ts";

/** Parses the value of an option that must be a positive integer. */
export function positiveInteger(option: string, text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Fault("invalid_argument", `invalid ${option} ${text}: expected an integer from 1`);
}

/** Reads an option that is a port. */
export function portOption(text: string, option = "--port"): number {
  const port = /^\d{1,5}$/u.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new Fault("invalid_argument", `invalid ${option} ${text}: expected an integer from 0 to 65535`);
}
