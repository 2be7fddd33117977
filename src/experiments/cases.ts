import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
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
  /** What scorers compare the output with. Default: `null`. */
  readonly expected?: JsonValue;
  /** Words by which cases are selected. Default: none. */
  readonly tags?: readonly string[];
  /** Path of the file that holds the recorded replies and tool results of a stored run. Default: none. */
  readonly recording?: string;
  /** Whether tool calls are answered from the recording. Default: the option `tools` of the experiment. */
  readonly tools?: ToolMode;
  /** Whether model calls are answered from the recording. Default: the option `model` of the experiment. */
  readonly model?: ModelMode;
}

/** Where the cases of an experiment come from: a list, or a function such as `jsonLines(path)`, which is called once per process. */
export type CaseSource = readonly GivenCase[] | (() => MaybePromise<readonly GivenCase[]>);

export const toolModes = ["recorded", "recorded-or-live", "live"] as const satisfies readonly ToolMode[];
export const modelModes = ["recorded", "live"] as const satisfies readonly ModelMode[];

const caseTable = optionTable({
  id: is.text({ required: true, empty: false }),
  input: is.checkedBy(checkInput),
  expected: is.any,
  tags: is.list({ of: is.text({ empty: false }) }),
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

/** Reads cases from a file with one JSON object per line. Empty lines are skipped. A wrong line is an error with file and line. */
export function jsonLines(path: string): () => Promise<readonly GivenCase[]> {
  is.text({ required: true, empty: false }).check?.(path, "path", "jsonLines()");
  return async () => {
    const text = await readFile(path, "utf8").catch((error: unknown) => {
      throw new Fault(
        "invalid_argument",
        `the case file ${path} cannot be read: ${error instanceof Error ? error.message : String(error)}; a relative path starts at the folder of the process`,
        { cause: error },
      );
    });
    return text.split(/\r?\n/u).flatMap((line, index) => {
      if (line.trim() === "") return [];
      const place = `${path}:${index + 1}`;
      const { recording, ...given } = readCase(parseLine(line, place), place);
      return [recording === undefined ? given : { ...given, recording: besideFile(path, recording) }];
    });
  };
}

/** A path in a case file starts at the folder of that file. */
function besideFile(file: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(file), path);
}

function parseLine(line: string, place: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new Fault(
      "invalid_argument",
      `${place} is not JSON: ${error instanceof Error ? error.message : String(error)}; expected one object per line, such as {"id":"a","input":"..."}`,
      { cause: error },
    );
  }
}

/** Checks a case. `place` says where it is, such as `cases.jsonl:3`. */
function readCase(given: unknown, place: string): GivenCase {
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
  #read: Promise<ReadCases> | undefined;

  /** `owner` names the experiment in errors. A list is checked here, and the result of a function when it is called. */
  constructor(owner: string, source: CaseSource) {
    this.#owner = owner;
    this.#source = source;
    if (typeof source === "function") return;
    this.#read = Promise.resolve(checkedCases(owner, source));
  }

  /** Returns the cases. An error of the source is thrown again until a call succeeds. */
  all(): Promise<ReadCases> {
    this.#read ??= this.#load();
    return this.#read;
  }

  async #load(): Promise<ReadCases> {
    try {
      return checkedCases(this.#owner, await (this.#source as () => MaybePromise<readonly GivenCase[]>)());
    } catch (error) {
      this.#read = undefined;
      throw error;
    }
  }
}

/** Checked cases, and a digest that changes with any of them. */
export interface ReadCases {
  readonly cases: readonly ExperimentCase[];
  readonly digest: string;
}

function checkedCases(owner: string, given: unknown): ReadCases {
  if (!Array.isArray(given))
    throw new Fault(
      "invalid_argument",
      `invalid cases of ${owner}: expected a list of cases, or a function that returns one, not ${describeValue(given)}; use jsonLines("./cases.jsonl") or [{ id, input, expected }]`,
    );
  if (given.length === 0)
    throw new Fault("invalid_argument", `${owner} has no cases: expected at least one; check the case file`);
  const places = new Map<string, number>();
  const cases = given.map((each: unknown, index): ExperimentCase => {
    const { id, input, expected, tags, recording, tools, model } = readCase(
      each,
      `entry ${index + 1} of cases of ${owner}`,
    );
    const before = places.get(id);
    if (before !== undefined)
      throw new Fault(
        "invalid_argument",
        `duplicate case id ${JSON.stringify(id)} of ${owner}: entries ${before + 1} and ${index + 1} have it; give each case an id of its own`,
      );
    places.set(id, index);
    if (recording === undefined && (tools ?? model) !== undefined)
      throw new Fault(
        "invalid_argument",
        `case ${JSON.stringify(id)} of ${owner} has tools or model, but no recording that answers calls: add one with reeve eval add, or omit them`,
      );
    return {
      id,
      input,
      expected: expected ?? null,
      tags: tags ?? [],
      recording: recording ?? null,
      ...(tools !== undefined && { tools }),
      ...(model !== undefined && { model }),
    };
  });
  return { cases, digest: sha256Hex(canonicalJson(cases)) };
}
