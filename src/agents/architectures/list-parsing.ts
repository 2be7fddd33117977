import type { JsonObject, JsonValue } from "../../kernel/index.ts";
import { isJsonObject, jsonValuesIn, withoutThinking } from "./json-parsing.ts";

/** A line with a bullet or a number, also in bold or as a heading, and perhaps a box to tick. */
const listLine =
  /^\s*(?:#{1,6}\s+)?(?:\*\*|__)?(?:[-*•]|(?:step\s+)?\d+[.):])(?:\*\*|__)?\s+(?:\[[ x]?\]\s+)?(\S.*)$/iu;

/**
 * The things a model listed: a JSON list of texts or of objects with a text, such a list in a member of an object, or lines with a bullet
 * or a number. `undefined`: none of these; an empty list is one.
 */
export function parseTextList(text: string): readonly string[] | undefined {
  let lone: readonly string[] | undefined;
  let isEmpty = false;
  for (const value of jsonValuesIn(text)) {
    const list = findList(value, (item) => itemText(item) !== "");
    if (list === undefined) continue;
    const texts = list.map(itemText).filter((each) => each !== "");
    const isLone = isJsonObject(value) && list[0] === value;
    if (texts.length > 0 && !isLone) return texts;
    if (texts.length > 0) lone ??= texts;
    isEmpty ||= list.length === 0;
  }
  const lines = withoutThinking(text).split("\n").flatMap(lineItem);
  // A box to tick is an empty list, too.
  return lines.length > 0 ? lines : (lone ?? (isEmpty ? [] : undefined));
}

function lineItem(line: string): readonly string[] {
  const item = listLine.exec(line)?.[1]?.trim();
  if (item === undefined) return [];
  const isBold = /^[#\s]*(?:\*\*|__)/u.test(line);
  // What made its number bold ends somewhere in it.
  return [isBold ? item.replace(/\*\*|__/u, "").trim() : item];
}

/** What models call the list they were asked for, as they do not call what they write beside it. */
const listNames = new Set(["actions", "calls", "plan", "steps", "tasks", "thoughts", "todos", "tool_calls"]);

/** What stands under `1`, `2` or `step 1` is listed, too. */
const stepNumber = /^(?:step[\s_-]*)?\d+$/iu;

/** Of lists that are parts of one: `phase 1`, `Week_2`. */
const partNumber = /^[\p{L}\s_-]*\d+$/u;

/** A plan within a plan's steps, and no further. */
const maxNesting = 2;

/**
 * A list; of an object's lists the one whose name says so, or else what is numbered, or else the first in which something `fits`; an object
 * that has none by itself, as a list of one. Empty only where the list that is meant is empty, or all are. `undefined`: no list that is meant.
 */
export function findList(
  value: JsonValue,
  fits: (item: JsonValue) => boolean,
): readonly JsonValue[] | undefined {
  if (isList(value)) return value;
  if (!isJsonObject(value)) return undefined;
  const lists = listsIn(value, maxNesting);
  if (lists.length === 0) return [value];
  const named = lists.filter(({ name }) => isListName(name));
  const isFit = ({ list }: NamedList): boolean => list.some(fits);
  const meant = named.find(isFit) ?? named.find(isEmptyList) ?? lists.find(isFit);
  return meant?.list ?? (lists.every(isEmptyList) ? [] : undefined);
}

function isEmptyList({ list }: NamedList): boolean {
  return list.length === 0;
}

interface NamedList {
  readonly name: string;
  readonly list: readonly JsonValue[];
}

/** What is numbered first, as one; also those of a plan that is an object. */
function listsIn(value: JsonObject, opened: number): readonly NamedList[] {
  const members = Object.entries(value);
  const numbered = members.filter(isNumbered);
  const others = members
    .filter((member) => !isNumbered(member))
    .flatMap(([name, each]) => {
      if (isList(each)) return [{ name, list: each }];
      return isJsonObject(each) && isListName(name) && opened > 0
        ? openNestedPlan(name, each, opened - 1)
        : [];
    });
  if (numbered.length === 0) return others;
  return [{ name: "", list: numbered.flatMap(([, each]) => (isList(each) ? each : [each])) }, ...others];
}

function isNumbered([name, value]: readonly [string, JsonValue]): boolean {
  return (isList(value) ? partNumber : stepNumber).test(name);
}

/** Where none of its lists is the one that is meant, they are parts of it: those that are numbered, or all. */
function openNestedPlan(name: string, value: JsonObject, opened: number): readonly NamedList[] {
  const lists = listsIn(value, opened);
  if (lists.length === 0 || lists.some((each) => isListName(each.name))) return lists;
  const numbered = lists.filter((each) => each.name === "");
  const parts = numbered.length > 0 ? numbered : lists;
  return [{ name, list: parts.flatMap(({ list }) => list) }];
}

function isListName(name: string): boolean {
  return listNames.has(name.toLowerCase());
}

/** What models call the thing itself, as they do not call its reason. */
const textNames = new Set(["action", "content", "description", "step", "task", "text", "thought", "title"]);

/** A text, or an object's: the longest under a name that says so, for a short one beside it is its number or title; or the longest. */
function itemText(value: JsonValue): string {
  if (typeof value === "string") return value.trim();
  if (!isJsonObject(value)) return "";
  const texts = Object.entries(value).filter((each): each is [string, string] => typeof each[1] === "string");
  const named = texts.filter(([name]) => textNames.has(name.toLowerCase()));
  const ranked = (named.length > 0 ? named : texts).map(([, text]) => text.trim());
  return ranked.toSorted((one, other) => other.length - one.length)[0] ?? "";
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
