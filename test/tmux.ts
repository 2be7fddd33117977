import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { installSystemPackage } from "./system-package.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Why the tests in a terminal are skipped. `null` if tmux can be started. */
    readonly lackOfTmux: string | null;
  }
}

/**
 * Looks for tmux, in which the tests see what a person sees. If it is missing and the variable CI is set, installs it from the
 * system's packages. If it stays missing, says in one line which tests are skipped.
 */
export async function setup(project: TestProject): Promise<void> {
  let lack = await lackOfTmux();
  if (lack !== null && process.env["CI"] !== undefined) {
    const failure = await installSystemPackage("tmux");
    lack = await lackOfTmux();
    if (lack !== null && failure !== undefined) lack = `${lack} (apt-get: ${failure})`;
  }
  if (lack !== null)
    process.stderr.write(`\nTHE TERMINAL TESTS OF "${project.name}" ARE SKIPPED: ${lack}\n\n`);
  project.provide("lackOfTmux", lack);
}

async function lackOfTmux(): Promise<string | null> {
  try {
    await promisify(execFile)("tmux", ["-V"]);
    return null;
  } catch (error) {
    return (error as Error).message.trim().split("\n").at(-1) ?? "tmux cannot be started";
  }
}
