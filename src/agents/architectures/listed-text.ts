import type { JsonValue } from "../../kernel/index.ts";
import { jsonIn } from "./json-answer.ts";

/**
 * The things a model listed: a JSON list of texts or of objects with a text, such a list in a member of an object, or lines with a bullet
 * or a number. `undefined`: none of these; an empty list is one.
 */
export function listedIn(text: string): readonly string[] | undefined {
  const value = jsonIn(text);
  const list = listIn(value);
  if (list !== undefined) {
    const texts = list.map(textIn).filter((each) => each !== "");
    if (texts.length > 0 || list.length === 0) return texts;
  }
  const lines = text.split("\n").flatMap((line) => {
    const item = /^\s*(?:[-*•]|\d+[.):])\s+(.+)$/u.exec(line)?.[1]?.trim() ?? "";
    return item === "" ? [] : [item];
  });
  return lines.length > 0 ? lines : undefined;
}

/** A list, the first list among an object's members, or an object by itself as a list of one. */
export function listIn(value: JsonValue | undefined): readonly JsonValue[] | undefined {
  if (isList(value)) return value;
  if (typeof value !== "object" || value === null) return undefined;
  const lists: readonly (readonly JsonValue[])[] = Object.values(value).filter(isList);
  return lists[0] ?? [value];
}

/** What models call the thing itself, as they do not call its reason. */
const names = new Set(["action", "content", "description", "step", "task", "text", "thought", "title"]);

/** A text, or an object's: the longest under a name that says so, for a short one beside it is its number or title; or the longest. */
function textIn(value: JsonValue): string {
  if (typeof value === "string") return value.trim();
  if (typeof value !== "object" || value === null || isList(value)) return "";
  const texts = Object.entries(value).filter((each): each is [string, string] => typeof each[1] === "string");
  const named = texts.filter(([name]) => names.has(name.toLowerCase()));
  const ranked = (named.length > 0 ? named : texts).map(([, text]) => text.trim());
  return ranked.toSorted((one, other) => other.length - one.length)[0] ?? "";
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
