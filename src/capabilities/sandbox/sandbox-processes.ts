import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../kernel/index.ts";
import { codeOf } from "../files/error-code.ts";

/** Interval at which the number of processes is checked, in milliseconds. */
const watchMs = 20;

/** Interval at which it is checked whether the processes have ended, and the maximum time for this. Milliseconds. */
const endMs = { interval: 2, limit: 30_000 } as const;

/** The processes of one sandbox, as this process sees them. */
export class SandboxProcesses {
  #info = "";
  /** Process id of the first process of the sandbox, which ends last. */
  #first: number | undefined;

  /** Receives what bubblewrap writes to its info descriptor. */
  readonly receive = (text: string): void => {
    this.#info += text;
    const pid = /"child-pid":\s*(\d+)/u.exec(this.#info)?.[1];
    if (pid === undefined || this.#first !== undefined) return;
    const first = (this.#first = Number(pid));
    // With the priority of others, thousands of processes would start before the watch gets the processor.
    if (process.getuid?.() === 0) ifAlive(() => setPriority(first, constants.priority.PRIORITY_LOW));
  };

  /**
   * Calls `onExceeded` once if the sandbox has more than `max` processes and threads. Returns a function that ends
   * the watch.
   *
   * The kernel does not apply its own limit of processes to user 0, as which a sandbox of root runs outside its
   * namespace. A check reads one line for the whole machine. The processes of the sandbox are counted only if the
   * machine has more than `max` additional processes.
   */
  watch(max: number, onExceeded: () => void): () => void {
    const before = tasksOfMachine();
    const timer = setInterval(() => {
      const first = this.#first;
      if (first === undefined || tasksOfMachine() - before <= max || !exceeds(first, max)) return;
      clearInterval(timer);
      // All other processes of the sandbox end with the first one. Bubblewrap would kill it a moment later.
      ifAlive(() => process.kill(first, "SIGKILL"));
      onExceeded();
    }, watchMs);
    timer.unref();
    return () => clearInterval(timer);
  }

  /**
   * Waits until all processes have ended. Bubblewrap itself ends a moment earlier. Throws `tool_failed` if a process
   * cannot be ended, for example because it waits for a disk.
   */
  async ended(): Promise<void> {
    for (let waited = 0; this.#isAlive(); waited += endMs.interval) {
      if (waited >= endMs.limit)
        throw new Fault(
          "tool_failed",
          `process ${this.#first} of the sandbox did not end after it was killed`,
        );
      await delay(endMs.interval);
    }
  }

  #isAlive(): boolean {
    if (this.#first === undefined) return false;
    const stat = ifAlive(() => readFileSync(`/proc/${this.#first}/stat`, "latin1"));
    // The state follows the name, which is in parentheses. The kernel ends all other processes before this one is a zombie.
    return stat !== undefined && !/\) [ZX] /u.test(stat);
  }
}

/**
 * Whether the process namespace of the process `first` has more than `max` processes and threads. Counts the newest
 * processes first.
 */
function exceeds(first: number, max: number): boolean {
  const namespace = ifAlive(() => readlinkSync(`/proc/${first}/ns/pid`));
  if (namespace === undefined) return false;
  let tasks = 0;
  for (const pid of readdirSync("/proc").toReversed()) {
    if (!/^\d+$/u.test(pid) || ifAlive(() => readlinkSync(`/proc/${pid}/ns/pid`)) !== namespace) continue;
    tasks += ifAlive(() => readdirSync(`/proc/${pid}/task`).length) ?? 0;
    if (tasks > max) return true;
  }
  return false;
}

/** Returns the number of processes and threads of this machine. */
function tasksOfMachine(): number {
  return Number(/\/(\d+) /u.exec(readFileSync("/proc/loadavg", "latin1"))?.[1] ?? 0);
}

/** Returns the value, or `undefined` if the process has ended or belongs to another user. */
function ifAlive<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES") return undefined;
    throw error;
  }
}
