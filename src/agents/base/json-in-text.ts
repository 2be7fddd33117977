import type { JsonValue } from "../../kernel/index.ts";
import { jsonSpansIn } from "./json-spans.ts";

/** A JSON value in an answer, with the text of this value. */
export interface JsonInText {
  readonly text: string;
  readonly value: JsonValue;
}

/**
 * Maximum number of values that are tried. The number is limited because each value is checked against a schema,
 * and a long answer may contain many small lists.
 */
const maxValues = 50;

/**
 * Yields the JSON values of an answer in the order in which they are tried: the whole text, then the code blocks,
 * then the lists and objects in the text, the last one first. The caller takes the first value that matches,
 * because models often write text, thinking or notes around their answer.
 */
export function* answersIn(text: string): Iterable<JsonInText> {
  let left = maxValues;
  for (const candidate of candidatesIn(text)) {
    const value = tryParseJson(candidate);
    if (value === undefined) continue;
    yield { text: candidate, value };
    if (--left === 0) return;
  }
}

/**
 * Returns the texts that may be the answer, for a schema that describes a text: first the content of a code block
 * if the whole answer is one, then the answer without thinking. Models often answer with only a word and without
 * JSON.
 */
export function plainAnswersIn(text: string): readonly string[] {
  const answer = withoutThinking(text.replace(/^\uFEFF/u, "").trim()).trim();
  const block = unfenced(answer);
  return block === answer ? [answer] : [block, answer];
}

function* candidatesIn(text: string): Iterable<string> {
  const whole = text.replace(/^\uFEFF/u, "").trim();
  yield whole;
  const answer = withoutThinking(whole).trim();
  if (answer !== whole) yield answer;
  const block = unfenced(answer);
  if (block !== answer) yield block;
  yield* blocksIn(answer);
  yield* [...jsonSpansIn(answer)].toReversed();
}

const fence = "```";

/**
 * Returns the content of a code block if the whole text is one, because models often wrap JSON in a code block. It
 * scans the text once, because a backtracking regular expression could block the process for minutes on long white
 * space.
 */
export function unfenced(text: string): string {
  const whole = text.trim();
  const [opened = ""] = /^```(?:json)?[^\S\n]*\n/u.exec(whole) ?? [];
  const isBlock = opened !== "" && whole.endsWith(fence) && whole.length >= opened.length + fence.length;
  return isBlock ? whole.slice(opened.length, -fence.length).trim() : text;
}

/** Yields the contents of the code blocks in a text. */
export function* blocksIn(text: string): Iterable<string> {
  const opening = /```(?:json)?[^\S\n]*\n/gu;
  for (let opened = opening.exec(text); opened !== null; opened = opening.exec(text)) {
    const from = opening.lastIndex;
    const to = text.indexOf(fence, from);
    if (to < 0) return;
    yield text.slice(from, to);
    opening.lastIndex = to + fence.length;
  }
}

/**
 * Removes the model's thinking, which some servers leave in the reply. It removes each `<think>...</think>`,
 * everything before a `</think>` without `<think>`, and everything after a `<think>` without `</think>`. A reply
 * that consists only of thinking is returned unchanged.
 */
export function withoutThinking(text: string): string {
  if (!text.includes("think>")) return text;
  let kept = "";
  // The start of the text that is not copied yet, and the start of the thinking in it.
  let from = 0;
  let thinking: number | undefined;
  for (const { 0: tag, index } of text.matchAll(/<\/?think>/gu)) {
    if (tag === "<think>") {
      thinking ??= index;
      continue;
    }
    kept = thinking === undefined ? "" : kept + text.slice(from, thinking);
    from = index + tag.length;
    thinking = undefined;
  }
  const answer = kept + text.slice(from, thinking);
  return answer.trim() === "" ? text : answer;
}

/** Parses JSON. `undefined` means that the text is not JSON. */
export function tryParseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
