import {
  estimateTokens,
  sessionContext,
  sessionSettings,
  summaryMessage,
  type SessionUsage,
  type Model,
  type ModelReference,
  type SessionEntry,
} from "../../kernel/index.ts";

type Reported = Extract<SessionEntry, { readonly type: "message" }>;

/**
 * Measures the context of a path: the tokens that the provider reported for the last model call, and an estimate of
 * the messages after it. Reports from before a compaction are ignored, because the model no longer sees those
 * messages. `find` returns a model by its name.
 */
export function contextUsage(
  path: readonly SessionEntry[],
  find: (reference: ModelReference | null) => Model | undefined,
): SessionUsage {
  const { summary, entries } = sessionContext(path);
  const since = path.findLastIndex(({ type }) => type === "compaction");
  const last = path.findLastIndex((entry, index) => index > since && isReported(entry));
  const source = path[last] as Reported | undefined;
  const counted = new Set(last < 0 ? [] : path.slice(0, last + 1));
  const rest = entries.filter(({ entry }) => !counted.has(entry)).map(({ message }) => message);
  const isSummaryNew = summary !== null && source === undefined;
  const estimated = estimateTokens(isSummaryNew ? [summaryMessage(summary), ...rest] : rest);
  const reported = source?.usage === undefined ? 0 : source.usage.inputTokens + source.usage.outputTokens;
  const reference = sessionSettings(path).model ?? lastModel(path);
  const model = find(reference);
  const name = reference ?? model;
  const tokens = reported + estimated;
  const contextWindow = model?.contextWindow ?? null;
  return {
    tokens,
    reported,
    estimated,
    model: name === undefined ? null : `${name.provider}/${name.modelId}`,
    contextWindow,
    share: contextWindow === null ? null : tokens / contextWindow,
  };
}

function isReported(entry: SessionEntry): boolean {
  return entry.type === "message" && entry.usage !== undefined;
}

function lastModel(path: readonly SessionEntry[]): ModelReference | null {
  const entry = path.findLast(
    (each): each is Reported => each.type === "message" && each.model !== undefined,
  );
  return entry?.model ?? null;
}
