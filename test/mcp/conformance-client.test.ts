import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { clientScenarios, runClientScenario } from "./conformance-suite.ts";

const all = await clientScenarios();
const program = `"${process.execPath}" "${fileURLToPath(new URL("conformance-client.ts", import.meta.url))}"`;

it("the conformance suite lists its client scenarios", () => {
  expect(all).toHaveLength(26);
});

it.for(all)("the client passes the conformance scenario %s", async (scenario) => {
  const { passed, failures, warnings } = await runClientScenario(scenario, program);
  expect({ failures, warnings }).toEqual({ failures: [], warnings: [] });
  expect(passed).toBeGreaterThan(0);
});
