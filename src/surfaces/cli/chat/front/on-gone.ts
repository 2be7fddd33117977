import { reserveStdout } from "../../terminal/process-terminal.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/**
 * Calls back when the other side of a plain (line-based) chat is gone: the terminal or stdout was closed, or the
 * process received SIGTERM. The returned function stops listening.
 */
export function onGone(callback: () => void): () => void {
  const { stdout } = process;
  process.on("SIGHUP", callback).on("SIGTERM", callback);
  stdout.on("close", callback).on("error", callback);
  return () => {
    process.off("SIGHUP", callback).off("SIGTERM", callback);
    stdout.off("close", callback).off("error", callback);
  };
}

/** Whether a reader receives the answers. Resolves when all written output has arrived, or can no longer arrive. */
export function isRead({ peer }: Pick<Terminal, "peer">): Promise<boolean> {
  if (peer !== undefined) return peer.isReading();
  const write = reserveStdout();
  return new Promise((resolve) => void write("", (error) => resolve(error === undefined || error === null)));
}
