import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describeValue, Fault, readProperty } from "../kernel/index.ts";
import type { ExperimentResult } from "./contract.ts";

/** Returns the path of a baseline by its name, `evals/baselines/NAME.json` below a folder. */
export function baselinePath(folder: string, name: string): string {
  if (/^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u.test(name)) return join(folder, "evals", "baselines", `${name}.json`);
  throw new Fault(
    "invalid_argument",
    `invalid name ${describeValue(name)} of a baseline: expected letters, digits, dots, hyphens and underscores, such as main`,
  );
}

/** Reads the results of an earlier experiment. */
export async function readBaseline(path: string): Promise<ExperimentResult> {
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    if (readProperty(cause, "code") !== "ENOENT") throw cause;
    throw new Fault(
      "not_found",
      `the baseline ${path} does not exist; write it with reeve eval --save NAME`,
      { cause },
    );
  });
  const refuse = (why: string, cause?: unknown): Fault =>
    new Fault(
      "invalid_argument",
      `${path} is not a baseline: ${why}; write it again with reeve eval --save NAME`,
      cause === undefined ? {} : { cause },
    );
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw refuse("it is not JSON", cause);
  }
  const problem = problemOf(value);
  if (problem !== undefined) throw refuse(problem);
  return value as ExperimentResult;
}

function problemOf(value: unknown): string | undefined {
  if (typeof readProperty(value, "name") !== "string") return "it has no name";
  for (const list of ["variants", "scorers", "results"])
    if (!Array.isArray(readProperty(value, list))) return `it has no list ${list}`;
  const results = readProperty(value, "results") as readonly unknown[];
  const broken = results.findIndex((each) => !isTrial(each));
  return broken === -1 ? undefined : `results[${broken}] is no trial`;
}

function isTrial(value: unknown): boolean {
  const scores = readProperty(value, "scores");
  if (typeof readProperty(value, "caseId") !== "string" || typeof readProperty(value, "variant") !== "string")
    return false;
  if (typeof scores !== "object" || scores === null) return false;
  return Object.values(scores).every((each: unknown) => {
    const score = readProperty(each, "score");
    return score === null || (typeof score === "number" && score >= 0 && score <= 1);
  });
}

/** Writes the results of an experiment as a baseline. If the process crashes during the call, the old file remains. */
export async function writeBaseline(path: string, result: ExperimentResult): Promise<void> {
  await writeWhole(path, `${JSON.stringify(result, null, 2)}\n`);
}

/** Writes a file and creates its folders, so that no other process can read an incomplete file. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  const draft = join(folder, `.reeve-${randomUUID()}`);
  try {
    const file = await open(draft, "wx");
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
