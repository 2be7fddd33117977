import { readdirSync, readFileSync } from "node:fs";
import { Fault } from "../../kernel/index.ts";
import { codeOf } from "../files/error-code.ts";

/** Linux's O_CLOEXEC, as /proc shows it. */
const closedOnExec = 0o2_000_000;

/**
 * Returns the start of a shell script that closes descriptors which this process inherited from the program that
 * started it. Through an open folder, a command would leave the sandbox. Node closes its own descriptors when it starts
 * a program, but not all inherited ones.
 *
 * Only bash can close descriptors above 9. With another shell, throws `unsupported` if there is one.
 */
export function closingScript(shell: string): string {
  if (shell.endsWith("/bash"))
    return `for fd in /proc/self/fd/*; do fd=\${fd##*/}; [ "$fd" -gt 2 ] && eval "exec $fd>&-"; done; `;
  const open = readdirSync("/proc/self/fd").find((name) => Number(name) > 9 && isInherited(name));
  if (open !== undefined)
    throw new Fault(
      "unsupported",
      `the command was not run: this process has inherited descriptor ${open}, which ${shell} cannot close; install bash, or start Reeve without the descriptor`,
    );
  return "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ";
}

/** Whether a started program would inherit the descriptor. */
function isInherited(descriptor: string): boolean {
  try {
    const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1");
    const flags = Number.parseInt(/^flags:\s*(\d+)/mu.exec(info)?.[1] ?? "0", 8);
    return (flags & closedOnExec) === 0;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
