import { createInterface } from "node:readline/promises";
import { exitCodes } from "./exit-code.ts";
import type { Terminal } from "./terminal.ts";

/** The original write function of stdout, after stdout was reserved for the data of a command. */
let writeData: typeof process.stdout.write | undefined;

/**
 * Reserves stdout for the data of a command, and returns the function that writes data. All other output of this
 * process, such as `console.log` of an extension, is redirected to stderr, because programs read all of stdout as
 * data.
 */
export function reserveStdout(): typeof process.stdout.write {
  if (writeData !== undefined) return writeData;
  const { stdout, stderr } = process;
  writeData = stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  return writeData;
}

/** The terminal of this process. */
export interface ProcessTerminal extends Terminal {
  /** Ends the process if work was abandoned, when everything that was written has been passed on. */
  endAbandoned(): Promise<void>;
}

export function processTerminal(): ProcessTerminal {
  const { stdout, stderr, env } = process;
  const write = reserveStdout();
  // The reader may close the pipe early, as `head` does. The exit code still reports the outcome.
  let isRead = true;
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    isRead = false;
    if (error.code === "EPIPE") return;
    stderr.write(`reeve: the output cannot be written: ${error.message}\n`);
    process.exit(exitCodes.internal.code);
  });
  // Without a reader of stderr, the command continues; its results are in the store.
  let isHeard = true;
  stderr.on("error", () => {
    isHeard = false;
  });
  const line = new StatusLine();
  let isAbandoned = false;
  return {
    abandonWork: () => void (isAbandoned = true),
    async endAbandoned() {
      if (!isAbandoned) return;
      await Promise.all([
        new Promise<void>((resolve) => void write("", () => resolve())),
        new Promise<void>((resolve) => void stderr.write("", () => resolve())),
      ]);
      process.exit();
    },
    async out(text) {
      line.clear();
      if (!isRead || write(`${text}\n`)) return;
      await new Promise<void>((resolve) => {
        stdout
          .once("drain", resolve)
          .once("close", resolve)
          .once("error", () => resolve());
      });
    },
    put: (text) => {
      line.clear();
      // A status would be appended to an unfinished line of the answer.
      line.isHeld = stdout.isTTY && !text.endsWith("\n");
      if (isRead) write(text);
    },
    isWatched: stdout.isTTY,
    ...(stdout.isTTY && { columns: stdout.columns }),
    canAsk: process.stdin.isTTY && stderr.isTTY,
    ask: async (question, signal) => {
      line.clear();
      line.isHeld = true;
      try {
        return await ask(question, signal);
      } finally {
        line.isHeld = false;
      }
    },
    ...(stderr.isTTY && env["TERM"] !== "dumb" && { status: (text) => void (isHeard && line.show(text)) }),
    input,
    onInterrupt(callback) {
      process.on("SIGINT", callback);
      return () => void process.off("SIGINT", callback);
    },
    say: (text) => {
      line.clear();
      if (isHeard) stderr.write(`${text}\n`);
    },
    env,
  };
}

/** The line below the output of a terminal. */
class StatusLine {
  /** Whether status lines are suppressed at the moment. */
  isHeld = false;
  #isShown = false;

  show(text: string): void {
    this.clear();
    if (this.isHeld || text === "") return;
    // A longer line would wrap, and only its last row would be removed.
    process.stderr.write(text.slice(0, Math.max(0, process.stderr.columns - 1)));
    this.#isShown = true;
  }

  clear(): void {
    if (this.#isShown) process.stderr.write("\r\u{1b}[K");
    this.#isShown = false;
  }
}

async function ask(question: string, signal?: AbortSignal): Promise<string | null | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  if (signal?.aborted === true) return null;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // While readline reads keys, it receives Ctrl-C; it is handled like an interrupt. So is a line that ends without an
  // answer.
  const left = Promise.withResolvers<null>();
  lines.once("close", () => left.resolve(null));
  const withdraw = (): void => left.resolve(null);
  signal?.addEventListener("abort", withdraw, { once: true });
  lines.once("SIGINT", () => {
    process.emit("SIGINT");
    left.resolve(null);
  });
  try {
    const answer = await Promise.race([left.promise, lines.question(question)]);
    // Without an answer, the cursor is still in the line of the question.
    if (answer === null) process.stderr.write("\n");
    return answer;
  } finally {
    signal?.removeEventListener("abort", withdraw);
    lines.close();
  }
}

async function input(): Promise<string> {
  if (process.stdin.isTTY) return "";
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8").trim();
}
