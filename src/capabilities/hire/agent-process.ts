import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { Fault, type Clock } from "../../kernel/index.ts";
import type { Descriptor } from "../sandbox/bubblewrap.ts";
import { connectDescriptors, ignoreClosed, killGroup } from "../tools/process-group.ts";

/** How to start the process of a hired agent. */
export interface ProcessStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The environment variables of the process. It inherits no others. */
  readonly env: Readonly<Record<string, string>>;
  /** Descriptors of the process from 3 on. */
  readonly descriptors?: readonly Descriptor[];
  /** Watches a limit of the process. Called with a function that ends the group; the returned function ends the watch. */
  readonly watch?: (stop: () => void) => () => void;
  /** Texts that no error may contain. */
  readonly secrets: readonly string[];
  readonly clock: Clock;
}

/**
 * Milliseconds of the two waits when a process must end: between closing its input and SIGTERM, and between SIGTERM
 * and SIGKILL.
 */
const graceMs = { input: 2_000, term: 5_000 } as const;

/** Number of bytes of standard error that are kept. */
const keptErrorBytes = 2_048;

/** The process groups to end together with this process. They would otherwise continue after its end. */
const groups = new Set<AgentProcess>();
process.on("exit", () => {
  for (const group of groups) group.kill();
});

/** The process of a hired agent, in a process group of its own. */
export class AgentProcess {
  readonly #start: ProcessStart;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ended = Promise.withResolvers<void>();
  #endWatch: (() => void) | undefined;
  #errors = "";
  #ending: Promise<void> | undefined;
  #isOver = false;

  constructor(start: ProcessStart) {
    this.#start = start;
    const { program, args, cwd, env, descriptors = [], watch } = start;
    const extra = descriptors.map((each) => (typeof each === "number" ? each : "pipe"));
    this.#child = spawn(program, args, {
      cwd,
      env,
      detached: true,
      stdio: ["pipe", "pipe", "pipe", ...extra],
    }) as ChildProcessByStdio<Writable, Readable, Readable>;
    groups.add(this);
    connectDescriptors(this.#child, descriptors);
    const { stdin, stdout, stderr } = this.#child;
    stdin.on("error", ignoreClosed);
    stdout.on("error", ignoreClosed);
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-keptErrorBytes);
    });
    this.#child.once("error", (error) => {
      this.#errors = `${this.#errors}\n${error.message}`;
      this.#over();
    });
    this.#child.once("exit", () => {
      // Processes that the agent left in its group end with it.
      this.kill();
      // A process that has left the group may hold the pipes open.
      start.clock.schedule(start.clock.now() + 1_000, () => {
        stdout.destroy();
        stderr.destroy();
      });
      this.#over();
    });
    this.#endWatch = watch?.(() => this.kill());
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get output(): Readable {
    return this.#child.stdout;
  }

  get input(): Writable {
    return this.#child.stdin;
  }

  /** Resolves when the process has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * The fault of a process that ended by itself. It says how the process ended, and what it last wrote to standard
   * error.
   */
  get crash(): Fault {
    const { exitCode, signalCode } = this.#child;
    const how =
      signalCode !== null
        ? `was killed by ${signalCode}`
        : exitCode === null
          ? "could not be started"
          : `ended with exit code ${exitCode}`;
    const errors = this.#lastErrors;
    return new Fault(
      "agent_crashed",
      `the process of the agent ${how}${errors === "" ? "" : `; its last output: ${errors}`}`,
      { details: { exitCode, signal: signalCode, stderr: errors } },
    );
  }

  /** What the process has written to standard error, without secrets. */
  get #lastErrors(): string {
    let text = this.#errors.trim();
    for (const secret of this.#start.secrets) text = text.replaceAll(secret, "[removed]");
    return text;
  }

  /** Ends the group at once. */
  kill(): void {
    killGroup(this.#child, "SIGKILL");
  }

  /** Closes the input of the process, and ends its group with SIGTERM and then SIGKILL. Resolves when the process has ended. */
  end(inputMs: number = graceMs.input): Promise<void> {
    this.#ending ??= this.#end(inputMs);
    return this.#ending;
  }

  async #end(inputMs: number): Promise<void> {
    this.#child.stdin.end();
    if (inputMs > 0) await this.#endedWithin(inputMs);
    if (this.#isOver) return;
    killGroup(this.#child, "SIGTERM");
    await this.#endedWithin(graceMs.term);
    if (this.#isOver) return;
    this.kill();
    await this.ended;
  }

  async #endedWithin(ms: number): Promise<void> {
    const { clock } = this.#start;
    const over = Promise.withResolvers<void>();
    const cancel = clock.schedule(clock.now() + ms, over.resolve);
    await Promise.race([this.ended, over.promise]);
    cancel();
  }

  #over(): void {
    this.#isOver = true;
    this.#endWatch?.();
    groups.delete(this);
    this.#ended.resolve();
  }
}
