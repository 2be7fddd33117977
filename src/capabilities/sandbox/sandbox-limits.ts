import { checkOptions, Fault, optionNames } from "../../kernel/index.ts";
import { closingScript } from "./inherited-descriptors.ts";
import type { SandboxLimits } from "./sandbox-policy.ts";

const mebibyte = 1024 * 1024;

const defaults: Required<SandboxLimits> = {
  processes: 1_024,
  memoryBytes: 4_096 * mebibyte,
  fileBytes: 2_048 * mebibyte,
  openFiles: 4_096,
  cpuSeconds: 600,
  tmpBytes: 1_024 * mebibyte,
};

const knownLimits = optionNames<SandboxLimits>({
  processes: true,
  memoryBytes: true,
  fileBytes: true,
  openFiles: true,
  cpuSeconds: true,
  tmpBytes: true,
});

/** Returns the limits with defaults. Throws `invalid_argument` for an unknown name or a value that is not a positive integer. */
export function sandboxLimits(limits: SandboxLimits = {}): Required<SandboxLimits> {
  checkOptions("the sandbox's limits", limits, knownLimits);
  for (const [name, value] of Object.entries(limits)) {
    if (!Number.isSafeInteger(value) || (value as number) < 1)
      throw new Fault(
        "invalid_argument",
        `invalid sandbox limit ${name} ${JSON.stringify(value)}: expected an integer of at least 1`,
      );
  }
  return { ...defaults, ...limits };
}

/**
 * Returns a command that closes inherited descriptors, sets the limits and then becomes `command`. The shell's own `ulimit` sets them, because
 * `prlimit` is not installed everywhere. `ulimit` fails only if a lower limit is in force, which then stays.
 */
export function limitedCommand(
  shell: string,
  command: readonly string[],
  limits: Required<SandboxLimits>,
): readonly string[] {
  const isBash = shell.endsWith("/bash");
  const settings = [
    "-c 0",
    `${isBash ? "-u" : "-p"} ${limits.processes}`,
    `-d ${blocks(limits.memoryBytes, 1024)}`,
    // POSIX shells count blocks of 512 bytes, and bash counts blocks of 1,024 bytes.
    `-f ${blocks(limits.fileBytes, isBash ? 1024 : 512)}`,
    `-n ${limits.openFiles}`,
    `-t ${limits.cpuSeconds}`,
  ];
  const limiting = settings.map((each) => `ulimit ${each} 2>/dev/null`).join("; ");
  const script = `${closingScript(shell)}${limiting}; exec "$@"`;
  return [shell, "-c", script, shell, ...command];
}

function blocks(bytes: number, size: number): number {
  return Math.max(1, Math.floor(bytes / size));
}
