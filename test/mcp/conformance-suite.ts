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

/** Runs one scenario with the suite's command line. */
export async function runScenario(args: readonly string[]): Promise<Verdict> {
  const [verdict] = [...(await runSuite(args)).values()];
  if (verdict === undefined) throw new Error(`the suite left no result: ${args.join(" ")}`);
  return verdict;
}

/** Runs scenarios in one process of the suite. Returns the verdicts by the name of the scenario. */
export async function runSuite(args: readonly string[]): Promise<ReadonlyMap<string, Verdict>> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-conformance-"));
  try {
    await runNode([cli, ...args, "--output-dir", folder], repository, suiteMs);
    const files = await readdir(folder, { recursive: true });
    const results = files.filter((name) => name.endsWith("checks.json"));
    return new Map(
      await Promise.all(
        results.map(async (file) => [scenarioOf(file), await verdictIn(join(folder, file))] as const),
      ),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Limit for one process of the suite, which is shorter than the timeout of a test hook that runs it. */
const suiteMs = 110_000;

/** Returns the scenario that a result belongs to. Its folder is the scenario's name with the time of the start. */
function scenarioOf(file: string): string {
  return dirname(file).replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/u, "");
}

async function verdictIn(file: string): Promise<Verdict> {
  const checks = JSON.parse(await readFile(file, "utf8")) as readonly Check[];
  const of = (status: string): readonly string[] =>
    checks
      .filter((check) => check.status === status)
      .map(({ id, errorMessage = "" }) => `${id}: ${errorMessage}`);
  return { passed: of("SUCCESS").length, failures: of("FAILURE"), warnings: of("WARNING") };
}
