import type { Event, JsonValue, LlmReply, StepRecord } from "../../../kernel/index.ts";
import { equalJson } from "./equal-json.ts";
import type { Reference, StoredEvent } from "./stored-commit.ts";

/** What an event repeats of a model call's reply. */
const replyMembers = ["message", "stopReason", "usage", "model"] as const;

/** The event's data without what a step holds; nothing when none does. */
export function referEvent(
  event: Event,
  steps: readonly StepRecord[],
): { readonly from: Reference; readonly data: object } | undefined {
  if (event.type === "tool_execution_end") {
    const { result, ...data } = event.data;
    const index = steps.findIndex(
      (step) => step.kind === "tool" && step.taskId === event.taskId && equalJson(valueOf(step), result),
    );
    return index < 0 ? undefined : { from: [index], data };
  }
  if (event.type !== "message_end") return undefined;
  const index = steps.findIndex(
    (step) =>
      step.kind === "llm" &&
      step.taskId === event.taskId &&
      equalJson(memberOf(step, "message"), event.data.message),
  );
  const step = steps[index];
  if (step === undefined) return undefined;
  const { message, stopReason, usage, model, ...rest } = event.data;
  const reply = valueOf(step) as Partial<LlmReply>;
  if (reply.stopReason === stopReason && reply.usage === usage && equalJson(reply.model, model)) {
    if (equalJson(reply.message, message)) return { from: [index, ...replyMembers], data: rest };
  }
  const members = replyMembers.filter(
    (member) => event.data[member] !== undefined && equalJson(memberOf(step, member), event.data[member]),
  );
  const data = Object.fromEntries(
    Object.entries(event.data).filter(([member]) => !(members as readonly string[]).includes(member)),
  );
  return { from: [index, ...members], data };
}

/** The data as it was, with its members perhaps in another order. */
export function restoreEvent({ type, data, from }: StoredEvent, steps: readonly StepRecord[]): object {
  if (from === undefined) return data;
  const [index, ...members] = from;
  const step = stepAt(steps, index);
  if (type === "tool_execution_end") return { ...data, result: valueOf(step) };
  return { ...Object.fromEntries(members.map((member) => [member, memberOf(step, member)])), ...data };
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
