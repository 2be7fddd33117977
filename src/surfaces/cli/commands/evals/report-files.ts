import { constants } from "node:fs";
import { access, mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import {
  junitReport,
  markdownReport,
  writeWhole,
  type ExperimentReport,
} from "../../../../experiments/index.ts";
import { Fault } from "../../../../kernel/index.ts";

/** The files to which a command writes its reports. */
export interface ReportFiles {
  readonly json?: string;
  readonly junit?: string;
  readonly markdown?: string;
}

const formats = {
  json: (reports) => `${JSON.stringify(reports, null, 2)}\n`,
  junit: junitReport,
  markdown: (reports) => reports.map(markdownReport).join("\n"),
} as const satisfies Record<keyof ReportFiles, (reports: readonly ExperimentReport[]) => string>;

const names = Object.keys(formats) as readonly (keyof ReportFiles)[];

/**
 * Creates the folders of the files. Throws `invalid_argument` if a file cannot be written. This is checked before a
 * run costs money.
 */
export async function prepareReports(files: ReportFiles): Promise<void> {
  for (const name of names) {
    const file = files[name];
    if (file === undefined) continue;
    try {
      await requireWritable(resolve(file));
    } catch (cause) {
      throw new Fault(
        "invalid_argument",
        `invalid --${name} ${file}: no file can be written there (${Fault.from(cause).message}); name another one`,
        { cause },
      );
    }
  }
}

export async function writeReports(reports: readonly ExperimentReport[], files: ReportFiles): Promise<void> {
  for (const name of names) {
    const file = files[name];
    if (file !== undefined) await writeWhole(resolve(file), formats[name](reports));
  }
}

async function requireWritable(path: string): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  await access(folder, constants.W_OK);
  const found = await stat(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  });
  if (found?.isDirectory() === true) throw new Error("it is a folder");
}
