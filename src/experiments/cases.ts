import { readFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { imageType } from "../capabilities/index.ts";
import { sha256Hex } from "../runtime/index.ts";
import {
  assertJson,
  canonicalJson,
  describeValue,
  Fault,
  is,
  isUserPart,
  optionTable,
  type JsonValue,
  type MaybePromise,
  type OptionKinds,
  type UserPart,
} from "../kernel/index.ts";
import type { ExperimentCase, ModelMode, ToolMode } from "./contract.ts";

/** A case as a list or a file gives it. */
export interface GivenCase {
  /** Id of the case, unique in the experiment. */
  readonly id: string;
  /** Input of the agent: a text, or content parts with images and files. */
  readonly input: string | readonly UserPart[];
  /** The expected value, with which scorers compare the output. Default: `null`. */
  readonly expected?: JsonValue;
  /** Tags by which cases can be selected. Default: none. */
  readonly tags?: readonly string[];
  /** Paths of files that are attached to the input. Default: none. */
  readonly files?: readonly string[];
  /** Path of the file with the recorded replies and tool results of a stored run. Default: none. */
  readonly recording?: string;
  /** Whether tool calls are answered from the recording. Default: the option `tools` of the experiment. */
  readonly tools?: ToolMode;
  /** Whether model calls are answered from the recording. Default: the option `model` of the experiment. */
  readonly model?: ModelMode;
}

/**
 * The source of an experiment's cases: a list, or a function such as `jsonLines(path)`, which is called once per
 * process.
 */
export type CaseSource = readonly GivenCase[] | (() => MaybePromise<readonly GivenCase[]>);

export const toolModes = ["recorded", "recorded-or-live", "live"] as const satisfies readonly ToolMode[];
export const modelModes = ["recorded", "live"] as const satisfies readonly ModelMode[];

const caseTable = optionTable({
  id: is.text({ required: true, empty: false }),
  input: is.checkedBy(checkInput),
  expected: is.any,
  tags: is.list({ of: is.text({ empty: false }) }),
  files: is.list({ of: is.text({ empty: false }) }),
  recording: is.text({ empty: false }),
  tools: is.choice(toolModes),
  model: is.choice(modelModes),
} satisfies OptionKinds<GivenCase>);

function checkInput(input: unknown, option: string, owner: string): void {
  if (typeof input === "string") return;
  if (Array.isArray(input) && input.length > 0 && input.every(isUserPart)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${option} of ${owner}: expected a text, or a list of text, image and file parts, not ${describeValue(input)}`,
  );
}

/** The places of cases in files, such as `cases.jsonl:3`. */
const places = new WeakMap<GivenCase, string>();

/** Stores the place of a case in its file, for error messages. */
export function placeCase(given: GivenCase, place: string): void {
  places.set(given, place);
}

/** Checks a case. `place` is its place, such as `cases.jsonl:3`. */
export function readCase(given: unknown, place: string): GivenCase {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new Fault(
      "invalid_argument",
      `invalid case at ${place}: expected an object with id and input, not ${describeValue(given)}`,
    );
  const read = caseTable.read(`the case at ${place}`, given as GivenCase);
  checkInput(read.input, "input", `the case at ${place}`);
  assertJson(read, `the case at ${place}`);
  return read;
}

/** The cases of an experiment. The source is read once per process. */
export class CaseList {
  readonly #owner: string;
  readonly #source: CaseSource;
  readonly #checked: readonly CheckedCase[] | undefined;
  #read: Promise<ReadCases> | undefined;

  /**
   * `owner` is the name of the experiment for errors. A list is checked immediately; the result of a function is
   * checked when the function is called.
   */
  constructor(owner: string, source: CaseSource) {
    this.#owner = owner;
    this.#source = source;
    if (typeof source !== "function") this.#checked = checkedCases(owner, source);
  }

  /** Returns the cases. If the source fails, its error is thrown, and the next call tries again. */
  all(): Promise<ReadCases> {
    this.#read ??= this.#load();
    return this.#read;
  }

  async #load(): Promise<ReadCases> {
    try {
      const source = this.#source as () => MaybePromise<readonly GivenCase[]>;
      return await readFiles(this.#checked ?? checkedCases(this.#owner, await source()));
    } catch (error) {
      this.#read = undefined;
      throw error;
    }
  }
}

/** Checked cases, and a digest that changes if any case changes. */
export interface ReadCases {
  readonly cases: readonly ExperimentCase[];
  readonly digest: string;
}

/** A case whose files are not read yet. */
interface CheckedCase {
  readonly asked: ExperimentCase;
  readonly files: readonly string[];
  readonly place: string;
}

async function readFiles(checked: readonly CheckedCase[]): Promise<ReadCases> {
  const cases: ExperimentCase[] = [];
  for (const { asked, files, place } of checked)
    cases.push(files.length === 0 ? asked : { ...asked, input: await withFiles(asked.input, files, place) });
  return { cases, digest: sha256Hex(canonicalJson(cases)) };
}

function checkedCases(owner: string, given: unknown): readonly CheckedCase[] {
  if (!Array.isArray(given))
    throw new Fault(
      "invalid_argument",
      `invalid cases of ${owner}: expected a list of cases, or a function that returns one, not ${describeValue(given)}; use jsonLines("./cases.jsonl") or [{ id, input, expected }]`,
    );
  if (given.length === 0)
    throw new Fault("invalid_argument", `${owner} has no cases: expected at least one; check the case file`);
  const known = new Map<string, string>();
  return given.map((each: unknown, index): CheckedCase => {
    const inFile = typeof each === "object" && each !== null ? places.get(each as GivenCase) : undefined;
    const place = inFile ?? `entry ${index + 1} of cases of ${owner}`;
    const { id, input, expected, tags, files = [], recording, tools, model } = readCase(each, place);
    const before = known.get(id);
    if (before !== undefined)
      throw new Fault(
        "invalid_argument",
        `duplicate case id ${JSON.stringify(id)} of ${owner}: ${before} and ${place} have it; give each case a different id`,
      );
    known.set(id, place);
    if (recording === undefined && (tools ?? model) !== undefined)
      throw new Fault(
        "invalid_argument",
        `case ${JSON.stringify(id)} of ${owner} has tools or model, but no recording that answers calls: add one with reeve eval add, or omit them`,
      );
    const asked: ExperimentCase = {
      id,
      input,
      expected: expected ?? null,
      tags: tags ?? [],
      recording: recording ?? null,
      ...(tools !== undefined && { tools }),
      ...(model !== undefined && { model }),
    };
    return { asked, files, place };
  });
}

/** Media types of files other than images, by their extensions. */
const mediaTypes: Readonly<Record<string, string>> = {
  ".pdf": "application/pdf",
  ".json": "application/json",
  ".csv": "text/csv",
  ".html": "text/html",
  ".md": "text/markdown",
  ".txt": "text/plain",
};

/** Returns the input of a case with the content of its files. `place` is the place of the case, for errors. */
async function withFiles(
  input: string | readonly UserPart[],
  files: readonly string[],
  place: string,
): Promise<readonly UserPart[]> {
  const parts = await Promise.all(files.map((file) => filePart(file, place)));
  return [...(typeof input === "string" ? [{ type: "text", text: input } as const] : input), ...parts];
}

async function filePart(file: string, place: string): Promise<UserPart> {
  const bytes = await readFile(file).catch((error: unknown) => {
    throw new Fault(
      "invalid_argument",
      `${place}: the attached file ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  });
  const source = { kind: "base64", data: bytes.toString("base64") } as const;
  const image = imageType(bytes);
  if (image !== undefined) return { type: "image", mediaType: image, source };
  const mediaType = mediaTypes[extname(file).toLowerCase()] ?? "application/octet-stream";
  return { type: "file", mediaType, source, filename: basename(file) };
}
