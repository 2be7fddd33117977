import type {
  PermissionOption,
  ToolCallContent,
  ToolCallLocation,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { createTwoFilesPatch } from "diff";
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import {
  nearestJson,
  type ForeignCall,
  type ForeignCallView,
  type ForeignDiff,
  type ForeignLocation,
  type JsonValue,
  type ToolResult,
} from "../../kernel/index.ts";
import { isInside } from "../files/control-references.ts";
import { codeOf } from "../files/error-code.ts";

/** What an agent has reported about one of its calls so far. Later updates replace single members. */
export type ToldCall = Omit<ToolCallUpdate, "sessionUpdate">;

/** Length above which the texts of a diff and of a result are cut. */
const longestText = 65_536;
/** Length above which only the start of the JSON of arguments is kept. */
const longestInput = 262_144;
/** Maximum number of places and of diffs of a call that are shown. */
const mostPlaces = 50;
/** Lengths at which names and titles are cut. */
const longestName = 256;
const longestTitle = 4_096;

/** Names of arguments that hold paths. */
const pathArgument = /(?:^|_)(?:path|file|dir|folder|cwd|root)/iu;

/** Returns the call after an update. Members that the update does not contain do not change. */
export function updatedCall(before: ToldCall | undefined, update: ToldCall): ToldCall {
  const given = Object.entries(bounded(update)).filter(([, value]) => value !== undefined && value !== null);
  return { ...before, ...Object.fromEntries(given), toolCallId: shortId(update.toolCallId) };
}

/** The id of a call, as far as it is kept. */
export function shortId(callId: string): string {
  return callId.slice(0, longestName);
}

/**
 * Returns a call without parts that are too long to be shown. An agent may leave many calls open, and all of them
 * are in memory.
 */
function bounded({ name, title, content, locations, rawInput, rawOutput, ...rest }: ToldCall): ToldCall {
  return {
    ...rest,
    ...(name && { name: name.slice(0, longestName) }),
    ...(title && { title: title.slice(0, longestTitle) }),
    ...(content && { content: content.slice(0, mostPlaces).map(shortContent) }),
    ...(locations && { locations: locations.slice(0, mostPlaces) }),
    ...(rawInput !== undefined && { rawInput: shortened(nearestJson(rawInput)) }),
    ...(rawOutput !== undefined && { rawOutput: shortened(nearestJson(rawOutput)) }),
  };
}

/** Cuts a text to one character more than is shown, so that it is known to be cut. */
function cut(text: string): string {
  return text.slice(0, longestText + 1);
}

function shortContent(content: ToolCallContent): ToolCallContent {
  if (content.type === "diff")
    return {
      type: "diff",
      path: content.path.slice(0, longestTitle),
      newText: cut(content.newText),
      ...(typeof content.oldText === "string" && { oldText: cut(content.oldText) }),
    };
  if (content.type !== "content" || content.content.type !== "text") return content;
  return { type: "content", content: { type: "text", text: cut(content.content.text) } };
}

/**
 * Returns arguments or results in the form in which they are kept. Of very long ones, such as whole files, it is
 * the start and a digest that distinguishes them.
 */
function shortened(value: JsonValue): JsonValue {
  const text = JSON.stringify(value);
  if (text.length <= longestInput) return value;
  const sha256 = createHash("sha256").update(text).digest("hex");
  return { cut: true, start: text.slice(0, longestText), sha256 };
}

/** Returns the name of a call's tool for permission rules: its name, or its kind if the agent gives no name. */
export function toolNameOf({ name, kind }: ToldCall): string {
  return name || kind || "tool";
}

/** Returns the call for a person and for the log. Reeve does not check what the agent reports. */
export function foreignCall(
  call: ToldCall,
  folder: string,
  options: readonly PermissionOption[] = [],
): ForeignCall {
  const input = inputOf(call);
  return {
    callId: call.toolCallId,
    toolName: toolNameOf(call),
    input,
    view: viewOf(call, input, folder, options),
  };
}

/**
 * Returns the arguments of a call. If an agent reports none, its other reports about the call are used instead. An
 * approval covers only the same arguments, and would otherwise cover all calls of the tool.
 */
function inputOf({ rawInput = null, title, content, locations }: ToldCall): JsonValue {
  const isTold = rawInput !== null && !(typeof rawInput === "object" && Object.keys(rawInput).length === 0);
  if (isTold) return nearestJson(rawInput);
  const said = Object.entries({ title, content, locations }).filter(([, value]) => Boolean(value));
  return said.length === 0 ? null : nearestJson(Object.fromEntries(said));
}

function viewOf(
  { title, kind, content, locations }: ToldCall,
  input: JsonValue,
  folder: string,
  options: readonly PermissionOption[],
): ForeignCallView {
  const diffs = (content ?? []).flatMap((each) => (each.type === "diff" ? [diffOf(each, folder)] : []));
  const places = [...locationsOf(locations ?? [], folder), ...argumentPlaces(input, folder)];
  const known = new Set<string>();
  const different = places.filter(({ path }) => !known.has(path) && known.add(path));
  return {
    ...(title && { title }),
    ...(kind && { kind }),
    ...(options.length > 0 && {
      options: options
        .slice(0, mostPlaces)
        .map(({ kind: answer, name }) => ({ kind: answer, name: name.slice(0, longestName) })),
    }),
    ...(different.length > 0 && { locations: different.slice(0, mostPlaces) }),
    ...(diffs.length > 0 && { diffs: diffs.slice(0, mostPlaces) }),
  };
}

function locationsOf(locations: readonly ToolCallLocation[], folder: string): readonly ForeignLocation[] {
  return locations.map(({ path, line }) => ({
    ...place(path, folder),
    ...(typeof line === "number" && { line }),
  }));
}

/** Returns the paths in the arguments, because an agent may not report where a call works. */
function argumentPlaces(input: JsonValue, folder: string): readonly ForeignLocation[] {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return [];
  return Object.entries(input).flatMap(([name, value]) =>
    typeof value === "string" && value !== "" && pathArgument.test(name) ? [place(value, folder)] : [],
  );
}

function diffOf(
  { path, oldText, newText }: Extract<ToolCallContent, { type: "diff" }>,
  folder: string,
): ForeignDiff {
  const isCut = (oldText ?? "").length > longestText || newText.length > longestText;
  const [before, after] = [(oldText ?? "").slice(0, longestText), newText.slice(0, longestText)];
  const from = oldText === null || oldText === undefined ? "/dev/null" : path;
  const diff = createTwoFilesPatch(from, path, before, after, "", "", { context: 3 });
  return { ...place(path, folder), diff, ...(isCut && { isCut }) };
}

function place(path: string, folder: string): { readonly path: string; readonly isOutside: boolean } {
  const absolute = isAbsolute(path) ? resolve(path) : resolve(folder, path);
  return { path: absolute, isOutside: !isInside(realPlace(absolute), folder) };
}

/** Returns the path with its links followed, as far as the path exists. */
function realPlace(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    const parent = dirname(path);
    // A path with a NUL character, or one that this process may not see, is taken as it is.
    if (codeOf(error) !== "ENOENT" || parent === path) return path;
    return join(realPlace(parent), basename(path));
  }
}

/** Returns the result of a call as text. A long text is cut. */
export function resultOf({ status, content, rawOutput }: ToldCall): ToolResult {
  const texts = (content ?? []).flatMap((each) => {
    if (each.type === "diff") return [`${each.path} was changed`];
    if (each.type !== "content") return [];
    return each.content.type === "text" ? [each.content.text] : [`[${each.content.type}]`];
  });
  if (texts.length === 0 && rawOutput !== undefined && rawOutput !== null)
    texts.push(typeof rawOutput === "string" ? rawOutput : JSON.stringify(nearestJson(rawOutput)));
  const text = texts.join("\n");
  const shown = text.length > longestText ? `${text.slice(0, longestText)} [cut]` : text;
  return { output: { type: "text", text: shown }, isError: status === "failed" };
}
