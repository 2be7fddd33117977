import type { JsonObject, JsonValue } from "../../kernel/index.ts";
import { tryParseJson } from "../base/json-in-text.ts";
import { isJsonObject, jsonValuesIn } from "./json-parsing.ts";
import { findList } from "./list-parsing.ts";

/**
 * A tool call that is planned before any call is made. Its arguments may contain `{{E1}}` as a placeholder for the
 * output of the call with id E1.
 */
export interface PlannedCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  /** Why the call cannot be made as it is written. If absent, the call can be made. */
  readonly problem?: string;
}

const placeholder = /\{\{([^{}]{1,200})\}\}/gu;
/**
 * Maximum nesting of arguments. No tool needs deeper arguments, and the recursive functions below need a limit for
 * the call stack.
 */
const maxDepth = 100;

/**
 * Parses the calls that a model planned. A call that cannot be made remains in the plan with its problem, so that
 * calls which need its output do not use the output of another call. `undefined` means that the reply contains no
 * list of calls.
 */
export function parseToolPlan(text: string): readonly PlannedCall[] | undefined {
  let isEmpty = false;
  for (const value of jsonValuesIn(text)) {
    // A single call is a plan with one call, even if its arguments contain lists.
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
  const raw = calls.map((call) => (call === undefined ? "" : rawId(call)));
  const taken = new Set<string>();
  const shared = new Set([""]);
  for (const each of raw) (taken.has(each) ? shared : taken).add(each);
  return calls.flatMap((call, index) => {
    if (call === undefined) return [];
    const ownId = raw[index] ?? "";
    const id = shared.has(ownId) ? freeId(index, taken) : ownId;
    taken.add(id);
    const tool = typeof call["tool"] === "string" ? call["tool"].trim() : "";
    if (tool === "") return [{ id, tool, args: {}, problem: "the plan names no tool" }];
    return [{ id, tool, ...parseArgs(call) }];
  });
}

function isCall(value: JsonValue): value is JsonObject {
  return isJsonObject(value) && (hasTool(value) || rawArgs(value) !== undefined);
}

function rawId({ id }: JsonObject): string {
  return typeof id === "string" || typeof id === "number" ? String(id).trim() : "";
}

/**
 * Returns an unused id for a call without an id or with the id of another call. A placeholder for the duplicate id then
 * refers to no call.
 */
function freeId(index: number, taken: ReadonlySet<string>): string {
  let id = `E${index + 1}`;
  while (idOf(taken, id) !== undefined) id = `${id}_`;
  return id;
}

/** Returns the arguments under any of the names that models use. */
function rawArgs(call: JsonObject): JsonValue | undefined {
  return call["args"] ?? call["arguments"] ?? call["input"] ?? call["parameters"];
}

/** Parses the arguments of a call, which may also be JSON text or missing. */
function parseArgs(call: JsonObject): Pick<PlannedCall, "args" | "problem"> {
  const raw = rawArgs(call) ?? {};
  const args = typeof raw === "string" ? tryParseJson(raw.trim() || "{}") : raw;
  if (!isJsonObject(args)) return { args: {}, problem: "the plan has args that are not an object" };
  if (isDeeper(args, maxDepth)) return { args: {}, problem: "the plan has args that are nested too deeply" };
  return { args };
}

/**
 * Groups calls into levels, so that the calls of a level need only outputs of earlier levels. A placeholder that
 * names no call is ignored here. `undefined` means that the plan has a cycle.
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

/** Outputs of calls by id. `undefined` marks a call that was not made. */
export type CallOutputs = ReadonlyMap<string, string | undefined>;

/**
 * Replaces the placeholders in arguments, also in the names of members, by the outputs of their calls. Placeholders
 * without an output stay as they are.
 */
export function fillPlaceholders(args: JsonObject, outputs: CallOutputs): JsonObject {
  return fillMembers(args, outputs);
}

/** Returns the number of characters that would replace the placeholders in arguments. A text may repeat a placeholder. */
export function filledLength(args: JsonObject, outputs: CallOutputs): number {
  let length = 0;
  for (const name of placeholderNames(args)) length += outputFor(name, outputs)?.length ?? 0;
  return length;
}

/** Returns the placeholders that have no output. */
export function unknownPlaceholders(args: JsonObject, outputs: CallOutputs): readonly string[] {
  return [...new Set(placeholderNames(args))].filter((name) => outputFor(name, outputs) === undefined);
}

function fillValue(value: JsonValue, outputs: CallOutputs): JsonValue {
  if (typeof value === "string") return fillText(value, outputs);
  if (Array.isArray(value)) return value.map((each: JsonValue) => fillValue(each, outputs));
  return isJsonObject(value) ? fillMembers(value, outputs) : value;
}

function fillMembers(value: JsonObject, outputs: CallOutputs): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [fillText(key, outputs), fillValue(each, outputs)]),
  );
}

function fillText(text: string, outputs: CallOutputs): string {
  return text.replaceAll(placeholder, (raw, name: string) => outputFor(name.trim(), outputs) ?? raw);
}

function outputFor(name: string, outputs: CallOutputs): string | undefined {
  const id = idOf(outputs, name);
  return id === undefined ? undefined : outputs.get(id);
}

/**
 * Finds the id that a placeholder means. Models that use the ids 1 and 2 may write `{{E1}}`, and models that use E1
 * may write `{{1}}`.
 */
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
