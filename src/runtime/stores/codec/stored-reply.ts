import type { JsonValue, LlmReply } from "../../../kernel/index.ts";
import { isWhole, memberCount } from "./member-count.ts";

/** The reply of a model call without member names. */
type BriefReply = readonly [
  message: LlmReply["message"],
  stopReason: LlmReply["stopReason"],
  inputTokens: number,
  outputTokens: number,
  cacheReadTokens: number,
  cacheWriteTokens: number,
  reasoningTokens: number,
  costUsd: number | null,
  provider: string,
  modelId: string,
];

/**
 * Returns the stored value of a model call's step. A reply without additional members is stored as a list of its values,
 * a list as the only item of another list, and any other value unchanged.
 */
export function encodeReply(value: JsonValue): unknown {
  return Array.isArray(value) ? [value] : (briefReply(value as Partial<LlmReply> | null) ?? value);
}

export function decodeReply(stored: JsonValue): JsonValue {
  if (!Array.isArray(stored)) return stored;
  if (stored.length === 1) return stored[0] as JsonValue;
  const [message, stopReason, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, ...others] =
    stored as unknown as BriefReply;
  const [reasoningTokens, costUsd, provider, modelId] = others;
  const usage = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, costUsd };
  const reply: LlmReply = { message, stopReason, usage, model: { provider, modelId } };
  return reply as unknown as JsonValue;
}

function briefReply(value: Partial<LlmReply> | null): BriefReply | undefined {
  if (value === null) return undefined;
  const { message, stopReason, usage, model } = value;
  if (message === undefined || stopReason === undefined || usage === undefined || model === undefined)
    return undefined;
  if (memberCount(value) !== 4 || memberCount(usage) !== 6 || memberCount(model) !== 2) return undefined;
  const brief = [
    message,
    stopReason,
    usage.inputTokens,
    usage.outputTokens,
    usage.cacheReadTokens,
    usage.cacheWriteTokens,
    usage.reasoningTokens,
    usage.costUsd,
    model.provider,
    model.modelId,
  ] as const;
  return isWhole(brief) ? brief : undefined;
}
