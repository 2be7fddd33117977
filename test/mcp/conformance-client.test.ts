import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, it } from "vitest";
import { bundleScripts } from "../bundle-scripts.ts";
import { runSuite, scenarios, type Verdict } from "./conformance-suite.ts";

const all = await scenarios("client");
const verdicts = new Map<string, Verdict>();

function isLate(verdict: Verdict | undefined): boolean {
  return verdict?.warnings.some((warning) => warning.includes("reconnected slightly late")) === true;
}

beforeAll(async () => {
  const script = fileURLToPath(new URL("conformance-client.ts", import.meta.url));
  const bundled = await bundleScripts({ "conformance-client": script });
  const command = `"${process.execPath}" "${join(bundled.dir, "conformance-client.mjs")}"`;
  const runWith = async (...args: readonly string[]): Promise<void> => {
    const found = await runSuite(["client", "--command", command, "--timeout", "90000", ...args]);
    for (const [scenario, verdict] of found) verdicts.set(scenario, verdict);
  };
  try {
    // The suite runs the scenarios of `auth` at once. The others measure times, so each runs alone.
    await runWith("--suite", "auth");
    for (const scenario of all.filter((name) => !verdicts.has(name))) await runWith("--scenario", scenario);
    // A busy machine delays the reconnect that this scenario measures, and the suite then warns. It must be on time once.
    for (let attempt = 0; attempt < 4 && isLate(verdicts.get("sse-retry")); attempt++)
      await runWith("--scenario", "sse-retry");
  } finally {
    await bundled.remove();
  }
});

it("the conformance suite lists its client scenarios", () => {
  expect(all).toHaveLength(26);
});

it.for(all)("the client passes the conformance scenario %s", (scenario) => {
  const { passed = 0, failures, warnings } = verdicts.get(scenario) ?? {};
  expect({ failures, warnings }).toEqual({ failures: [], warnings: [] });
  expect(passed).toBeGreaterThan(0);
});
