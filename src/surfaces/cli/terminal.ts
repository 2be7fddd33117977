import { createInterface } from "node:readline/promises";
import { exitCodes } from "./exit-code.ts";

/** The parts of the process that a command may use. Data goes to stdout, everything else to stderr. */
export interface Terminal {
  /** Writes a line of data to stdout. The promise settles when the next line can be written. */
  out(line: string): Promise<void>;
  /** Writes a line for the user to stderr. */
  say(line: string): void;
  /** Writes a part of a line of data to stdout. */
  put(text: string): void;
  /** Whether a person reads the data as it is written. */
  readonly isWatched: boolean;
  /**
   * Asks a question. Resolves to an empty text if the person leaves without an answer, and to `undefined` if there is
   * no terminal.
   */
  ask(question: string): Promise<string | undefined>;
  /** Reads stdin to its end; empty if nothing is piped in. */
  input(): Promise<string>;
  /** Calls back when the person interrupts the command. The returned function stops listening. */
  onInterrupt(callback: () => void): () => void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function processTerminal(): Terminal {
  const { stdout, stderr, env } = process;
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
  return {
    async out(line) {
      if (!isRead || stdout.write(`${line}\n`)) return;
      await new Promise<void>((resolve) => {
        stdout
          .once("drain", resolve)
          .once("close", resolve)
          .once("error", () => resolve());
      });
    },
    put: (text) => void (isRead && stdout.write(text)),
    isWatched: stdout.isTTY,
    ask,
    input,
    onInterrupt(callback) {
      process.on("SIGINT", callback);
      return () => void process.off("SIGINT", callback);
    },
    say: (line) => void (isHeard && stderr.write(`${line}\n`)),
    env,
  };
}

async function ask(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  // While readline reads keys, it receives Ctrl-C; it is handled like an interrupt. So is a line that ends without an
  // answer.
  const left = Promise.withResolvers<string>();
  lines.once("close", () => left.resolve(""));
  lines.once("SIGINT", () => {
    process.emit("SIGINT");
    left.resolve("");
  });
  try {
    return await Promise.race([left.promise, lines.question(question)]);
  } finally {
    lines.close();
  }
}

async function input(): Promise<string> {
  if (process.stdin.isTTY) return "";
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8").trim();
}

/**
 * Removes control characters from a text, because names and texts of agents and users must not control the terminal.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
