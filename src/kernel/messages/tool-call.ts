import type { ToolCallPart } from "./content.ts";

/** A tool call as the model made it. */
export type ToolCall = Omit<ToolCallPart, "type">;
