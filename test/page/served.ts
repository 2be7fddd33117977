import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("serve.ts", import.meta.url));

/** The server of the tests in a process of its own, which can be killed and started again at the same port. */
export class ServedPage {
  readonly folder = mkdtempSync(join(tmpdir(), "reeve-served-"));
  #child: ChildProcess | undefined;
  url = "";

  async start(): Promise<void> {
    const port = this.url === "" ? "0" : new URL(this.url).port;
    this.#child = fork(program, [this.folder, port], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    const [address] = (await once(this.#child, "message")) as [string];
    this.url = address;
  }

  /** Kills the process, as a crash would. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** Resolves when the process has ended by itself. */
  async ended(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  /** Starts a run. Returns its id. */
  async submit(agent: string, input: string, sessionId?: string): Promise<string> {
    const response = await fetch(`${this.url}/api/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ agent, input, ...(sessionId !== undefined && { sessionId }) }),
    });
    const { run } = (await response.json()) as { readonly run: { readonly runId: string } };
    return run.runId;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
