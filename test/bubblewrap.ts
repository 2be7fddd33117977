import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { findBubble, type FoundBubble } from "../src/capabilities/sandbox/bubblewrap.ts";

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
    const failure = await install();
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

/** Installs the package as root, or with sudo if it asks for no password. Returns why that failed. */
async function install(): Promise<string | undefined> {
  const [name = "", ...prefix] = process.getuid?.() === 0 ? ["apt-get"] : ["sudo", "-n", "apt-get"];
  // Several projects may install at the same time, so each waits for the lock.
  const settings = ["Acquire::Retries=0", "Acquire::http::Timeout=15", "DPkg::Lock::Timeout=120"].flatMap(
    (each) => ["-o", each],
  );
  const apt = (...args: readonly string[]) =>
    promisify(execFile)(name, [...prefix, ...settings, ...args], {
      timeout: 180_000,
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  try {
    // The package lists of an image are often missing or outdated. Without a network the update fails, and so does the next step.
    await apt("update").catch(() => undefined);
    await apt("install", "--yes", "--no-install-recommends", "bubblewrap");
    return undefined;
  } catch (error) {
    return (error as Error).message.trim().split("\n").at(-1) ?? "failed";
  }
}
