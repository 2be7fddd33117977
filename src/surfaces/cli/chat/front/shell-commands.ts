import { spawn } from "node:child_process";
import { killGroup } from "../../../../capabilities/tools/process-group.ts";
import { Fault, type JsonValue } from "../../../../kernel/index.ts";
import { inputOf } from "./composer.ts";

/** The most bytes of the output of a command that the model gets. */
const mostOutput = 50_000;
/** Milliseconds between SIGTERM and SIGKILL. */
const graceMs = 2_000;

/** A text such as `!ls`. */
export interface ShellCommand {
  readonly command: string;
  /** Whether the output is sent to the model with the next message. `!!ls` does not send it. */
  readonly isForModel: boolean;
}

/** Returns the shell command that a text contains, or `undefined` for any other text. */
export function shellCommandOf(text: string): ShellCommand | undefined {
  const [, bangs, command = ""] = /^(!!?)\s*([^]*)$/u.exec(text) ?? [];
  return bangs === undefined || command === "" ? undefined : { command, isForModel: bangs === "!" };
}

/**
 * Runs shell commands of the person, with the rights of the person, and keeps their outputs until they are sent to
 * the model.
 */
export class ShellCommands {
  readonly #folder: string;
  /** Outputs of commands that will be sent to the model with the next message. */
  readonly #outputs: string[] = [];
  #running: { readonly stop: AbortController; readonly end: Promise<string> } | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /**
   * Runs a command until it ends. Returns the command together with its output. Throws if another command is
   * running.
   */
  async run({ command, isForModel }: ShellCommand): Promise<string> {
    if (this.#running !== undefined)
      throw new Fault(
        "unsupported",
        "a command still runs, and commands run one at a time; wait for its end, or stop it with Esc",
      );
    const stop = new AbortController();
    const end = runShell(command, this.#folder, stop.signal);
    this.#running = { stop, end };
    try {
      const said = `$ ${command}\n${await end}`;
      if (isForModel) this.#outputs.push(said);
      return said;
    } finally {
      this.#running = undefined;
    }
  }

  /** Stops the running command and all processes that it has started. */
  stop(): void {
    this.#running?.stop.abort();
  }

  /** Stops the running command and waits for its end. */
  async close(): Promise<void> {
    this.stop();
    await Promise.allSettled([this.#running?.end]);
  }

  /**
   * Sends a text together with the outputs of commands. If this message cannot be sent, the outputs are kept for
   * the next one.
   */
  async send(text: string, send: (input: JsonValue) => Promise<void>): Promise<void> {
    const outputs = this.#outputs.splice(0);
    try {
      await send(await inputOf(text, this.#folder, outputs));
    } catch (error) {
      this.#outputs.unshift(...outputs);
      throw error;
    }
  }
}

/**
 * Runs a command and resolves to its output and a description of its end. If the signal aborts, the whole process
 * group is ended: first SIGTERM, then SIGKILL.
 */
function runShell(command: string, folder: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, {
      cwd: folder,
      shell: process.env["SHELL"] ?? true,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let left = 0;
    const decoder = new TextDecoder();
    let room = mostOutput;
    const take = (piece: Buffer): void => {
      // What is beyond the limit is counted and not decoded: a command may print a gigabyte.
      if (room > 0) output += decoder.decode(piece.subarray(0, room), { stream: true });
      left += Math.max(0, piece.length - room);
      room = Math.max(0, room - piece.length);
    };
    let killing: NodeJS.Timeout | undefined;
    const stop = (): void => {
      killGroup(child, "SIGTERM");
      killing = setTimeout(() => {
        killGroup(child, "SIGKILL");
        // A process that has left the group may hold the pipes open.
        child.stdout.destroy();
        child.stderr.destroy();
      }, graceMs);
    };
    signal.addEventListener("abort", stop, { once: true });
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("close", (code, killed) => {
      signal.removeEventListener("abort", stop);
      clearTimeout(killing);
      const cut = left === 0 ? "" : `\n[${left} more bytes]`;
      const end = signal.aborted ? "\n[stopped]" : code === 0 ? "" : `\n[exit code ${code ?? killed}]`;
      resolve(`${output.trimEnd()}${cut}${end}`);
    });
  });
}
