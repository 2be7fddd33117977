import { duration } from "./format.ts";
import type { Terminal } from "./terminal.ts";

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const frameMs = 100;

/** Shows on a terminal what a run does at the moment, and for how long. Shows nothing elsewhere. */
export class Spinner {
  readonly #terminal: Pick<Terminal, "status">;
  #timer: NodeJS.Timeout | undefined;
  #label = "";
  #since = 0;
  #frame = 0;

  constructor(terminal: Pick<Terminal, "status">) {
    this.#terminal = terminal;
  }

  /** Starts to show an activity, with its time counted from now. */
  start(label: string): void {
    this.#label = label;
    this.#since = Date.now();
    if (this.#terminal.status === undefined) return;
    this.#timer ??= setInterval(() => this.#draw(), frameMs).unref();
    this.#draw();
  }

  /** Removes what is shown. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#terminal.status?.("");
  }

  #draw(): void {
    const frame = frames[this.#frame++ % frames.length] ?? "";
    this.#terminal.status?.(`${frame} ${this.#label} ${duration(Date.now() - this.#since)}`);
  }
}
