import type { IdSource } from "../kernel/index.ts";

/** Ids that count, so that a test can name them: `1`, `2`, or `a-1`, `a-2`. */
export function sequentialIds(prefix = ""): IdSource {
  let count = 0;
  return { next: () => `${prefix}${prefix === "" ? "" : "-"}${++count}` };
}
