import type { Event, StepRecord } from "../../../kernel/index.ts";
import { callsOf, messageOf, valueOf } from "./held-content.ts";

/**
 * Finds the step that may contain an event's content without a search through all steps. This matters for the first
 * commit of a fork, which contains all shared steps of the original run.
 */
export class StepIndex {
  readonly #steps: readonly StepRecord[];
  /** Steps by the object that they contain. Most events contain the same object as their step. */
  readonly #bySame = new Map<unknown, number>();
  /** Steps by the JSON text of their content. Created when an event contains an object that no step contains. */
  #byText: Map<string, number> | undefined;

  constructor(steps: readonly StepRecord[]) {
    this.#steps = steps;
    for (let index = steps.length - 1; index >= 0; index--) {
      const step = steps[index] as StepRecord;
      for (const { input } of callsOf(step)) if (typeof input === "object") this.#bySame.set(input, index);
      this.#bySame.set(heldBy(step), index);
    }
  }

  /** Returns the index of the step that contains the event's content, or -1. */
  find(event: Event<"tool_execution_start" | "tool_execution_end" | "message_end">): number {
    const { taskId } = event;
    switch (event.type) {
      case "tool_execution_start":
        return this.#find(event.data.input, "call", taskId, event.data);
      case "tool_execution_end":
        return this.#find(event.data.result, "tool", taskId, event.data.result);
      case "message_end":
        return this.#find(event.data.message, "llm", taskId, event.data.message);
    }
  }

  #find(same: unknown, kind: string, taskId: string, content: unknown): number {
    const known = typeof same === "object" && same !== null ? this.#bySame.get(same) : undefined;
    if (known !== undefined && this.#steps[known]?.taskId === taskId) return known;
    return (this.#byText ??= textsOf(this.#steps)).get(textOf(kind, taskId, content)) ?? -1;
  }
}

/** Maps JSON texts to step indexes. If several steps have the same text, the index of the first one is used. */
function textsOf(steps: readonly StepRecord[]): Map<string, number> {
  const texts = new Map<string, number>();
  for (let index = steps.length - 1; index >= 0; index--) {
    const step = steps[index] as StepRecord;
    const { kind, taskId } = step;
    for (const { callId, toolName, input } of callsOf(step))
      texts.set(textOf("call", taskId, { callId, toolName, input }), index);
    const held = heldBy(step);
    if (held !== undefined) texts.set(textOf(kind, taskId, held), index);
  }
  return texts;
}

function heldBy(step: StepRecord): unknown {
  if (step.kind === "tool") return valueOf(step);
  return step.kind === "llm" ? messageOf(step) : undefined;
}

function textOf(kind: string, taskId: string, content: unknown): string {
  return `${kind} ${taskId} ${JSON.stringify(content)}`;
}
