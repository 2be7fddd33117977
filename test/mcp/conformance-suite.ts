import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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

/** Runs scenarios in one process of the suite. Returns the verdicts by the name of the scenario. */
export async function runSuite(args: readonly string[]): Promise<ReadonlyMap<string, Verdict>> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-conformance-"));
  try {
    await runNode([cli, ...args, "--output-dir", folder], repository);
    const files = await readdir(folder, { recursive: true });
    const results = files.filter((name) => name.endsWith("checks.json"));
    return new Map(
      await Promise.all(
        results.map(async (file) => [scenarioOf(file), await verdictIn(join(folder, file))] as const),
      ),
    );
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Runs all server scenarios in one process of the suite. Returns the verdicts by scenario. */
export function runServerScenarios(url: string): Promise<ReadonlyMap<string, Verdict>> {
  return runSuite(["server", "--url", url, "--suite", "all"]);
}

/** Returns the scenario that a result belongs to. Its folder is the scenario's name with the time of the start. */
function scenarioOf(file: string): string {
  return dirname(file).replace(/^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$/gu, "");
}

async function verdictIn(file: string): Promise<Verdict> {
  const checks = JSON.parse(await readFile(file, "utf8")) as readonly Check[];
  const of = (status: string): readonly string[] =>
    checks
      .filter((check) => check.status === status)
      .map(({ id, errorMessage = "" }) => `${id}: ${errorMessage}`);
  return { passed: of("SUCCESS").length, failures: of("FAILURE"), warnings: of("WARNING") };
}

/**
 * Warnings of server scenarios that are expected: the suite uses 2025-03-26 there, and the first event of a stream and its
 * `retry` are sent only from 2025-11-25 on.
 */
const expectedWarnings: Readonly<Record<string, number>> = { "server-sse-polling": 2 };

/** The number of the suite's server scenarios. */
export const serverScenarioCount = 32;

/** What is wrong with the verdicts of the server scenarios. Empty if all of them pass. */
export function problemsOf(verdicts: ReadonlyMap<string, Verdict>): readonly string[] {
  return [...verdicts].flatMap(([scenario, { passed, failures, warnings }]) => {
    const isExpected = warnings.length === (expectedWarnings[scenario] ?? 0);
    const isChecked = passed + warnings.length > 0;
    if (failures.length === 0 && isExpected && isChecked) return [];
    return [`${scenario}: ${[...failures, ...warnings].join("; ") || "it checked nothing"}`];
  });
}
