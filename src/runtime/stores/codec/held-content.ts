import type { JsonValue, LlmReply, StepRecord } from "../../../kernel/index.ts";

type Part = LlmReply["message"]["content"][number];
type Call = Extract<Part, { readonly type: "tool_call" }>;

const nothing: readonly never[] = [];

/** Returns the value of a step that succeeded. `undefined` for a step that failed. */
export function valueOf({ outcome }: StepRecord): JsonValue | undefined {
  return outcome.kind === "ok" ? outcome.value : undefined;
}

export function memberOf(step: StepRecord, member: string): unknown {
  const value = valueOf(step);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[member];
}

/** Returns the message in the reply of a model call. */
export function messageOf(step: StepRecord): LlmReply["message"] | undefined {
  return memberOf(step, "message") as LlmReply["message"] | undefined;
}

export function contentOf(step: StepRecord): readonly Part[] {
  return messageOf(step)?.content ?? nothing;
}

/** Returns the tool calls in the reply of a model call. Empty for steps of other kinds. */
export function callsOf(step: StepRecord): readonly Call[] {
  return step.kind === "llm" ? contentOf(step).filter((part) => part.type === "tool_call") : nothing;
}
