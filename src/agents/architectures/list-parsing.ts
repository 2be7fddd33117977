import type { JsonObject, JsonValue } from "../../kernel/index.ts";
import { withoutThinking } from "../base/json-in-text.ts";
import { isJsonObject, jsonValuesIn } from "./json-parsing.ts";

/** Matches a line with a bullet or a number, also in bold, as a heading, or with a checkbox. */
const listLine =
  /^\s*(?:#{1,6}\s+)?(?:\*\*|__)?(?:[-*•]|(?:step\s+)?\d+[.):])(?:\*\*|__)?\s+(?:\[[ x]?\]\s+)?(\S.*)$/iu;

/**
 * Parses the items that a model listed: a JSON list of texts or of objects with a text, such a list inside an object,
 * or lines with bullets or numbers. An empty list is a valid result; `undefined` means that the text contains no list.
 */
export function parseTextList(text: string): readonly string[] | undefined {
  let singleObject: readonly string[] | undefined;
  let isEmpty = false;
  for (const value of jsonValuesIn(text)) {
    const list = findList(value, (item) => itemText(item) !== "");
    if (list === undefined) continue;
    const texts = list.map(itemText).filter((each) => each !== "");
    const isSingleObject = isJsonObject(value) && list[0] === value;
    if (texts.length > 0 && !isSingleObject) return texts;
    if (texts.length > 0) singleObject ??= texts;
    isEmpty ||= list.length === 0;
  }
  const lines = withoutThinking(text).split("\n").flatMap(lineItem);
  // Lines come first: the checkbox `[ ]` of a line parses as an empty JSON list.
  return lines.length > 0 ? lines : (singleObject ?? (isEmpty ? [] : undefined));
}

function lineItem(line: string): readonly string[] {
  const item = listLine.exec(line)?.[1]?.trim();
  if (item === undefined) return [];
  const isBold = /^[#\s]*(?:\*\*|__)/u.test(line);
  // The bold markup that started before the number ends inside the item.
  return [isBold ? item.replace(/\*\*|__/u, "").trim() : item];
}

/** Names that models give to the requested list, and not to other lists beside it. */
const listNames = new Set(["actions", "calls", "plan", "steps", "tasks", "thoughts", "todos", "tool_calls"]);

/** Matches the key of a numbered item: `1`, `2` or `step 1`. */
const stepNumber = /^(?:step[\s_-]*)?\d+$/iu;

/** Matches the key of a numbered list that is a part of the plan: `phase 1` or `Week_2`. */
const partNumber = /^[\p{L}\s_-]*\d+$/u;

/** Maximum depth of plans inside plans that are searched for a list. */
const maxNesting = 2;

/**
 * Finds the list that a model most likely meant. In an object, this is a list with a typical name, otherwise the
 * numbered members, otherwise the first list with an item that `fits`. An object without lists counts as a list of
 * one item. Returns an empty list only if the meant list or all lists are empty, and `undefined` if there is no
 * such list.
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
  const chosen = named.find(isFit) ?? named.find(isEmptyList) ?? lists.find(isFit);
  return chosen?.list ?? (lists.every(isEmptyList) ? [] : undefined);
}

function isEmptyList({ list }: NamedList): boolean {
  return list.length === 0;
}

interface NamedList {
  readonly name: string;
  readonly list: readonly JsonValue[];
}

/**
 * Returns the lists of an object: first all numbered members as one list with an empty name, then the other lists,
 * including the lists of nested plans.
 */
function listsIn(value: JsonObject, depth: number): readonly NamedList[] {
  const members = Object.entries(value);
  const numbered = members.filter(isNumbered);
  const others = members
    .filter((member) => !isNumbered(member))
    .flatMap(([name, each]) => {
      if (isList(each)) return [{ name, list: each }];
      return isJsonObject(each) && isListName(name) && depth > 0 ? openNestedPlan(name, each, depth - 1) : [];
    });
  if (numbered.length === 0) return others;
  return [{ name: "", list: numbered.flatMap(([, each]) => (isList(each) ? each : [each])) }, ...others];
}

function isNumbered([name, value]: readonly [string, JsonValue]): boolean {
  return (isList(value) ? partNumber : stepNumber).test(name);
}

/**
 * Returns the lists of a nested plan. If none of them has a typical name, the numbered ones, or otherwise all, are
 * joined to one list.
 */
function openNestedPlan(name: string, value: JsonObject, depth: number): readonly NamedList[] {
  const lists = listsIn(value, depth);
  if (lists.length === 0 || lists.some((each) => isListName(each.name))) return lists;
  const numbered = lists.filter((each) => each.name === "");
  const parts = numbered.length > 0 ? numbered : lists;
  return [{ name, list: parts.flatMap(({ list }) => list) }];
}

function isListName(name: string): boolean {
  return listNames.has(name.toLowerCase());
}

/** Names that models give to the text of an item, and not to its reason. */
const textNames = new Set(["action", "content", "description", "step", "task", "text", "thought", "title"]);

/**
 * Returns the text of an item. In an object, this is the longest text with a typical name, because a shorter one is
 * probably a number or a title. If no text has a typical name, it is the longest text.
 */
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
