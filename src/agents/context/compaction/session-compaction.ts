import {
  sessionContext,
  type ChatMessage,
  type Compaction,
  type ContextEntry,
  estimateTokens,
  type TokenCounter,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { groupMessages, type MessageGroup } from "./message-group.ts";
import type { SummaryRequest } from "./summarizer.ts";
import { trySummaries, type SummaryAttempt } from "./summary-attempt.ts";
import {
  joinFiles,
  splitFiles,
  touchedFiles,
  usualFileUse,
  withFiles,
  type FileUse,
} from "./touched-files.ts";

export interface SessionCompactionOptions extends SummaryAttempt {
  /** Number of tokens of the model's window that should stay free for the prompt and the answer. Default: 8_192. */
  readonly reserveTokens?: number;
  /** Number of tokens of the newest messages that are kept unchanged. Default: 16_384. */
  readonly keepRecentTokens?: number;
  readonly countTokens?: TokenCounter;
  readonly fileUse?: FileUse;
}

const divider = "\n\n---\n\nThe turn under way began like this:\n\n";

const knownOptions = optionTable({
  reserveTokens: is.integer({ from: 0, default: 8_192 }),
  keepRecentTokens: is.integer({ from: 1, default: 16_384 }),
  countTokens: is.any,
  fileUse: is.any,
  summarize: is.any,
  onFailure: is.callback(),
} satisfies OptionKinds<SessionCompactionOptions>);

/**
 * Creates a compaction that summarises the part of a session before a cut. The cut is before a user or assistant
 * message, and never between a call and its result. A cut inside a turn needs two summaries, which are made in
 * parallel: one of everything before the turn, and one of the turn's beginning.
 */
export function sessionCompaction(options: SessionCompactionOptions): Compaction {
  const {
    reserveTokens,
    keepRecentTokens,
    countTokens = estimateTokens,
    fileUse = usualFileUse,
  } = knownOptions.read("sessionCompaction()", options);
  return {
    shouldCompact: ({ tokens, contextWindow }) => tokens > contextWindow - reserveTokens,
    async compact({ path, instructions }) {
      if (path.at(-1)?.type === "compaction") return null;
      const { summary, entries: shown } = sessionContext(path);
      const groups = groupMessages(shown, ({ message }) => message);
      const cut = findCut(groups, keepRecentTokens, countTokens);
      const first = groups[cut]?.[0];
      if (cut === 0 || first === undefined) return null;
      const previous = summary === null ? null : splitFiles(summary);
      const turn = startOfTurn(groups, cut);
      const before = messagesOf(groups.slice(0, turn));
      const beginning = messagesOf(groups.slice(turn, cut));
      const wishes = instructions === undefined ? {} : { instructions };
      const requests: SummaryRequest[] = [];
      if (before.length > 0)
        requests.push({ messages: before, previous: previous?.summary ?? null, part: "history", ...wishes });
      if (beginning.length > 0)
        requests.push({ messages: beginning, previous: null, part: "turn", ...wishes });
      const summaries = await trySummaries(options, requests);
      if (summaries === undefined) return null;
      // If nothing lies between the last compaction and the turn, the previous summary is still valid.
      const parts = before.length > 0 || previous === null ? summaries : [previous.summary, ...summaries];
      const files = touchedFiles([...before, ...beginning], fileUse);
      const touched = previous === null ? files : joinFiles(previous.files, files);
      return { summary: withFiles(parts.join(divider), touched), firstKeptEntryId: first.entry.id };
    },
  };
}

/** Returns the position of the first group that is kept: as many groups as fit, and always the newest one. */
function findCut(
  groups: readonly MessageGroup<ContextEntry>[],
  keepRecentTokens: number,
  countTokens: TokenCounter,
): number {
  let tokens = 0;
  let cut = Math.max(0, groups.length - 1);
  for (let index = groups.length - 1; index >= 0; index--) {
    tokens += countTokens(messagesOf([groups[index] ?? []]));
    if (tokens > keepRecentTokens) break;
    cut = index;
  }
  return cut;
}

/**
 * Returns the position of the user message that starts the turn in which the cut is. If the cut is between turns,
 * returns the cut itself.
 */
function startOfTurn(groups: readonly MessageGroup<ContextEntry>[], cut: number): number {
  if (isQuestion(groups[cut])) return cut;
  const start = groups.slice(0, cut).findLastIndex(isQuestion);
  return start < 0 ? cut : start;
}

function isQuestion(group: MessageGroup<ContextEntry> | undefined): boolean {
  return group?.[0]?.message.role === "user";
}

function messagesOf(groups: readonly MessageGroup<ContextEntry>[]): readonly ChatMessage[] {
  return groups.flat().map(({ message }) => message);
}
