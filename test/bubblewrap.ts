import type { TestProject } from "vitest/node";
import { findBubble, type FoundBubble } from "../src/capabilities/sandbox/bubblewrap.ts";
import { installSystemPackage } from "./system-package.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The bubblewrap program that the tests of the sandbox use, or why they are skipped. */
    readonly bubblewrap: FoundBubble;
  }
}

/** The variable REEVE_BWRAP selects another bubblewrap than the one in the PATH. */
const program = process.env["REEVE_BWRAP"] ?? "bwrap";

/**
 * Provides bubblewrap to the tests. If it is missing and the variable CI is set, installs it from the system's packages.
 * If it stays missing, says in one line which tests are skipped.
 */
export async function setup(project: TestProject): Promise<void> {
  let bubblewrap = await findBubble(program, []);
  if ("problem" in bubblewrap && process.env["CI"] !== undefined) {
    const failure = await installSystemPackage("bubblewrap");
    bubblewrap = await findBubble(program, []);
    if ("problem" in bubblewrap && failure !== undefined)
      bubblewrap = { problem: `${bubblewrap.problem} (apt-get: ${failure})` };
  }
  if ("problem" in bubblewrap)
    process.stderr.write(
      `\nTHE SANDBOX TESTS OF "${project.name}" ARE SKIPPED: ${bubblewrap.problem.replaceAll(/\s+/g, " ")}\n\n`,
    );
  project.provide("bubblewrap", bubblewrap);
}
