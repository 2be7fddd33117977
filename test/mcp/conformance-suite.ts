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

/** Returns the names of the suite's client scenarios. */
export async function clientScenarios(): Promise<readonly string[]> {
  const { stdout } = await runNode([cli, "list", "--client"], repository);
  return [...stdout.matchAll(/^ {2}- (\S+)/gmu)].map(([, name = ""]) => name);
}

/** Runs one client scenario with the suite's command line. */
export async function runClientScenario(scenario: string, program: string): Promise<Verdict> {
  const args = ["client", "--command", program, "--scenario", scenario, "--timeout", "45000"];
  const [verdict] = (await run(args)).values();
  if (verdict === undefined) throw new Error(`the suite has no result of ${scenario}`);
  return verdict;
}

/** Runs all server scenarios in one process of the suite. Returns the verdicts by scenario. */
export function runServerScenarios(url: string): Promise<ReadonlyMap<string, Verdict>> {
  return run(["server", "--url", url, "--suite", "all"]);
}

/** Runs the suite's command line and reads the results, by the names of their folders without side and time. */
async function run(args: readonly string[]): Promise<ReadonlyMap<string, Verdict>> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-conformance-"));
  try {
    const { stdout, stderr } = await runNode([cli, ...args, "--output-dir", folder], repository);
    const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith("checks.json"));
    if (files.length === 0) throw new Error(`the suite left no result: ${stdout}${stderr}`);
    const verdicts = new Map<string, Verdict>();
    for (const file of files) {
      const scenario = dirname(file).replace(/^server-|-\d{4}-\d{2}-\d{2}T.*$/gu, "");
      verdicts.set(scenario, verdictOf(JSON.parse(await readFile(join(folder, file), "utf8")) as Check[]));
    }
    return verdicts;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function verdictOf(checks: readonly Check[]): Verdict {
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
