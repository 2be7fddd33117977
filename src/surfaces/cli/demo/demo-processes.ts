import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Fault } from "../../../kernel/index.ts";
import { packageRoot } from "../../../assembly/package-root.ts";
import type { WorkerOptions } from "./demo-worker.ts";

/** Milliseconds that a worker has to close its store after `close()`. */
const graceMs = 3_000;

/** A worker in a process of its own. */
export class WorkerProcess {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #exit: Promise<void>;
  #isExpectedToEnd = false;

  /** Starts the process. */
  constructor({ folder, worker, paceMs }: WorkerOptions) {
    const main = import.meta.url.endsWith(".ts") ? "src/surfaces/cli/main.ts" : "dist/surfaces/cli/main.js";
    const args = ["demo", "--act", folder, "--worker", worker, "--pace", String(paceMs)];
    this.name = worker;
    this.#child = fork(join(packageRoot, main), args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#exit = once(this.#child, "exit").then(() => undefined);
  }

  /** Resolves when the worker claims runs. */
  async ready(): Promise<void> {
    await Promise.race([once(this.#child, "message"), this.failed()]);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Rejects if the process ends although it was neither stopped nor killed by the demo. */
  async failed(): Promise<never> {
    await this.#exit;
    if (this.#isExpectedToEnd) return new Promise<never>(() => undefined);
    const { exitCode, signalCode } = this.#child;
    throw new Fault("internal", `${this.name} ended unexpectedly with ${signalCode ?? `code ${exitCode}`}`);
  }

  /** Kills the process with SIGKILL. Resolves when the process has ended. */
  async kill(): Promise<void> {
    this.#isExpectedToEnd = true;
    this.#child.kill("SIGKILL");
    await this.#exit;
  }

  /** Asks the worker process to stop, and kills it if it does not stop. Resolves when the process has ended. */
  async close(): Promise<void> {
    this.#isExpectedToEnd = true;
    if (this.#child.connected) this.#child.disconnect();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), graceMs);
    await this.#exit;
    clearTimeout(timer);
  }
}
