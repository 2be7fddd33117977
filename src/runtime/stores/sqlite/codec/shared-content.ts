import type { Event, LlmReply, StepRecord } from "../../../../kernel/index.ts";
import { equalJson } from "./equal-json.ts";
import { contentOf, memberOf, messageOf, valueOf } from "./held-content.ts";
import { memberCount } from "./member-count.ts";
import { StepIndex } from "./step-index.ts";
import type { Reference } from "./stored-commit.ts";

/** What an event repeats of a model call's reply. */
const replyMembers = ["message", "stopReason", "usage", "model"] as const;

/** Up to so many steps it is looked at each. */
const few = 16;

/** The steps of a commit, and where to look in them for what an event repeats. */
export class SharedContent {
  readonly #steps: readonly StepRecord[];
  readonly #index: StepIndex | undefined;

  constructor(steps: readonly StepRecord[]) {
    this.#steps = steps;
    this.#index = steps.length > few ? new StepIndex(steps) : undefined;
  }

  /** Nothing when no step holds anything of the event. */
  referenceOf(event: Event): Reference | undefined {
    switch (event.type) {
      case "tool_execution_start":
        return referCall(event, this.#steps, this.#index?.find(event));
      case "tool_execution_end":
        return referResult(event, this.#steps, this.#index?.find(event));
      case "message_end":
        return referReply(event, this.#steps, this.#index?.find(event));
      default:
        return undefined;
    }
  }
}

/** What is left of the event's data. */
export function restOf({ type, data }: Event, [, ...members]: Reference): object | undefined {
  if (type === "tool_execution_start") return undefined;
  const held: readonly unknown[] =
    type === "tool_execution_end" ? ["result"] : members.length === 0 ? replyMembers : members;
  return Object.fromEntries(Object.entries(data).filter(([member]) => !held.includes(member)));
}

/** The data as it was, with its members perhaps in another order. */
export function restoreData(
  { type, data, from }: { readonly type: Event["type"]; readonly data?: object; readonly from: Reference },
  steps: readonly StepRecord[],
): object {
  const [index, ...members] = from;
  const step = steps[index];
  if (step === undefined) throw new SyntaxError(`it refers to step ${index}, which it does not hold`);
  if (type === "tool_execution_start") return callAt(step, members[0]);
  if (type === "tool_execution_end") return { ...data, result: valueOf(step) };
  const restored: Record<string, unknown> = {};
  for (const member of members.length === 0 ? replyMembers : members) {
    const value = memberOf(step, `${member}`);
    if (value !== undefined) restored[member] = value;
  }
  return Object.assign(restored, data);
}

/** To the part of a message that asks for the call. */
function referCall(
  { taskId, data }: Event<"tool_execution_start">,
  steps: readonly StepRecord[],
  only: number | undefined,
): Reference | undefined {
  if (memberCount(data) !== 3) return undefined;
  let place = -1;
  const index = findStep(steps, only, (step) => {
    if (step.kind !== "llm" || step.taskId !== taskId) return false;
    place = contentOf(step).findIndex(
      (part) =>
        part.type === "tool_call" &&
        part.callId === data.callId &&
        part.toolName === data.toolName &&
        equalJson(part.input, data.input),
    );
    return place >= 0;
  });
  return index < 0 ? undefined : [index, place];
}

/** -1: there is none. `only`: the one to look at, if it was found otherwise. */
function findStep(
  steps: readonly StepRecord[],
  only: number | undefined,
  isMeant: (step: StepRecord) => boolean,
): number {
  if (only === undefined) return steps.findIndex(isMeant);
  const step = steps[only];
  return step !== undefined && isMeant(step) ? only : -1;
}

function referResult(
  { taskId, data: { result } }: Event<"tool_execution_end">,
  steps: readonly StepRecord[],
  only: number | undefined,
): Reference | undefined {
  const index = findStep(
    steps,
    only,
    (step) => step.kind === "tool" && step.taskId === taskId && equalJson(valueOf(step), result),
  );
  return index < 0 ? undefined : [index];
}

function referReply(
  { taskId, data: whole }: Event<"message_end">,
  steps: readonly StepRecord[],
  only: number | undefined,
): Reference | undefined {
  const index = findStep(
    steps,
    only,
    (step) => step.kind === "llm" && step.taskId === taskId && equalJson(messageOf(step), whole.message),
  );
  const step = steps[index];
  if (step === undefined) return undefined;
  const { stopReason, usage, model } = valueOf(step) as Partial<LlmReply>;
  // Most often: the event was made of the reply.
  if (usage === whole.usage && stopReason === whole.stopReason && equalJson(model, whole.model))
    return [index];
  const members = replyMembers.filter(
    (member) => whole[member] !== undefined && equalJson(memberOf(step, member), whole[member]),
  );
  return [index, ...members];
}

function callAt(step: StepRecord, place: string | number | undefined): object {
  const part = typeof place === "number" ? contentOf(step)[place] : undefined;
  if (part?.type !== "tool_call")
    throw new SyntaxError(`it refers to call ${place} of a message that has none there`);
  const { callId, toolName, input } = part;
  return { callId, toolName, input };
}
