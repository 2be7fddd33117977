import type { Terminal } from "./terminal.ts";

/**
 * Prints every promise rejection that no code handles, and lets the process continue: a tool that forgets to await a promise must not end
 * the other runs of the process. Only commands do this; the library installs no handler in the process of its user. An uncaught exception
 * still ends the process, because the code that threw it did not finish; the next process resumes the runs.
 */
export function logRejections({ say }: Pick<Terminal, "say">): void {
  const report = async (reason: unknown): Promise<void> => {
    // Loaded on demand, because it loads the kernel.
    const { printable } = await import("./terminal.ts");
    const [message = "", ...stack] = textOf(reason).split("\n");
    say(`reeve: a promise was rejected and no code handled it: ${printable(message)}`);
    for (const line of stack) say(printable(line));
  };
  process.on("unhandledRejection", (reason) => void report(reason));
}

function textOf(reason: unknown): string {
  return reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
}
