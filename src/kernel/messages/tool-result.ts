import type { ToolOutput } from "./content.ts";
import type { JsonObject } from "../base/json-value.ts";

export interface ToolResult {
  readonly output: ToolOutput;
  readonly isError: boolean;
  /** Kept with the event, not shown to the model. */
  readonly metadata?: JsonObject;
  /**
   * Asks the loop to end without another model call. `true`: it does when every call of the batch asks. `"always"`: whatever else was
   * called beside it, which is done, but not gone on with.
   */
  readonly terminate?: boolean | "always";
}
