import type { JsonSchema, Runtime, SubmitOptions } from "../kernel/index.ts";

export interface InvokeOptions extends Omit<SubmitOptions, "streaming"> {
  /** Of the whole run: tightens the deadline. `null`: it does not. */
  readonly timeoutMs?: number | null;
  /** Where it is to run; the default runtime unless told. */
  readonly runtime?: Runtime;
  /** The answer is to be JSON that fits. */
  readonly output?: JsonSchema | undefined;
}
