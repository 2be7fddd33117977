import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** The result of one case of a suite. */
export interface CaseResult {
  readonly id: string;
  readonly status: "passed" | "failed" | "skipped";
  /** Why the case has not passed. */
  readonly reason?: string;
}

/** The result of a suite that others have written. */
export interface SuiteResult {
  /** Version of the suite or of its specification. */
  readonly version: string;
  readonly cases: readonly CaseResult[];
}

/** A suite, as the page lists it. */
export interface KnownSuite {
  /** Name on the command line. */
  readonly name: string;
  /** What the page says about the suite. */
  readonly title: string;
  /** The command that runs it. */
  readonly command: string;
}

export const knownSuites: readonly KnownSuite[] = [
  {
    name: "open-responses",
    title:
      "Compliance cases of [Open Responses](https://github.com/openresponses/openresponses), against `/v1/responses` of a server with one agent",
    command: "npm run conformance -- open-responses --suite DIR",
  },
];

export type Results = Readonly<Record<string, SuiteResult>>;

const resultsFile: string = fileURLToPath(new URL("results.json", import.meta.url));
export const pageFile: string = fileURLToPath(
  new URL("../../docs/reference/conformance.md", import.meta.url),
);

export async function readResults(): Promise<Results> {
  return JSON.parse(await readFile(resultsFile, "utf8")) as Results;
}

/** Stores the result of a suite, and writes the page from all results. */
export async function storeResult(name: string, result: SuiteResult): Promise<void> {
  const results = { ...(await readResults()), [name]: result };
  await writeFile(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  await writeFile(pageFile, pageOf(results));
}

/** The ids of the cases that have passed before and do not pass any more. */
export function worseCases(before: SuiteResult | undefined, after: SuiteResult): readonly string[] {
  const passing = new Set(after.cases.filter(({ status }) => status === "passed").map(({ id }) => id));
  const passed = (before?.cases ?? []).filter(({ status }) => status === "passed");
  return passed.map(({ id }) => id).filter((id) => !passing.has(id));
}

export function countOf({ cases }: SuiteResult, status: CaseResult["status"]): number {
  return cases.filter((each) => each.status === status).length;
}

const opening = `# Conformance

Each protocol that Reeve speaks is checked by programs of others. This page lists the suites that are not part of a package of npm, so that their figures are recorded instead of measured in every test run. \`npm run conformance\` writes the page.

`;

const closing = `
## In every test run

These programs of others are packages of npm. The tests of Reeve use them as clients or servers.

| Protocol | Program | Tests |
|---|---|---|
| Responses and chat completions of OpenAI | \`openai\`, \`@ai-sdk/openai\` with \`ai\` | \`test/surfaces/protocols/responses*.test.ts\`, \`test/surfaces/protocols/openai*.test.ts\`, \`test/crash/responses.test.ts\` |
| UI messages | \`ai\` | \`test/surfaces/protocols/chat*.test.ts\` |
| AG-UI | \`@ag-ui/client\` | \`test/surfaces/protocols/ag-ui.test.ts\` |
| MCP | [\`@modelcontextprotocol/conformance\`](../guides/mcp.md#conformance) | \`npm run test:mcp\` |
`;

/** The page of all results. */
export function pageOf(results: Results): string {
  const rows = knownSuites.map(({ name, title, command }) => {
    const result = results[name];
    if (result === undefined) return `| ${title} | | not run: \`${command}\` | | |`;
    const counts = (["passed", "failed", "skipped"] as const).map((status) => countOf(result, status));
    return `| ${title} | ${result.version} | ${counts.join(" | ")} |`;
  });
  const table = `| Suite | Version | Passed | Failed | Skipped |\n|---|---|--:|--:|--:|\n${rows.join("\n")}\n`;
  const commands = knownSuites.map(({ command }) => `${command}\n`).join("");
  const details = knownSuites.flatMap(({ name }) => {
    const result = results[name];
    return result === undefined ? [] : [reasonsOf(name, result)];
  });
  return `${opening}${table}\n\`\`\`sh\n${commands}\`\`\`\n\n\`DIR\` is a checkout of the suite, which Reeve does not contain. The command fails if a case does not pass that has passed before. With \`--write\` it stores the figures in \`test/conformance/results.json\` and writes this page.\n${details.join("")}${closing}`;
}

/** The cases that have not passed, grouped by their reason. */
function reasonsOf(name: string, { cases }: SuiteResult): string {
  const others = cases.filter(({ status }) => status !== "passed");
  if (others.length === 0) return "";
  const groups = Map.groupBy(others, ({ reason = "no reason" }) => reason);
  const rows = [...groups].map(
    ([reason, members]) => `| ${members.map(({ id }) => `\`${id}\``).join(", ")} | ${reason} |\n`,
  );
  return `\n## Cases of ${name} that fail\n\n| Cases | Reason |\n|---|---|\n${rows.join("")}`;
}
