import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { getCallSites } from "node:util";
import { Fault, is } from "../kernel/index.ts";
import { placeCase, readCase, type GivenCase } from "./cases.ts";

/**
 * Reads cases from a file with one JSON object per line. Empty lines are skipped. A wrong line is an error with
 * file and line. A relative path is resolved against the folder of the file that calls this function. A path in a
 * case is resolved against the folder of the case file.
 */
export function jsonLines(path: string | URL): () => Promise<readonly GivenCase[]> {
  if (!(path instanceof URL)) is.text({ required: true, empty: false }).check?.(path, "path", "jsonLines()");
  const file = path instanceof URL ? fileURLToPath(path) : resolve(callerFolder(), path);
  return async () => {
    const text = await readFile(file, "utf8").catch((error: unknown) => {
      throw new Fault(
        "invalid_argument",
        `the case file ${file} cannot be read: ${error instanceof Error ? error.message : String(error)}; a relative path starts at the folder of the file that calls jsonLines()`,
        { cause: error },
      );
    });
    // Editors of Windows may begin a file with a byte order mark.
    return text
      .replace(/^\uFEFF/u, "")
      .split(/\r?\n/u)
      .flatMap((line, index) => {
        if (line.trim() === "") return [];
        const place = `${file}:${index + 1}`;
        const { recording, files, ...given } = readCase(parseLine(line, place), place);
        const beside = (each: string): string => (isAbsolute(each) ? each : join(dirname(file), each));
        const read = {
          ...given,
          ...(recording !== undefined && { recording: beside(recording) }),
          ...(files !== undefined && { files: files.map(beside) }),
        };
        placeCase(read, place);
        return [read];
      });
  };
}

/**
 * Returns the folder of the module that called the caller of this function. For code without a file, returns the
 * working directory of the process.
 */
function callerFolder(): string {
  const script = getCallSites(3)[2]?.scriptName ?? "";
  if (script.startsWith("file:")) return dirname(fileURLToPath(script));
  return isAbsolute(script) ? dirname(script) : process.cwd();
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
