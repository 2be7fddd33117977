import { expect } from "vitest";

/** Calls a function as a caller without types does. */
export type Untyped = (...args: readonly unknown[]) => unknown;

/** Matches the error about a misspelt option that names the right one. */
export function refusal(nearest: string): unknown {
  return expect.objectContaining({
    code: "invalid_argument",
    message: expect.stringMatching(new RegExp(`^unknown option ".+" of .+: use "${nearest}"$`, "u")),
  });
}
