// Runs a conformance suite of others against Reeve: npm run conformance -- NAME --suite DIR [--write]
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { runOpenResponses } from "./open-responses.ts";
import { countOf, knownSuites, readResults, storeResult, worseCases, type SuiteResult } from "./results.ts";

const runners: Readonly<Record<string, (folder: string) => Promise<SuiteResult>>> = {
  "open-responses": runOpenResponses,
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { suite: { type: "string" }, write: { type: "boolean", default: false } },
});
const [name = "", ...others] = positionals;
const run = Object.hasOwn(runners, name) ? runners[name] : undefined;
if (run === undefined || others.length > 0 || values.suite === undefined) {
  const commands = knownSuites.map(({ command }) => `  ${command} [--write]`).join("\n");
  process.stderr.write(`expected the name of a suite and the folder of its checkout:\n${commands}\n`);
  process.exit(2);
}
const folder = resolve(values.suite);
const result = await run(folder).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(2);
});
for (const { id, status, reason } of result.cases)
  process.stdout.write(`${status.padEnd(8)}${id}${reason === undefined ? "" : `: ${reason}`}\n`);
const counts = (["passed", "failed", "skipped"] as const).map((each) => `${countOf(result, each)} ${each}`);
process.stdout.write(`${name} ${result.version}: ${counts.join(", ")}\n`);
const worse = worseCases((await readResults())[name], result);
if (worse.length > 0) {
  process.stderr.write(`these cases have passed before: ${worse.join(", ")}\n`);
  process.exitCode = 1;
} else if (values.write) await storeResult(name, result);
