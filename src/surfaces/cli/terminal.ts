import { createInterface } from "node:readline/promises";
import { exitCodes } from "./exit-code.ts";

/** What a command may use of the process it runs in. Data goes out, talk is said beside it. */
export interface Terminal {
  /** A line of data, on stdout. Settles when there is room for the next. */
  out(line: string): Promise<void>;
  /** A line for the person who watches, on stderr. */
  say(line: string): void;
  /** A piece of a line of data. */
  put(text: string): void;
  /** A person reads the data as it comes. */
  readonly isWatched: boolean;
  /** What a person answers, nothing if they leave without one; `undefined` where there is none to ask. */
  ask(question: string): Promise<string | undefined>;
  /** All that is piped in; empty where nothing is. */
  input(): Promise<string>;
  /** Calls back when a person wants it to stop; returns how to stop listening. */
  onInterrupt(callback: () => void): () => void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function processTerminal(): Terminal {
  const { stdout, stderr, env } = process;
  // Whoever reads may have enough before we are done, as `head` does; what was found still goes into the exit code.
  let isRead = true;
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    isRead = false;
    if (error.code === "EPIPE") return;
    stderr.write(`reeve: the output cannot be written: ${error.message}\n`);
    process.exit(exitCodes.internal.code);
  });
  // Nobody listens any more: what is being done goes on, and is in the store.
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
  // While it reads keys, Ctrl-C is one of them: it means what it means elsewhere. So does a line that ends without an answer.
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

/** Names and texts come from agents and users: nothing in them may steer the terminal. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
