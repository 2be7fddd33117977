import type { Event, JsonValue, LlmReply, StepRecord } from "../../../kernel/index.ts";
import { equalJson } from "./equal-json.ts";
import type { Reference, StoredEvent } from "./stored-commit.ts";

/** What an event repeats of a model call's reply. */
const replyMembers = ["message", "stopReason", "usage", "model"] as const;

/** Set to nothing, a member is not in the text, and the copy costs less than one without it. */
const absent = { message: undefined, stopReason: undefined, usage: undefined, model: undefined };

interface Referred {
  readonly from: Reference;
  /** What is left of the event's data. */
  readonly data?: object;
}

/** The event's data without what a step holds; nothing when none does. */
export function referEvent(event: Event, steps: readonly StepRecord[]): Referred | undefined {
  if (steps.length === 0) return undefined;
  switch (event.type) {
    case "tool_execution_start":
      return referCall(event, steps);
    case "tool_execution_end":
      return referResult(event, steps);
    case "message_end":
      return referReply(event, steps);
    default:
      return undefined;
  }
}

/** To the part of a message that asks for the call. */
function referCall(
  { taskId, data }: Event<"tool_execution_start">,
  steps: readonly StepRecord[],
): Referred | undefined {
  for (const [index, step] of steps.entries()) {
    if (step.kind !== "llm" || step.taskId !== taskId) continue;
    const place = contentOf(step).findIndex((part) => equalJson(callOf(part), data));
    if (place >= 0) return { from: [index, place] };
  }
  return undefined;
}

function referResult(
  { taskId, data: whole }: Event<"tool_execution_end">,
  steps: readonly StepRecord[],
): Referred | undefined {
  const { result } = whole;
  const index = steps.findIndex(
    (step) => step.kind === "tool" && step.taskId === taskId && equalJson(valueOf(step), result),
  );
  return index < 0 ? undefined : { from: [index], data: { ...whole, result: undefined } };
}

function referReply(
  { taskId, data: whole }: Event<"message_end">,
  steps: readonly StepRecord[],
): Referred | undefined {
  const index = steps.findIndex(
    (step) =>
      step.kind === "llm" && step.taskId === taskId && equalJson(memberOf(step, "message"), whole.message),
  );
  const step = steps[index];
  if (step === undefined) return undefined;
  const { stopReason, usage, model } = whole;
  const reply = valueOf(step) as Partial<LlmReply>;
  if (reply.stopReason === stopReason && reply.usage === usage && equalJson(reply.model, model))
    return { from: [index], data: { ...whole, ...absent } };
  const members = replyMembers.filter(
    (member) => whole[member] !== undefined && equalJson(memberOf(step, member), whole[member]),
  );
  const data = Object.fromEntries(
    Object.entries(whole).filter(([member]) => !(members as readonly string[]).includes(member)),
  );
  return { from: [index, ...members], data };
}

/** The data as it was, with its members perhaps in another order. */
export function restoreEvent({ type, data = {}, from }: StoredEvent, steps: readonly StepRecord[]): object {
  if (from === undefined) return data;
  const [index, ...members] = from;
  const step = stepAt(steps, index);
  if (type === "tool_execution_start") return callAt(step, members[0]);
  if (type === "tool_execution_end") return { ...data, result: valueOf(step) };
  const restored: Record<string, unknown> = {};
  for (const member of members.length === 0 ? replyMembers : members) {
    const value = memberOf(step, `${member}`);
    if (value !== undefined) restored[member] = value;
  }
  return Object.assign(restored, data);
}

type Part = LlmReply["message"]["content"][number];

function contentOf(step: StepRecord): readonly Part[] {
  return (memberOf(step, "message") as LlmReply["message"] | undefined)?.content ?? [];
}

function callOf(part: Part): object | undefined {
  if (part.type !== "tool_call") return undefined;
  const { callId, toolName, input } = part;
  return { callId, toolName, input };
}

function callAt(step: StepRecord, place: string | number | undefined): object {
  const part = typeof place === "number" ? contentOf(step)[place] : undefined;
  const call = part && callOf(part);
  if (call === undefined)
    throw new SyntaxError(`it refers to call ${place} of a message that has none there`);
  return call;
}

function stepAt(steps: readonly StepRecord[], index: number): StepRecord {
  const step = steps[index];
  if (step === undefined) throw new SyntaxError(`it refers to step ${index}, which it does not hold`);
  return step;
}

function valueOf({ outcome }: StepRecord): JsonValue | undefined {
  return outcome.kind === "ok" ? outcome.value : undefined;
}

function memberOf(step: StepRecord, member: string): unknown {
  const value = valueOf(step);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[member];
}
