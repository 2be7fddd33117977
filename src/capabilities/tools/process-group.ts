import { spawn, type ChildProcess } from "node:child_process";
import { Fault, type CancelSignal } from "../../kernel/index.ts";
import { codeOf } from "../files/file-root.ts";

export interface ProcessGroupOptions {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Between asking it to end and ending it. */
  readonly graceMs: number;
  readonly signal: CancelSignal;
  readonly onOutput: (chunk: Buffer) => void;
}

export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly killedBy: string | null;
  readonly isTimedOut: boolean;
}

/** How long what a killed group left in the pipes may take to come: someone who left the group may hold them for ever. */
const drainMs = 1_000;

/**
 * Runs a program in a process group of its own, and ends the whole group with it: when it exits, takes too long or is stopped. SIGTERM
 * first, SIGKILL after `graceMs`. A process that makes a session of its own leaves the group, and only a sandbox holds it.
 */
export function runGroup(options: ProcessGroupOptions): Promise<ProcessEnd> {
  const { program, args, cwd, env, timeoutMs, graceMs, signal, onOutput } = options;
  if (process.platform === "win32")
    throw new Fault("unsupported", "commands are run in process groups, which Windows does not have");
  signal.throwIfAborted();
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let isTimedOut = false;
    let killing: NodeJS.Timeout | undefined;
    let draining: NodeJS.Timeout | undefined;
    const end = (): void => {
      killGroup(child, "SIGTERM");
      killing ??= setTimeout(() => killGroup(child, "SIGKILL"), graceMs);
    };
    const timer = setTimeout(() => {
      isTimedOut = true;
      end();
    }, timeoutMs);
    signal.addEventListener("abort", end, { once: true });
    const clear = (): void => {
      clearTimeout(timer);
      clearTimeout(killing);
      clearTimeout(draining);
      signal.removeEventListener("abort", end);
    };
    child.stdout.on("data", onOutput);
    child.stderr.on("data", onOutput);
    child.once("error", (error) => {
      clear();
      reject(new Fault("tool_failed", `${program} could not be started: ${error.message}`, { cause: error }));
    });
    child.once("exit", () => {
      clearTimeout(timer);
      // What it left running in its group goes with it.
      killGroup(child, "SIGKILL");
      draining = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, drainMs);
    });
    child.once("close", (exitCode, killedBy) => {
      clear();
      if (signal.aborted) reject(signal.reason as Error);
      else resolve({ exitCode, killedBy, isTimedOut });
    });
  });
}

function killGroup({ pid }: ChildProcess, how: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, how);
  } catch (error) {
    // It is gone already. macOS says EPERM of a group that only has dead processes.
    if (codeOf(error) !== "ESRCH" && codeOf(error) !== "EPERM") throw error;
  }
}
