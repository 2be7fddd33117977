import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { Duplex, type Readable } from "node:stream";
import { Fault, type CancelSignal } from "../../kernel/index.ts";
import { codeOf } from "../files/error-code.ts";
import type { Descriptor } from "../sandbox/bubblewrap.ts";

/** Options of `runGroup()`. */
export interface ProcessGroupOptions {
  /** Program to start, by path or by name in the PATH. */
  readonly program: string;
  /** Arguments of the program. */
  readonly args: readonly string[];
  /** Working directory of the program. */
  readonly cwd: string;
  /** Environment variables of the program. No others are passed. */
  readonly env: Readonly<Record<string, string>>;
  /** Descriptors of the program from 3 on. */
  readonly descriptors: readonly Descriptor[];
  /** Maximum duration of the program, in milliseconds. */
  readonly timeoutMs: number;
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** Stops the group when it is aborted; the call then rejects with the signal's reason. */
  readonly signal: CancelSignal;
  /** Watches a limit of the program. Called with a function that stops the group; the returned function ends the watch. */
  readonly watch?: (stop: () => void) => () => void;
  /** Receives standard output and standard error as they arrive. */
  readonly onOutput: (chunk: Buffer) => void;
}

/** How a program ended. */
export interface ProcessEnd {
  /** Exit code. `null` means that a signal ended the program. */
  readonly exitCode: number | null;
  /** Name of the signal that ended the program, if any. */
  readonly killedBy: string | null;
  /** Whether the program was stopped because it reached `timeoutMs`. */
  readonly isTimedOut: boolean;
  /** Whether the program was stopped because `watch` found it over its limit. */
  readonly isOverLimit: boolean;
}

/**
 * Maximum wait for remaining output after the group was killed, in milliseconds. It is limited, because a process
 * that left the group may keep the pipes open.
 */
const drainMs = 1_000;

/**
 * Runs a program in its own process group and ends the whole group when the program exits, times out or is cancelled:
 * SIGTERM first, SIGKILL after `graceMs`. A process that starts its own session leaves the group; only a sandbox ends
 * such a process.
 */
export async function runGroup(options: ProcessGroupOptions): Promise<ProcessEnd> {
  const { program, args, cwd, env, descriptors, timeoutMs, graceMs, signal, watch, onOutput } = options;
  if (process.platform === "win32")
    throw new Fault(
      "unsupported",
      "commands cannot run on Windows, which has no process groups; use Linux or macOS",
    );
  signal.throwIfAborted();
  const extra = descriptors.map((each) => (typeof each === "number" ? each : "pipe"));
  const child = spawn(program, args, {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe", ...extra],
  }) as ChildProcessByStdio<null, Readable, Readable>;
  connectDescriptors(child, descriptors);
  return new Promise((resolve, reject) => {
    let isTimedOut = false;
    let isOverLimit = false;
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
    const endWatch = watch?.(() => {
      isOverLimit = true;
      killGroup(child, "SIGKILL");
    });
    signal.addEventListener("abort", end, { once: true });
    const clear = (): void => {
      clearTimeout(timer);
      clearTimeout(killing);
      clearTimeout(draining);
      endWatch?.();
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
      // Processes that the program left in its group end with it.
      killGroup(child, "SIGKILL");
      draining = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, drainMs);
    });
    child.once("close", (exitCode, killedBy) => {
      clear();
      if (signal.aborted) reject(signal.reason as Error);
      else resolve({ exitCode, killedBy, isTimedOut, isOverLimit });
    });
  });
}

/** Connects the descriptors from 3 on: sends texts and reads answers. A program that ends before it has read a text reports its own error. */
export function connectDescriptors({ stdio }: ChildProcess, descriptors: readonly Descriptor[]): void {
  for (const [index, each] of descriptors.entries()) {
    const pipe = stdio[index + 3];
    if (typeof each === "number" || !(pipe instanceof Duplex)) continue;
    pipe.once("error", ignoreClosed);
    if (typeof each === "string") pipe.end(each);
    else pipe.setEncoding("utf8").on("data", each);
  }
}

export function ignoreClosed(error: Error): void {
  if (codeOf(error) !== "EPIPE" && codeOf(error) !== "ECONNRESET") throw error;
}

/** Sends a signal to the group of a process. Does nothing if all its processes have ended. */
export function killGroup({ pid }: Pick<ChildProcess, "pid">, how: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, how);
  } catch (error) {
    // The group is gone already. macOS reports EPERM for a group whose processes are all dead.
    if (codeOf(error) !== "ESRCH" && codeOf(error) !== "EPERM") throw error;
  }
}
