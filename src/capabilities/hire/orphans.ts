import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { codeOf } from "../files/error-code.ts";
import { killGroup } from "../tools/process-group.ts";

/** A process that an attempt has started. JSON. */
export type StartedProcess = {
  /** Id of the process and of its group. */
  readonly pid: number;
  /**
   * Start time of the process, in the form of the system. It distinguishes the process from another one with the
   * same id.
   */
  readonly startedAt: string;
};

/** Variable that all processes of a hired task inherit. Its value is the mark of the attempt. */
export const taskVariable = "REEVE_HIRED_TASK";

/**
 * Returns a new mark of an attempt. Each attempt has its own mark, so that an owner that has lost the run ends only
 * its own processes, and not those that the next owner has started for the same task. The mark does not depend on
 * the run id, because runs of other stores may have the same id.
 */
export function newMark(): string {
  return randomUUID();
}

/** Describes a process of this machine. `undefined` if it has ended. */
export async function startedProcess(pid: number): Promise<StartedProcess | undefined> {
  const startedAt = process.platform === "linux" ? startOnLinux(pid) : await startByPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

/**
 * Ends the process group that an earlier attempt has left behind. If a process with the same id started at another
 * time, it is not ended. Returns whether there was such a group.
 */
export async function endOrphan({ pid, startedAt }: StartedProcess): Promise<boolean> {
  if ((await startedProcess(pid))?.startedAt !== startedAt) return false;
  killGroup({ pid }, "SIGKILL");
  return true;
}

/**
 * Ends the processes that have one of the marks, even if they have left the process group of the agent. It works
 * only on Linux, which shows the variables of other processes; elsewhere it does nothing. Costs one read for each
 * process of the machine. Returns the ids of the processes.
 */
export function endProcessesOf(marks: readonly string[]): readonly number[] {
  if (process.platform !== "linux" || marks.length === 0) return [];
  const entries = new Set(marks.map((mark) => `${taskVariable}=${mark}`));
  const ended: number[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!/^\d+$/u.test(name) || pid === process.pid) continue;
    const variables = ifAlive(() => readFileSync(`/proc/${pid}/environ`, "utf8"))?.split("\0");
    if (variables?.some((each) => entries.has(each)) !== true) continue;
    ifAlive(() => process.kill(pid, "SIGKILL"));
    ended.push(pid);
  }
  return ended;
}

/**
 * Maximum number of times that all processes are read. Several reads are needed, because a process that is killed
 * may have started another one before.
 */
const mostScans = 10;
/** Maximum number of checks whether a killed process has ended. */
const mostLooks = 1_000;

/**
 * Ends the processes that have a mark, and resolves when they have ended. Usually it reads all processes of the
 * machine at most twice.
 */
export async function endAllOf(mark: string): Promise<void> {
  for (let scan = 0; scan < mostScans; scan++) {
    const ended = endProcessesOf([mark]);
    if (ended.length === 0) return;
    for (let look = 0; look < mostLooks && ended.some((pid) => startOnLinux(pid) !== undefined); look++)
      await new Promise<void>((resolve) => void setImmediate(resolve));
  }
}

/**
 * Returns the start time of the machine with that of the process in ticks since then. A dead process whose parent
 * has not read its exit status counts as ended.
 */
function startOnLinux(pid: number): string | undefined {
  const stat = ifAlive(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  if (stat === undefined) return undefined;
  // The name of the program, in parentheses, may contain spaces.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (state === "Z" || state === "X") return undefined;
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return `${boot} ${fields[18]}`;
}

async function startByPs(pid: number): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)("ps", ["-o", "lstart=", "-p", String(pid)]);
    return stdout.trim() || undefined;
  } catch (error) {
    // The exit code of ps for a process that does not exist.
    if ((error as { readonly code?: unknown }).code === 1) return undefined;
    throw error;
  }
}

/** Returns the value, or `undefined` if the process has ended or belongs to another user. */
function ifAlive<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}
