import {
  Fault,
  findUnpaired,
  Transcript,
  type ChatMessage,
  type CompactedTranscript,
  type CompactionStep,
  type EventDraft,
  type JsonValue,
} from "../../kernel/index.ts";
import type { NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { estimateMessages } from "../model/token-bound.ts";
import { requireFunction } from "./context-options.ts";

/** A range of messages of the transcript that is kept, or a new message. */
type Piece = readonly [from: number, to: number] | ChatMessage;

/** The record of a compaction; `null` if nothing changed. */
type CompactionRecord = { readonly pieces: readonly Piece[]; readonly tokensAfter: number } | null;

/**
 * Compacts a transcript once. The record contains positions of kept messages, and new messages as a whole. Steps of
 * `compact` are scoped under this step, so that a summary is not paid twice.
 */
export async function compactTranscript(
  steps: StepExecutor,
  request: CompactionStep,
  scoped: (step: StepIdentity) => NestedContext,
): Promise<CompactedTranscript> {
  const { transcript, contextTokens, manual = false, compact } = { ...request };
  requireFunction(
    "ctx.compact()",
    "compact",
    compact,
    "{ transcript, contextTokens, compact: async (messages) => ... }",
  );
  const { sessionId } = steps.runner.facts;
  const step: StepIdentity = {
    address: steps.next(),
    kind: "compaction",
    name: "compaction",
    digest: transcript,
  };
  const entryId = steps.idempotencyKey(step.address);
  const starting: EventDraft = {
    type: "session_before_compact",
    data: { sessionId, contextTokens, manual },
  };
  const record = await steps.run<CompactionRecord>(
    step,
    async (open) => {
      const ctx = scoped(step);
      const messages = transcript.slice();
      const window = await compact(messages, ctx);
      for (const draft of ctx.takeEvents()) open.emit(draft);
      const pieces = piecesOf(messages, window);
      if (isWhole(pieces, messages.length)) return null;
      requirePairs(window);
      const [before, after] = [estimateMessages(messages), estimateMessages(window)];
      // A summary can be longer than what it replaces.
      if (after > before) return null;
      const tokensAfter = scale(contextTokens, after, before);
      const data = { sessionId, entryId, tokensBefore: contextTokens, tokensAfter };
      open.emit({ type: "session_compact", data });
      return { pieces, tokensAfter };
    },
    starting,
  );
  if (record === null) return { transcript, entryId: null, tokens: contextTokens };
  return { transcript: Transcript.of(windowOf(transcript, record)), entryId, tokens: record.tokensAfter };
}

/**
 * Returns the messages of a transcript after its recorded compaction. `undefined` if the compaction changed
 * nothing.
 */
export function compactedMessages(
  transcript: Transcript,
  value: JsonValue,
): readonly ChatMessage[] | undefined {
  const record = value as unknown as CompactionRecord;
  return record === null ? undefined : windowOf(transcript, record);
}

function windowOf(transcript: Transcript, { pieces }: NonNullable<CompactionRecord>): readonly ChatMessage[] {
  return pieces.flatMap((piece) => (isRange(piece) ? sliceOf(transcript, piece) : [piece]));
}

function piecesOf(messages: readonly ChatMessage[], window: readonly ChatMessage[]): readonly Piece[] {
  const places = new Map(messages.map((message, index) => [message, index]));
  const pieces: Piece[] = [];
  for (const message of window) {
    const at = places.get(message);
    const last = pieces.at(-1);
    if (at === undefined) pieces.push(message);
    else if (last !== undefined && isRange(last) && last[1] === at)
      pieces[pieces.length - 1] = [last[0], at + 1];
    else pieces.push([at, at + 1]);
  }
  return pieces;
}

function isRange(piece: Piece): piece is readonly [number, number] {
  return Array.isArray(piece);
}

function sliceOf(transcript: Transcript, [from, to]: readonly [number, number]): readonly ChatMessage[] {
  return transcript.slice(from).slice(0, to - from);
}

function isWhole(pieces: readonly Piece[], length: number): boolean {
  const [only, ...more] = pieces;
  if (only === undefined || more.length > 0 || !isRange(only)) return length === 0 && only === undefined;
  return only[0] === 0 && only[1] === length;
}

/** S3: throws for a list of messages that separates a call from its result. */
function requirePairs(window: readonly ChatMessage[]): void {
  const problem = findUnpaired(window);
  if (problem !== undefined)
    throw new Fault(
      "invalid_argument",
      `invalid compaction: a call and its result must be kept together: ${problem}`,
    );
}

function scale(tokens: number, part: number, whole: number): number {
  return whole === 0 ? 0 : Math.ceil((tokens * part) / whole);
}
