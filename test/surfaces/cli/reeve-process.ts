import { execFile } from "node:child_process";
import { join } from "node:path";
import { inject } from "vitest";
import { repository } from "../../gates/run-node.ts";

export interface Said {
  readonly code: number;
  readonly out: readonly string[];
  readonly talk: string;
}

/** The command line of the published package. */
export const main = join(inject("builtPackage"), "dist/surfaces/cli/main.js");

/** Runs the command line in a separate process, as a user does. */
export function reeve(
  args: readonly string[],
  { cwd = repository, env = {} }: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<Said> {
  return new Promise((resolve, reject) => {
    const options = { cwd, env: { ...process.env, ...env }, timeout: 200_000 };
    const child = execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code;
      if (typeof code !== "number") reject(new Error("the command line did not finish", { cause: error }));
      else resolve({ code, out: stdout.split("\n").filter(Boolean), talk: stderr });
    });
    child.stdin?.end();
  });
}
