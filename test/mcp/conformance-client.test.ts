import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { runScenario, scenarios } from "./conformance-suite.ts";

const all = await scenarios("client");
const program = `"${process.execPath}" "${fileURLToPath(new URL("conformance-client.ts", import.meta.url))}"`;

it("the conformance suite lists its client scenarios", () => {
  expect(all).toHaveLength(26);
});

it.for(all)("the client passes the conformance scenario %s", async (scenario) => {
  const args = ["client", "--command", program, "--scenario", scenario, "--timeout", "45000"];
  const { passed, failures, warnings } = await runScenario(args);
  expect({ failures, warnings }).toEqual({ failures: [], warnings: [] });
  expect(passed).toBeGreaterThan(0);
});
