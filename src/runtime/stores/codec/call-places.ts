import type { StepRecord, ToolCall } from "../../../kernel/index.ts";
import { equalJson } from "./equal-json.ts";
import { contentOf } from "./held-content.ts";

/** Maximum number of parts of a message that are searched one by one. A longer message gets an index, so that n calls cost O(n). */
const few = 16;

/** Finds tool calls in the messages of model calls. */
export class CallPlaces {
  /** By model call with many parts: the place of each tool call, by its JSON text. */
  #byStep: Map<StepRecord, ReadonlyMap<string, number>> | undefined;

  /** Returns the index of the part of the message that holds this tool call, or -1. Of equal calls, the first is found. */
  find(step: StepRecord, call: ToolCall): number {
    const content = contentOf(step);
    if (content.length > few) return this.#placesIn(step).get(textOf(call)) ?? -1;
    return content.findIndex(
      (part) =>
        part.type === "tool_call" &&
        part.callId === call.callId &&
        part.toolName === call.toolName &&
        equalJson(part.input, call.input),
    );
  }

  #placesIn(step: StepRecord): ReadonlyMap<string, number> {
    const known = this.#byStep?.get(step);
    if (known !== undefined) return known;
    const places = new Map<string, number>();
    for (const [place, part] of [...contentOf(step).entries()].toReversed())
      if (part.type === "tool_call") places.set(textOf(part), place);
    (this.#byStep ??= new Map()).set(step, places);
    return places;
  }
}

function textOf({ callId, toolName, input }: ToolCall): string {
  return JSON.stringify([callId, toolName, input]);
}
