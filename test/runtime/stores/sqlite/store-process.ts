import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const script = fileURLToPath(new URL("store-process-main.ts", import.meta.url));

/** Another process that has the store's file open. It is killed when the test ends. */
export interface StoreProcess {
  readonly pid: number;
  /** Resolves with the next line that the process prints. */
  line(): Promise<string>;
  /** Resolves, after the process has ended, with all lines that were printed and not read yet. Call `kill` first. */
  rest(): Promise<readonly string[]>;
  say(line: string): void;
  /** Sends SIGKILL. Resolves when the process has exited. */
  kill(): Promise<void>;
}

/** Starts a process that runs a task of `store-process-main.ts`. Resolves when the process prints `ready`. */
export async function startProcess(path: string, task: string, ...args: string[]): Promise<StoreProcess> {
  const child = spawn(process.execPath, [script, path, task, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error("the process did not start");
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) process.kill(pid, "SIGKILL");
    await exited;
  };
  onTestFinished(kill);
  const line = async (): Promise<string> => {
    const next = await lines.next();
    if (next.done === true) throw new Error("the process ended without printing another line");
    return next.value;
  };
  const rest = async (): Promise<readonly string[]> => {
    const left: string[] = [];
    for (let next = await lines.next(); next.done !== true; next = await lines.next()) left.push(next.value);
    return left;
  };
  if ((await line()) !== "ready") throw new Error("the process did not become ready");
  return { pid, line, rest, kill, say: (text) => child.stdin.write(`${text}\n`) };
}
