import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** The states in `/proc/PID/stat` of a process that has ended but whose parent has not read its exit status yet. */
const endedStates: readonly string[] = ["Z", "X"];

/**
 * The place in which process ids can be compared: a boot of a machine, and a namespace of process ids, because each
 * container has its own.
 */
interface ProcessSpace {
  readonly host: string;
  readonly boot: string;
  readonly namespace: string;
}

/**
 * State and start time of a process, in ticks since the boot. The start time distinguishes processes that got the
 * same id.
 */
interface ProcessState {
  readonly state: string;
  readonly startedAt: string;
}

let ownSpace: string | null | undefined;

/**
 * Returns a name of the current process with which other processes of the machine can find out when it has ended.
 * `null` if the system does not support this.
 */
export function processName(): string | null {
  const space = spaceName();
  const own = stateOf("self");
  return space === null || own === undefined ? null : `${space} ${process.pid} ${own.startedAt}`;
}

/**
 * Whether the process with this name is known to have ended. `false` if it lives or nothing is known, because it
 * ran on another machine, before the last boot, in another container, or on a system without `/proc`.
 */
export function hasEnded(name: string | null): boolean {
  const space = spaceName();
  if (name === null || space === null || !name.startsWith(`${space} `)) return false;
  const [pid = "", startedAt] = name.slice(space.length + 1).split(" ");
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    // EPERM means that the process exists and belongs to another user.
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return true;
  }
  const found = stateOf(pid);
  return found !== undefined && (found.startedAt !== startedAt || endedStates.includes(found.state));
}

/** Returns the machine of the process with this name. */
export function hostOf(name: string | null): string | null {
  return name?.split(" ", 1)[0] ?? null;
}

function spaceName(): string | null {
  if (ownSpace === undefined) {
    const space = findSpace();
    ownSpace = space === undefined ? null : `${space.host} ${space.boot} ${space.namespace}`;
  }
  return ownSpace;
}

function findSpace(): ProcessSpace | undefined {
  try {
    return {
      host: hostname(),
      boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
      namespace: readlinkSync("/proc/self/ns/pid"),
    };
  } catch {
    // The system has no `/proc`, or it is not readable.
    return undefined;
  }
}

function stateOf(pid: string): ProcessState | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the name of the program, in parentheses, and may contain spaces.
    const [state = "", ...others] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, startedAt: others[18] ?? "" };
  } catch {
    // The process has ended, or is not readable for this user.
    return undefined;
  }
}
