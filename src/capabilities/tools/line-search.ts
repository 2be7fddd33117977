import { Worker } from "node:worker_threads";
import { Fault } from "../../kernel/index.ts";

export interface LineMatch {
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

export interface LineSearchOptions {
  readonly source: string;
  readonly ignoreCase: boolean;
  /** Of a line that is shown. */
  readonly maxLine: number;
}

/** In a thread: a pattern that takes for ever stops with it, and stops nothing else. */
const program = `
  const { parentPort, workerData: { source, flags, maxLine } } = require("node:worker_threads");
  const pattern = new RegExp(source, flags);
  parentPort.on("message", ({ text, limit }) => {
    const found = [];
    let line = 0;
    let at = 0;
    while (at <= text.length && found.length < limit) {
      const next = text.indexOf("\\n", at);
      const end = next === -1 ? text.length : next;
      const stripped = text[end - 1] === "\\r" ? end - 1 : end;
      const words = text.slice(at, Math.max(at, stripped));
      line++;
      const match = pattern.exec(words);
      if (match !== null) {
        const from = words.length > maxLine ? Math.max(0, match.index - (maxLine >> 2)) : 0;
        const cut = words.slice(from, from + maxLine);
        const before = from > 0 ? "…" : "";
        const after = from + maxLine < words.length ? "…" : "";
        found.push({ line, text: (before + cut + after).toWellFormed() });
      }
      at = end + 1;
      if (at === text.length) break;
    }
    parentPort.postMessage(found);
  });
`;

/** Searches texts for a pattern, line by line. One search at a time. Close it. */
export class LineSearch {
  readonly #worker: Worker;
  /** Its thread has come to its end, or is told to: it answers no more. */
  #isOver = false;

  constructor({ source, ignoreCase, maxLine }: LineSearchOptions) {
    const flags = ignoreCase ? "iu" : "u";
    assertPattern(source, flags);
    this.#worker = new Worker(program, {
      eval: true,
      // What the process was started with, such as --input-type, may not fit a thread.
      execArgv: [],
      workerData: { source, flags, maxLine },
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    this.#worker.once("exit", () => {
      this.#isOver = true;
    });
  }

  search(text: string, limit: number): Promise<readonly LineMatch[]> {
    const worker = this.#worker;
    if (this.#isOver) return Promise.reject(stopped());
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        worker.off("message", give).off("error", fail).off("exit", stop);
        act();
      };
      const give = (found: readonly LineMatch[]): void => settle(() => resolve(found));
      const fail = (error: unknown): void => settle(() => reject(Fault.from(error)));
      const stop = (): void => fail(stopped());
      worker.once("message", give).once("error", fail).once("exit", stop);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage({ text, limit });
    });
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#worker.terminate();
  }
}

function stopped(): Fault {
  return new Fault("tool_timeout", "the search was stopped");
}

function assertPattern(source: string, flags: string): void {
  try {
    void new RegExp(source, flags);
  } catch (cause) {
    const { message } = cause as SyntaxError;
    throw new Fault("invalid_argument", `${message}. Set literal to look for the text itself`, { cause });
  }
}
