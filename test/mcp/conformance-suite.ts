import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { repository, runNode } from "../gates/run-node.ts";

const manifest = import.meta.resolve("@modelcontextprotocol/conformance/package.json");
const cli = fileURLToPath(new URL("dist/index.js", manifest));

/** Result of a scenario. */
export interface Verdict {
  readonly passed: number;
  /** Texts of the suite: required checks that failed, and recommended ones. */
  readonly failures: readonly string[];
  readonly warnings: readonly string[];
}

interface Check {
  readonly id: string;
  readonly status: string;
  readonly errorMessage?: string;
}

/** Returns the names of the suite's scenarios. */
export async function scenarios(side: "client" | "server"): Promise<readonly string[]> {
  const { stdout } = await runNode([cli, "list", `--${side}`], repository);
  return [...stdout.matchAll(/^ {2}- (\S+)/gmu)].map(([, name = ""]) => name);
}

/** Runs one scenario with the suite's command line. */
export async function runScenario(args: readonly string[]): Promise<Verdict> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-conformance-"));
  try {
    const { stdout, stderr } = await runNode([cli, ...args, "--output-dir", folder], repository);
    const files = await readdir(folder, { recursive: true });
    const file = files.find((name) => name.endsWith("checks.json"));
    if (file === undefined) throw new Error(`the suite left no result: ${stdout}${stderr}`);
    const checks = JSON.parse(await readFile(join(folder, file), "utf8")) as readonly Check[];
    const of = (status: string): readonly string[] =>
      checks
        .filter((check) => check.status === status)
        .map(({ id, errorMessage = "" }) => `${id}: ${errorMessage}`);
    return { passed: of("SUCCESS").length, failures: of("FAILURE"), warnings: of("WARNING") };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
