import type { JsonSchema, Runtime, SubmitOptions } from "../kernel/index.ts";

export interface InvokeOptions extends Omit<SubmitOptions, "streaming"> {
  /** Maximum time for the whole run in milliseconds; tightens the deadline of the budget. `null` sets no limit. */
  readonly timeoutMs?: number | null;
  /** The runtime that executes the run. Default: the default runtime of the package. */
  readonly runtime?: Runtime;
  /** A JSON Schema that the answer must match. */
  readonly output?: JsonSchema | undefined;
}
