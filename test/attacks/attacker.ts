import { fork, spawnSync, type ChildProcess } from "node:child_process";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ToolResult } from "../../src/kernel/index.ts";
import { isFull } from "../effort.ts";
import type { AttackRequest } from "./attacker-process.ts";

/** A user as which attacks run. */
export interface Identity {
  readonly name: string;
  /** User and group id, if it differs from that of this process. */
  readonly uid?: number;
  /** Which half of the attacks `npm test` makes as this user. Default: it makes all of them. */
  readonly half?: 0 | 1;
}

/** A secret value in the environment of the process that runs the tools. No command may read it. */
export const environmentSecret = "ENVIRONMENT-SECRET-0815";

const program = join(import.meta.dirname, "attacker-process.ts");
const nobody = 65_534;

/** Returns the users as which attacks can run: this one, and an unprivileged one if this is root. */
export function identities(): readonly Identity[] {
  if (process.getuid?.() !== 0) {
    process.stderr.write("\nTHE ATTACKS AS root ARE SKIPPED: this is not root\n\n");
    return [{ name: "this user" }];
  }
  const reads = spawnSync(process.execPath, ["--check", program], { uid: nobody, gid: nobody, cwd: "/" });
  if (reads.status === 0)
    return [
      { name: "root", half: 0 },
      { name: "another user", uid: nobody, half: 1 },
    ];
  process.stderr.write(
    "\nTHE ATTACKS AS another user ARE SKIPPED: user 65534 cannot read this repository\n\n",
  );
  return [{ name: "root" }];
}

/** Returns the attacks that run as a user. `npm run test:full` makes every attack as each user. */
export function attacksAs<T>({ half }: Identity, attacks: readonly T[]): readonly T[] {
  return isFull || half === undefined ? attacks : attacks.filter((_, index) => index % 2 === half);
}

/**
 * Limits the process and its children to 2,000 tasks, if the machine has a control group that may be written. An attack
 * that succeeds then fails its own test without disturbing the processes of other tests.
 */
function boundTasks(pid: number): void {
  const group = `/sys/fs/cgroup/pids/reeve-attacks-${pid}`;
  try {
    mkdirSync(group);
  } catch {
    // The machine has no such groups. The tests do not depend on them.
    return;
  }
  writeFileSync(join(group, "pids.max"), "2000");
  writeFileSync(join(group, "cgroup.procs"), `${pid}`);
  process.once("exit", () => {
    try {
      rmdirSync(group);
    } catch {
      // A process of the group is still ending. An empty group costs nothing.
    }
  });
}

/** A process that calls tools as one user. */
export class Attacker {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, PromiseWithResolvers<ToolResult>>();
  #calls = 0;

  constructor({ uid }: Identity) {
    this.#child = fork(program, [], {
      ...(uid !== undefined && { uid, gid: uid }),
      cwd: "/",
      execArgv: [],
      env: { PATH: process.env["PATH"], HOME: "/", REEVE_ATTACK_SECRET: environmentSecret },
    });
    if (process.getuid?.() === 0) boundTasks(this.pid);
    this.#child.on("message", ({ id, result }: { readonly id: number; readonly result: ToolResult }) => {
      this.#waiting.get(id)?.resolve(result);
      this.#waiting.delete(id);
    });
    this.#child.once("exit", (code, signal) => {
      const ended = new Error(`the process that calls the tools ended with ${signal ?? `code ${code}`}`);
      for (const call of this.#waiting.values()) call.reject(ended);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Whether the process still runs. */
  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  call(request: AttackRequest): Promise<ToolResult> {
    const id = ++this.#calls;
    const call = Promise.withResolvers<ToolResult>();
    this.#waiting.set(id, call);
    this.#child.send({ id, request });
    return call.promise;
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}
