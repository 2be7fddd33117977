import type { Terminal } from "./terminal.ts";

/** Resolves at the first interrupt or SIGTERM. The second one ends the process. */
export function interrupted(terminal: Terminal): Promise<void> {
  return new Promise((stop) => {
    let isStopping = false;
    const onSignal = (): void => {
      if (isStopping) process.kill(process.pid, "SIGKILL");
      isStopping = true;
      stop();
    };
    terminal.onInterrupt(onSignal);
    process.on("SIGTERM", onSignal);
  });
}
