import { existsSync } from "node:fs";

/**
 * Environment variables that every command gets. Keys, tokens and service addresses are passed only if `inheritEnv`
 * names them.
 */
const harmless = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"];

/** Returns the variables of this process that a command gets: the harmless ones, and those that are named. */
export function commandEnvironment(names: readonly string[]): Record<string, string> {
  const env: Record<string, string> = { TERM: "dumb", NO_COLOR: "1", PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };
  for (const [name, value] of Object.entries(process.env)) {
    const isWanted = harmless.includes(name) || name.startsWith("LC_") || names.includes(name);
    if (isWanted && value !== undefined) env[name] = value;
  }
  return env;
}

/** Returns bash if it is installed, else `/bin/sh`. */
export function commandShell(): string {
  return existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
}
