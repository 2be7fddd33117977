import type { JsonObject, JsonValue } from "../../kernel/index.ts";
import { isJsonObject, jsonValuesIn } from "./json-answer.ts";
import { listIn } from "./listed-text.ts";

/** A call that is planned before anything is known: its arguments may hold `{{E1}}` for what the call E1 will give. */
export interface PlannedCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
}

const placeholder = /\{\{([^{}]{1,200})\}\}/gu;
/** Of arguments inside each other: tools take no more, and neither does the stack. */
const maxDepth = 100;

/** The calls a model planned; what has no tool is left out. `undefined`: it wrote no list of calls. */
export function toolPlanIn(text: string): readonly PlannedCall[] | undefined {
  let isEmpty = false;
  for (const value of jsonValuesIn(text)) {
    // A call by itself is a plan of one, whatever lists it has.
    const list = isJsonObject(value) && "tool" in value ? [value] : listIn(value);
    if (list === undefined) continue;
    const calls = callsIn(list);
    if (calls.length > 0) return calls;
    isEmpty ||= list.length === 0;
  }
  return isEmpty ? [] : undefined;
}

function callsIn(list: readonly JsonValue[]): readonly PlannedCall[] {
  const ids = new Set<string>();
  return list.flatMap((each, index) => {
    const { id, tool, args = {} } = isJsonObject(each) ? each : {};
    if (typeof tool !== "string" || tool === "" || !isJsonObject(args) || isDeeper(args, maxDepth)) return [];
    // An id that is there already would hide what stands under it.
    const given = typeof id === "string" ? id.trim() : "";
    let own = given !== "" && !ids.has(given) ? given : `E${index + 1}`;
    while (ids.has(own)) own = `${own}_`;
    ids.add(own);
    return [{ id: own, tool, args }];
  });
}

/**
 * Calls that need nothing of each other, level after level; a level's need only what came before it. A placeholder that names no call
 * is no need. `undefined`: some wait for each other in a circle.
 */
export function levelsOf(calls: readonly PlannedCall[]): readonly (readonly PlannedCall[])[] | undefined {
  const ids = new Set(calls.map(({ id }) => id));
  const levels: (readonly PlannedCall[])[] = [];
  const done = new Set<string>();
  let waiting = calls;
  while (waiting.length > 0) {
    const level = waiting.filter(({ args }) =>
      namesIn(args).every((name) => !ids.has(name) || done.has(name)),
    );
    if (level.length === 0) return undefined;
    for (const { id } of level) done.add(id);
    levels.push(level);
    waiting = waiting.filter(({ id }) => !done.has(id));
  }
  return levels;
}

/** The arguments with what is known by now in place of its placeholder, anywhere in them; what is not known stays as it is written. */
export function filledIn<Value extends JsonValue>(value: Value, known: ReadonlyMap<string, string>): Value {
  return filled(value, known) as Value;
}

function filled(value: JsonValue, known: ReadonlyMap<string, string>): JsonValue {
  if (typeof value === "string")
    return value.replaceAll(placeholder, (written, name: string) => known.get(name.trim()) ?? written);
  if (Array.isArray(value)) return value.map((each: JsonValue) => filled(each, known));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, filled(each, known)]));
}

function namesIn(value: JsonValue): readonly string[] {
  if (typeof value === "string") return [...value.matchAll(placeholder)].map(([, name = ""]) => name.trim());
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((each: JsonValue) => namesIn(each));
}

function isDeeper(value: JsonValue, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((each: JsonValue) => isDeeper(each, depth - 1));
}
