import { exitCodes } from "./exit-code.ts";

/** What a command may use of the process it runs in. Data goes out, talk is said beside it. */
export interface Terminal {
  /** A line of data, on stdout. Settles when there is room for the next. */
  out(line: string): Promise<void>;
  /** A line for the person who watches, on stderr. */
  say(line: string): void;
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
    say: (line) => void stderr.write(`${line}\n`),
    env,
  };
}

/** Names and texts come from agents and users: nothing in them may steer the terminal. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
