import { Worker } from "node:worker_threads";
import { Fault } from "../../kernel/index.ts";

/** One matching line. */
export interface LineMatch {
  /** Line number, starting at 1. */
  readonly line: number;
  /** Text of the line, cut around the match if it is longer than `maxLine`. */
  readonly text: string;
}

/** Options of `LineSearch`. */
export interface LineSearchOptions {
  /** Source of the regular expression. */
  readonly source: string;
  /** Whether upper and lower case are treated as equal. */
  readonly ignoreCase: boolean;
  /** Maximum length of the text of a match, in characters. */
  readonly maxLine: number;
}

/**
 * Code of the search thread. The pattern is compiled and executed only there. If it takes too long, the search is
 * stopped by ending the thread, and no other work waits for it.
 */
const program = `
  const { parentPort, workerData: { source, flags, maxLine } } = require("node:worker_threads");
  let pattern;
  let invalid;
  try {
    pattern = new RegExp(source, flags);
  } catch (error) {
    invalid = error.message;
  }
  parentPort.on("message", ({ text, limit }) => {
    if (invalid !== undefined) return parentPort.postMessage({ invalid });
    const found = [];
    let line = 0;
    let at = 0;
    while (at <= text.length && found.length < limit) {
      const next = text.indexOf("\\n", at);
      const end = next === -1 ? text.length : next;
      const stripped = text[end - 1] === "\\r" ? end - 1 : end;
      const content = text.slice(at, Math.max(at, stripped));
      line++;
      const match = pattern.exec(content);
      if (match !== null) {
        const from = content.length > maxLine ? Math.max(0, match.index - (maxLine >> 2)) : 0;
        const cut = content.slice(from, from + maxLine);
        const before = from > 0 ? "…" : "";
        const after = from + maxLine < content.length ? "…" : "";
        found.push({ line, text: (before + cut + after).toWellFormed() });
      }
      at = end + 1;
      if (at === text.length) break;
    }
    parentPort.postMessage({ found });
  });
`;

/** Answer of the search thread: the matching lines, or why the pattern is invalid. */
type Answer = { readonly found: readonly LineMatch[] } | { readonly invalid: string };

/**
 * Searches texts for a pattern line by line, in a thread. Only one search may run at a time. The caller must call
 * `close()`.
 */
export class LineSearch {
  readonly #worker: Worker;
  /** Whether the thread has ended or is being ended, so that it gives no more answers. */
  #isOver = false;

  constructor({ source, ignoreCase, maxLine }: LineSearchOptions) {
    const flags = ignoreCase ? "iu" : "u";
    this.#worker = new Worker(program, {
      eval: true,
      // Options of the parent process, such as --input-type, may be invalid for a thread.
      execArgv: [],
      workerData: { source, flags, maxLine },
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    this.#worker.once("exit", () => {
      this.#isOver = true;
    });
  }

  /**
   * Returns at most `limit` matching lines of a text. Rejects with `invalid_argument` if the pattern is invalid,
   * and with `tool_timeout` if `close()` is called during the search.
   */
  search(text: string, limit: number): Promise<readonly LineMatch[]> {
    const worker = this.#worker;
    if (this.#isOver) return Promise.reject(stopped());
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        worker.off("message", give).off("error", fail).off("exit", stop);
        act();
      };
      const give = (answer: Answer): void =>
        settle(() => ("found" in answer ? resolve(answer.found) : reject(invalidPattern(answer.invalid))));
      const fail = (error: unknown): void => settle(() => reject(Fault.from(error)));
      const stop = (): void => fail(stopped());
      worker.once("message", give).once("error", fail).once("exit", stop);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage({ text, limit });
    });
  }

  /** Terminates the thread. A search in progress rejects. */
  async close(): Promise<void> {
    this.#isOver = true;
    await this.#worker.terminate();
  }
}

function stopped(): Fault {
  return new Fault("tool_timeout", "the search was stopped before it finished");
}

function invalidPattern(message: string): Fault {
  return new Fault("invalid_argument", `${message}. Set literal to search for the plain text`);
}
