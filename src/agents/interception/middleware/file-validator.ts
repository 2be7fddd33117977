import {
  MiddlewareTermination,
  type JsonValue,
  type MediaSource,
  type ToolOutput,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import type { Layer } from "./layer.ts";
import { selects, toolSelection, type ToolSelection } from "./tool-selection.ts";

/**
 * Whether `path` is `root` or below it, judged only by names: `.` and `..` are resolved, both kinds of slashes
 * count, and a relative path starts at the root. A name that no file system accepts is outside. A URL such as
 * `https://...` is not a path.
 */
function isInside(root: string, path: string): boolean {
  if (path.includes("\0") || path.startsWith("~") || /(?:^|\W)file:/iu.test(path)) return false;
  // The address of something that is not a file. A tool that reads it as a name stays below its folder.
  if (/^[a-z][a-z\d+.-]+:\/\//iu.test(path)) return segments(path) !== undefined;
  if (/^[a-z][a-z\d+.-]+:/iu.test(path)) return false;
  const [base, asked] = [segments(root), segments(path)];
  if (base === undefined || asked === undefined) return false;
  if (!isAbsolute(path)) return true;
  if (!isAbsolute(root)) return false;
  return base.every((segment, index) => asked[index] === segment);
}

function isAbsolute(path: string): boolean {
  return /^(?:[/\\]|[a-z]:)/iu.test(path);
}

/**
 * Returns the segments of a path, or `undefined` if it leaves its starting folder. A drive letter is an ordinary
 * segment.
 */
function segments(path: string): readonly string[] | undefined {
  const names: string[] = [];
  for (const name of path.split(/[/\\]+/u)) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) return undefined;
  }
  return names;
}

/** Options of `fileValidator`. */
export interface FileValidatorOptions {
  /** The tools to check. Default: all. */
  readonly tools?: ToolSelection;
  /** Folders in which paths must be. If absent, paths are not checked. */
  readonly roots?: readonly string[];
  /**
   * Names of the arguments with a path, or with a list or an object of paths. They are found at any depth: `path`
   * is found in `{ files: [{ path }] }`. Names of members can also be paths: `{ files: { "src/a.js": "..." } }`.
   * Default: `path`, `paths`, `file`, `files`, `filePath`, `file_path`, `filename`, `directory`.
   */
  readonly pathArguments?: readonly string[];
  /** Allowed file name extensions, such as `.md`. Default: all. */
  readonly extensions?: readonly string[];
  /** Maximum size in bytes of one argument, and of one text, image or file of a result. */
  readonly maxBytes?: number;
  /** Allowed media types of images and files in results, such as `image/png` or `image/*`. Default: all. */
  readonly mediaTypes?: readonly string[];
  /** `"refuse"` returns an error result to the model; `"terminate"` stops the run. Default: `"refuse"`. */
  readonly onInvalid?: "refuse" | "terminate";
}

const usualPathArguments = [
  "path",
  "paths",
  "file",
  "files",
  "filePath",
  "file_path",
  "filename",
  "directory",
];

const knownOptions = optionTable({
  tools: toolSelection,
  roots: is.list({ of: is.text() }),
  pathArguments: is.list({ of: is.text() }),
  extensions: is.list({ of: is.text() }),
  maxBytes: is.number({ from: 0 }),
  mediaTypes: is.list({ of: is.text() }),
  onInvalid: is.choice(["refuse", "terminate"], { default: "refuse" }),
} satisfies OptionKinds<FileValidatorOptions>);

/**
 * Creates middleware that checks the path, size and type of the files in tool arguments and results. It checks only
 * names and does not follow links; use a sandbox for that.
 */
export function fileValidator(options: FileValidatorOptions): Layer {
  const { tools = () => true, onInvalid } = knownOptions.read("fileValidator()", options);
  const selected = selects(tools);

  function refuse(problem: string): ToolResult {
    if (onInvalid === "terminate") throw new MiddlewareTermination(problem, { by: "file-validator" });
    return { output: { type: "text", text: `[refused: ${problem}]` }, isError: true };
  }

  return {
    name: "file-validator",
    function: async (context, next) => {
      if (!selected(context.tool)) return next();
      const asked = argumentProblem(context.arguments, options);
      if (asked !== undefined) {
        context.result = refuse(asked);
        return;
      }
      await next();
      const given = context.result && outputProblem(context.result.output, options);
      if (given !== undefined) context.result = refuse(given);
    },
  };
}

function argumentProblem(
  input: Readonly<Record<string, JsonValue>>,
  options: FileValidatorOptions,
): string | undefined {
  const { maxBytes = Infinity } = options;
  if (maxBytes !== Infinity)
    for (const [name, value] of Object.entries(input)) {
      const size = bytesOf(typeof value === "string" ? value : JSON.stringify(value));
      if (size > maxBytes) return `${name} has ${size} bytes; at most ${maxBytes} are allowed`;
    }
  for (const path of pathsIn(input, options)) {
    const problem = pathProblem(path, options);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/**
 * Matches the names of members that contain the content of a file, or words about the file, in addition to its
 * path.
 */
const contentNames =
  /^(?:body|code|contents?|data|description|diff|message|(?:old|new)_?(?:str|string|text|content)|patch|reason|replace|replacement|search|text|title)$/iu;

/** Matches the name of a member that is a path: it has a folder, a drive, a home folder or an extension. */
const pathNames = /[/\\~\0]|\.[a-z\d]+\s*$|\.\.|^\s*[a-z]:/iu;

/** Matches a path that points outward: it is absolute, begins at a home folder or leaves its folder. */
const outward = /^(?:[/\\~]|[a-z]:[/\\]|file:)|(?:^|[/\\])\.\.(?:[/\\]|$)/iu;

/**
 * Which strings in a value count as paths. `all`: every string. `outward`: those that point outward; used for
 * members beside a path. `alone`: those that are nothing but a path that points outward; used for the content of a
 * file whose path is the member's name. `none`: no string.
 */
type PathUse = "all" | "outward" | "alone" | "none";

/**
 * Yields the paths in arguments, at any depth: the strings under the name of a path argument, those in its lists
 * and objects, and names of members there, as in `{ files: { "src/a.js": "..." } }`. Contents beside a path do not
 * count as paths.
 */
function pathsIn(
  input: Readonly<Record<string, JsonValue>>,
  { pathArguments = usualPathArguments }: FileValidatorOptions,
): readonly string[] {
  const paths: string[] = [];
  const open: (readonly [value: JsonValue, use: PathUse])[] = [[input, "none"]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, use] = next;
    if (typeof value === "string" && isPath(value.trim(), use)) paths.push(value.trim());
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) for (const each of value as readonly JsonValue[]) open.push([each, use]);
    else {
      const entries = Object.entries(value as Readonly<Record<string, JsonValue>>);
      const isNamed = entries.some(([name]) => pathArguments.includes(name));
      const isBeside = use === "alone" || !entries.every(([name]) => contentNames.test(name));
      for (const [name, each] of entries)
        if (pathArguments.includes(name)) open.push([each, "all"]);
        else if (use === "none" || (isBeside && contentNames.test(name))) open.push([each, "none"]);
        else if (pathNames.test(name)) {
          paths.push(name.trim());
          open.push([each, "alone"]);
        } else open.push([each, isNamed ? "outward" : use]);
    }
  }
  return paths;
}

function isPath(text: string, use: PathUse): boolean {
  if (use === "all" || use === "none") return use === "all";
  return outward.test(text) && (use === "outward" || !/[\s*]/u.test(text));
}

function pathProblem(path: string, { roots = [], extensions }: FileValidatorOptions): string | undefined {
  if (roots.length > 0 && !roots.some((root) => isInside(root, path)))
    return `path ${JSON.stringify(path)} is outside of ${roots.join(", ")}`;
  if (
    extensions !== undefined &&
    !extensions.some((ending) => path.toLowerCase().endsWith(ending.toLowerCase()))
  )
    return `path ${JSON.stringify(path)} does not end in ${extensions.join(", ")}`;
  return undefined;
}

function outputProblem(output: ToolOutput, options: FileValidatorOptions): string | undefined {
  const { maxBytes = Infinity, mediaTypes } = options;
  const parts =
    output.type === "content"
      ? output.parts
      : [
          {
            type: "text",
            text: output.type === "text" ? output.text : JSON.stringify(output.value),
          } as const,
        ];
  for (const part of parts) {
    const size =
      maxBytes === Infinity ? 0 : part.type === "text" ? bytesOf(part.text) : sourceBytes(part.source);
    if (size > maxBytes) return `the result has ${size} bytes; at most ${maxBytes} are allowed`;
    if (part.type === "text" || mediaTypes === undefined) continue;
    if (!mediaTypes.some((allowed) => matches(allowed, part.mediaType)))
      return `the result is ${part.mediaType}; allowed are ${mediaTypes.join(", ")}`;
  }
  return undefined;
}

function matches(allowed: string, mediaType: string): boolean {
  const type = (mediaType.split(";")[0] ?? "").trim().toLowerCase();
  return allowed.endsWith("/*")
    ? type.startsWith(allowed.slice(0, -1).toLowerCase())
    : type === allowed.toLowerCase();
}

/** Returns the size of embedded media. Media given by URL count as 0. */
function sourceBytes(source: MediaSource): number {
  if (source.kind === "base64") return base64Bytes(source.data);
  const [, data] = /^data:[^,]*;base64,(.*)$/su.exec(source.url) ?? [];
  return data === undefined ? (source.url.startsWith("data:") ? bytesOf(source.url) : 0) : base64Bytes(data);
}

function base64Bytes(data: string): number {
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return Math.max(0, Math.floor((data.length * 3) / 4) - padding);
}

/** The length of a text in UTF-8 bytes. */
function bytesOf(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    // Each half of a surrogate pair counts two of its four bytes.
    bytes += unit < 0x80 ? 1 : unit < 0x8_00 || (unit >= 0xd8_00 && unit <= 0xdf_ff) ? 2 : 3;
  }
  return bytes;
}
