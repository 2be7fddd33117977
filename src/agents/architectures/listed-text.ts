import type { JsonValue } from "../../kernel/index.ts";
import { isJsonObject, jsonValuesIn, withoutThoughts } from "./json-answer.ts";

/** A line with a bullet or a number, also in bold or as a heading, and perhaps a box to tick. */
const listedLine =
  /^\s*(?:#{1,6}\s+)?(?:\*\*|__)?(?:[-*•]|(?:step\s+)?\d+[.):])(?:\*\*|__)?\s+(?:\[[ x]?\]\s+)?(\S.*)$/iu;

/**
 * The things a model listed: a JSON list of texts or of objects with a text, such a list in a member of an object, or lines with a bullet
 * or a number. `undefined`: none of these; an empty list is one.
 */
export function listedIn(text: string): readonly string[] | undefined {
  let lone: readonly string[] | undefined;
  let isEmpty = false;
  for (const value of jsonValuesIn(text)) {
    const list = listIn(value);
    if (list === undefined) continue;
    const texts = list.map(textIn).filter((each) => each !== "");
    const isLone = isJsonObject(value) && list[0] === value;
    if (texts.length > 0 && !isLone) return texts;
    if (texts.length > 0) lone ??= texts;
    isEmpty ||= list.length === 0;
  }
  const lines = withoutThoughts(text).split("\n").flatMap(lineItem);
  // A box to tick is an empty list, too.
  return lines.length > 0 ? lines : (lone ?? (isEmpty ? [] : undefined));
}

function lineItem(line: string): readonly string[] {
  const item = listedLine.exec(line)?.[1]?.trim();
  if (item === undefined) return [];
  const isBold = /^[#\s]*(?:\*\*|__)/u.test(line);
  // What made its number bold ends somewhere in it.
  return [isBold ? item.replace(/\*\*|__/u, "").trim() : item];
}

/** A list, the first list among an object's members, or an object by itself as a list of one. */
export function listIn(value: JsonValue | undefined): readonly JsonValue[] | undefined {
  if (isList(value)) return value;
  if (!isJsonObject(value)) return undefined;
  const lists: readonly (readonly JsonValue[])[] = Object.values(value).filter(isList);
  return lists[0] ?? [value];
}

/** What models call the thing itself, as they do not call its reason. */
const names = new Set(["action", "content", "description", "step", "task", "text", "thought", "title"]);

/** A text, or an object's: the longest under a name that says so, for a short one beside it is its number or title; or the longest. */
function textIn(value: JsonValue): string {
  if (typeof value === "string") return value.trim();
  if (!isJsonObject(value)) return "";
  const texts = Object.entries(value).filter((each): each is [string, string] => typeof each[1] === "string");
  const named = texts.filter(([name]) => names.has(name.toLowerCase()));
  const ranked = (named.length > 0 ? named : texts).map(([, text]) => text.trim());
  return ranked.toSorted((one, other) => other.length - one.length)[0] ?? "";
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
