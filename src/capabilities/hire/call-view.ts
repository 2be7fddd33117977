import type {
  PermissionOption,
  ToolCallContent,
  ToolCallLocation,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { createTwoFilesPatch } from "diff";
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

/** What an agent has told of one of its calls so far. Later updates replace single members. */
export type ToldCall = Omit<ToolCallUpdate, "sessionUpdate">;

/** Length of the texts of a diff, and of a result, from which on they are cut. */
const longestText = 65_536;
/** Number of places and diffs of a call that are shown. */
const mostPlaces = 50;

/** Names of arguments that hold paths. */
const pathArgument = /(?:^|_)(?:path|file|dir|folder|cwd|root)/iu;

/** The members of a call that an update leaves as they are. */
export function updatedCall(before: ToldCall | undefined, update: ToldCall): ToldCall {
  const given = Object.entries(update).filter(([, value]) => value !== undefined && value !== null);
  return { ...before, ...Object.fromEntries(given), toolCallId: update.toolCallId };
}

/** The name of the tool of a call, as permission rules see it: its name, or its kind if the agent gives no name. */
export function toolNameOf({ name, kind }: ToldCall): string {
  return name || kind || "tool";
}

/** The call as a person and the log see it. Nothing of it is checked. */
export function foreignCall(
  call: ToldCall,
  folder: string,
  options: readonly PermissionOption[] = [],
): ForeignCall {
  const input = call.rawInput === undefined ? null : nearestJson(call.rawInput);
  return {
    callId: call.toolCallId,
    toolName: toolNameOf(call),
    input,
    view: viewOf(call, input, folder, options),
  };
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
      options: options.map((option) => ({ kind: option.kind, name: option.name })),
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

/** The paths among the arguments, because an agent may leave out where a call works. */
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

/** The path with its links followed, as far as it exists. */
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

/** What a call has returned, as text. A long text is cut. */
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
