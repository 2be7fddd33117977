import type { ToolCallPart } from "./content.ts";

/** A call as the model asked for it. */
export type ToolCall = Omit<ToolCallPart, "type">;
