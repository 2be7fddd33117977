import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { Fault, readProperty, type JsonValue, type RunId, type Store } from "../../kernel/index.ts";
import { recordRun } from "./record-run.ts";
import type { RedactionCounts } from "./redaction.ts";
import { writeRecording } from "./run-recording.ts";

/** A case that was made from a stored run. */
export interface AddedCase {
  /** Id of the case: that of the run. */
  readonly id: RunId;
  /** Path of the file with the record. */
  readonly recording: string;
  /** Number of recorded model calls and tool calls. */
  readonly modelCalls: number;
  readonly toolCalls: number;
  /** How many secrets were removed, by place. */
  readonly redactions: RedactionCounts;
}

/**
 * Makes cases from stored runs. Each run becomes a line of `file`, with its input and its output as the expected
 * value, and a file with its record in the folder `NAME.recordings` beside it. Nothing is written if one of the
 * runs is refused, or if the file already contains a case with the id of one of the runs. If the process crashes
 * during the call, the old case file remains.
 */
export async function addCases(
  store: Store,
  runIds: readonly RunId[],
  file: string,
): Promise<readonly AddedCase[]> {
  const before = await caseLines(file);
  const known = new Set(before.flatMap(idOf));
  for (const [index, runId] of runIds.entries())
    if (known.has(runId) || runIds.indexOf(runId) !== index)
      throw new Fault(
        "already_exists",
        `${file} has a case ${runId}: remove its line to add the run again, or add another run`,
      );
  const runs = [];
  for (const runId of runIds) runs.push(await recordRun(store, runId));
  const folder = `${basename(file, extname(file))}.recordings`;
  await mkdir(join(dirname(file), folder), { recursive: true });
  const lines: string[] = [];
  const added: AddedCase[] = [];
  for (const { recording, redactions } of runs) {
    const { runId, input, output, calls } = recording;
    const name = `${runId.replaceAll(/[^\w.-]/gu, "_")}.json`;
    const path = join(dirname(file), folder, name);
    await writeRecording(path, recording);
    lines.push(JSON.stringify({ id: runId, input, expected: output, recording: `./${folder}/${name}` }));
    const modelCalls = calls.filter(({ kind }) => kind === "model").length;
    const toolCalls = calls.length - modelCalls;
    added.push({ id: runId as RunId, recording: path, modelCalls, toolCalls, redactions });
  }
  await writeLines(file, [...before, ...lines]);
  return added;
}

/** Returns the lines of a case file, without empty lines. Returns none if the file does not exist. */
async function caseLines(file: string): Promise<readonly string[]> {
  try {
    return (await readFile(file, "utf8")).split("\n").filter((line) => line.trim() !== "");
  } catch (cause) {
    if (readProperty(cause, "code") === "ENOENT") return [];
    throw new Fault(
      "invalid_argument",
      `the case file ${file} cannot be read: ${Fault.from(cause).message}`,
      {
        cause,
      },
    );
  }
}

function idOf(line: string): readonly string[] {
  try {
    const id = readProperty(JSON.parse(line) as JsonValue, "id");
    return typeof id === "string" ? [id] : [];
  } catch {
    // `jsonLines` names a line that is no JSON, with its number.
    return [];
  }
}

async function writeLines(file: string, lines: readonly string[]): Promise<void> {
  const draft = `${file}.${randomUUID()}.tmp`;
  try {
    await writeFile(draft, `${lines.join("\n")}\n`, { flush: true });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
