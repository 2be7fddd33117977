import type { JsonValue, LlmReply, StepRecord } from "../../../../kernel/index.ts";

type Part = LlmReply["message"]["content"][number];
type Call = Extract<Part, { readonly type: "tool_call" }>;

const nothing: readonly never[] = [];

/** What a step came to; nothing of one that failed. */
export function valueOf({ outcome }: StepRecord): JsonValue | undefined {
  return outcome.kind === "ok" ? outcome.value : undefined;
}

export function memberOf(step: StepRecord, member: string): unknown {
  const value = valueOf(step);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[member];
}

/** Of a model call's reply. */
export function messageOf(step: StepRecord): LlmReply["message"] | undefined {
  return memberOf(step, "message") as LlmReply["message"] | undefined;
}

export function contentOf(step: StepRecord): readonly Part[] {
  return messageOf(step)?.content ?? nothing;
}

/** The tools a model call asks for. */
export function callsOf(step: StepRecord): readonly Call[] {
  return step.kind === "llm" ? contentOf(step).filter((part) => part.type === "tool_call") : nothing;
}
