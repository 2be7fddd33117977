import type { ToolOutput } from "./content.ts";
import type { JsonObject } from "../base/json-value.ts";

/** The result of a tool call. */
export interface ToolResult {
  /** What the model sees. */
  readonly output: ToolOutput;
  /** Whether the call failed. */
  readonly isError: boolean;
  /** Data that is stored with the event. The model does not see it. */
  readonly metadata?: JsonObject;
  /**
   * Requests that the loop ends without another model call. `true` has an effect only if all calls of the batch request
   * it. `"always"` ends the loop in any case; the other calls of the batch are executed first. `"answer"` ends it like
   * `"always"`, and the output of the first such result is the answer.
   */
  readonly terminate?: boolean | "always" | "answer";
}
