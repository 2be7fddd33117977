import { execFile } from "node:child_process";
import { delimiter, dirname } from "node:path";
import { fileURLToPath } from "node:url";

export const repository = fileURLToPath(new URL("../../", import.meta.url));

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program to its end and returns its output, whatever its exit code. The Node of this process is first on the
 * PATH, because some tools start Node by its name. The function rejects only if the program cannot start or exceeds its
 * timeout, which is shorter than that of the test.
 */
export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  timeoutMs = 200_000,
): Promise<Finished> {
  const env = { ...process.env, PATH: [dirname(process.execPath), process.env["PATH"]].join(delimiter) };
  return new Promise((resolve, reject) => {
    execFile(
      program,
      args,
      { cwd, env, maxBuffer: 64 * 1024 * 1024, timeout: timeoutMs },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        if (typeof code === "number") resolve({ code, stdout, stderr });
        else {
          const said = `${stdout.slice(-2_000)}${stderr.slice(-2_000)}`;
          reject(new Error(`${program} ${args.join(" ")} did not finish: ${said}`, { cause: error }));
        }
      },
    );
  });
}

export function runNode(args: readonly string[], cwd: string): Promise<Finished> {
  return run(process.execPath, args, cwd);
}
