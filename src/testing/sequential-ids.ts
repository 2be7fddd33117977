import type { IdSource } from "../kernel/index.ts";

/**
 * Returns a source of predictable ids that count up, so that a test can name them: `1`, `2`, or with a prefix `a-1`,
 * `a-2`.
 */
export function sequentialIds(prefix = ""): IdSource {
  let count = 0;
  return { next: () => `${prefix}${prefix === "" ? "" : "-"}${++count}` };
}
