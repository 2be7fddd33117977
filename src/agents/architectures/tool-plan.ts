import type { JsonObject, JsonValue } from "../../kernel/index.ts";
import { isJsonObject, jsonValuesIn, tryParseJson } from "./json-parsing.ts";
import { findList } from "./list-parsing.ts";

/** A call that is planned before anything is known: its arguments may hold `{{E1}}` for what the call E1 will give. */
export interface PlannedCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  /** Why it cannot be made as it is written. */
  readonly problem?: string;
}

const placeholder = /\{\{([^{}]{1,200})\}\}/gu;
/** Of arguments inside each other: tools take no more, and neither does the stack. */
const maxDepth = 100;

/**
 * The calls a model planned. One that cannot be made says why: those that need it would not know. What is no call is left out. `undefined`:
 * it wrote no list of calls.
 */
export function parseToolPlan(text: string): readonly PlannedCall[] | undefined {
  let isEmpty = false;
  for (const value of jsonValuesIn(text)) {
    // A call by itself is a plan of one, whatever lists it has.
    const list = hasTool(value) ? [value] : findList(value, hasTool);
    if (list === undefined) continue;
    if (list.some(hasTool)) return callsIn(list);
    isEmpty ||= list.length === 0;
  }
  return isEmpty ? [] : undefined;
}

function hasTool(value: JsonValue): value is JsonObject {
  return isJsonObject(value) && typeof value["tool"] === "string" && value["tool"].trim() !== "";
}

function callsIn(list: readonly JsonValue[]): readonly PlannedCall[] {
  const calls = list.map((each) => (isCall(each) ? each : undefined));
  const written = calls.map((call) => (call === undefined ? "" : rawId(call)));
  const taken = new Set<string>();
  const shared = new Set([""]);
  for (const each of written) (taken.has(each) ? shared : taken).add(each);
  return calls.flatMap((call, index) => {
    if (call === undefined) return [];
    const given = written[index] ?? "";
    const id = shared.has(given) ? freeId(index, taken) : given;
    taken.add(id);
    const tool = typeof call["tool"] === "string" ? call["tool"].trim() : "";
    if (tool === "") return [{ id, tool, args: {}, problem: "the plan names no tool for it" }];
    return [{ id, tool, ...parseArgs(call) }];
  });
}

function isCall(value: JsonValue): value is JsonObject {
  return isJsonObject(value) && (hasTool(value) || rawArgs(value) !== undefined);
}

function rawId({ id }: JsonObject): string {
  return typeof id === "string" || typeof id === "number" ? String(id).trim() : "";
}

/** For a call without an id, or with another's: what names that one, or both, must not mean this one. */
function freeId(index: number, taken: ReadonlySet<string>): string {
  let id = `E${index + 1}`;
  while (idOf(taken, id) !== undefined) id = `${id}_`;
  return id;
}

/** As models call them. */
function rawArgs(call: JsonObject): JsonValue | undefined {
  return call["args"] ?? call["arguments"] ?? call["input"] ?? call["parameters"];
}

/** Also as JSON in a text; none are none. */
function parseArgs(call: JsonObject): Pick<PlannedCall, "args" | "problem"> {
  const written = rawArgs(call) ?? {};
  const args = typeof written === "string" ? tryParseJson(written.trim() || "{}") : written;
  if (!isJsonObject(args)) return { args: {}, problem: "the plan gives it args that are no object" };
  if (isDeeper(args, maxDepth)) return { args: {}, problem: "the plan gives it args that go too deep" };
  return { args };
}

/**
 * Calls that need nothing of each other, level after level; a level's need only what came before it. A placeholder that names no call
 * is not waited for. `undefined`: some wait for each other in a circle.
 */
export function dependencyLevels(
  calls: readonly PlannedCall[],
): readonly (readonly PlannedCall[])[] | undefined {
  const ids = new Set(calls.map(({ id }) => id));
  const levels: (readonly PlannedCall[])[] = [];
  const done = new Set<string>();
  let waiting = calls;
  while (waiting.length > 0) {
    const level = waiting.filter(({ args }) =>
      placeholderNames(args).every((name) => {
        const id = idOf(ids, name);
        return id === undefined || done.has(id);
      }),
    );
    if (level.length === 0) return undefined;
    for (const { id } of level) done.add(id);
    levels.push(level);
    waiting = waiting.filter(({ id }) => !done.has(id));
  }
  return levels;
}

/** What calls gave, by id. `undefined`: one that was not made. */
export type CallOutputs = ReadonlyMap<string, string | undefined>;

/** The arguments with what is known in place of its placeholder, anywhere in them, names of members included; what is not known stays as it is written. */
export function fillPlaceholders(args: JsonObject, known: CallOutputs): JsonObject {
  return filledMembers(args, known);
}

/** Placeholders for which nothing is known. */
export function unknownPlaceholders(args: JsonObject, known: CallOutputs): readonly string[] {
  return [...new Set(placeholderNames(args))].filter((name) => outputFor(name, known) === undefined);
}

function filled(value: JsonValue, known: CallOutputs): JsonValue {
  if (typeof value === "string") return filledText(value, known);
  if (Array.isArray(value)) return value.map((each: JsonValue) => filled(each, known));
  return isJsonObject(value) ? filledMembers(value, known) : value;
}

function filledMembers(value: JsonObject, known: CallOutputs): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [filledText(key, known), filled(each, known)]),
  );
}

function filledText(text: string, known: CallOutputs): string {
  return text.replaceAll(placeholder, (written, name: string) => outputFor(name.trim(), known) ?? written);
}

function outputFor(name: string, known: CallOutputs): string | undefined {
  const id = idOf(known, name);
  return id === undefined ? undefined : known.get(id);
}

/** Models that number their calls 1 and 2 write `{{E1}}`, as they were shown, and the other way round. */
function idOf(ids: { has(id: string): boolean }, name: string): string | undefined {
  if (ids.has(name)) return name;
  const twin = /^\d+$/u.test(name) ? `E${name}` : name.replace(/^E(?=\d+$)/u, "");
  return ids.has(twin) ? twin : undefined;
}

function placeholderNames(value: JsonValue): readonly string[] {
  if (typeof value === "string") return [...value.matchAll(placeholder)].map(([, name = ""]) => name.trim());
  if (typeof value !== "object" || value === null) return [];
  const keys = isJsonObject(value) ? Object.keys(value) : [];
  return [...keys, ...Object.values(value)].flatMap((each: JsonValue) => placeholderNames(each));
}

function isDeeper(value: JsonValue, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((each: JsonValue) => isDeeper(each, depth - 1));
}
