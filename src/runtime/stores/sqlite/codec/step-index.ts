import type { Event, StepRecord } from "../../../../kernel/index.ts";
import { callsOf, messageOf, valueOf } from "./held-content.ts";

/** Which of many steps may hold what an event says, without a look at each: a fork's first commit has all there were. */
export class StepIndex {
  readonly #steps: readonly StepRecord[];
  /** Most often an event was made of what its step holds, and holds the very same. */
  readonly #bySame = new Map<unknown, number>();
  /** Made with the first that does not. */
  #byText: Map<string, number> | undefined;

  constructor(steps: readonly StepRecord[]) {
    this.#steps = steps;
    for (let index = steps.length - 1; index >= 0; index--) {
      const step = steps[index] as StepRecord;
      for (const { input } of callsOf(step)) if (typeof input === "object") this.#bySame.set(input, index);
      this.#bySame.set(heldBy(step), index);
    }
  }

  /** -1: none does. */
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

/** The first of equals. */
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
