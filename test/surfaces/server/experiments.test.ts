import { expect, it, onTestFinished } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { experiment } from "../../../src/experiments/index.ts";
import { answering, askedIn } from "../../experiments/answering-model.ts";
import { startServer } from "./test-server.ts";

it("the server lists experiments with their gates, reads and compares them, and hides them from other tenants", async () => {
  const known = ["France", "Peru"];
  const clerk = new Agent({
    name: "clerk",
    model: answering((request) => (known.includes(askedIn(request)) ? "yes" : "no")),
  });
  const given = experiment({
    name: "capitals",
    agent: clerk,
    cases: known.map((country) => ({ id: country, input: country, expected: "yes" })),
    scorers: [
      function exact({ output, expected }) {
        return { score: output === expected, reason: "compared" };
      },
    ],
    gates: { exact: { mean: 0.9, maxDrop: 0.1 } },
  });
  const server = await startServer([clerk], { runtimeOptions: { unknownPrice: "ignore" } });
  onTestFinished(() => server.close());
  const [acme, other] = [await server.tokenOf("acme", "read"), await server.tokenOf("other", "read")];
  const runtime = server.runtime.forTenant({ tenantId: "acme" });
  await clerk.invoke("Peru", { runtime });
  const first = await given.run({ runtime });
  known.pop();
  const second = await given.run({ runtime });

  const { json: list } = await server.call("GET", "/api/experiments", { token: acme });
  expect(list["experiments"]).toMatchObject([
    {
      name: "capitals",
      cases: 2,
      endedTrials: 2,
      expectedTrials: 2,
      isPassed: false,
      reasons: [expect.stringContaining("the mean is 0.500")],
      lowest: { scorer: "exact", mean: 0.5 },
    },
    { isPassed: true, reasons: [], lowest: { mean: 1 } },
  ]);
  const { json: hidden } = await server.call("GET", "/api/experiments", { token: other });
  expect(hidden["experiments"]).toEqual([]);

  const path = `/api/experiments/${encodeURIComponent(second.runId)}`;
  const compared = await server.call("GET", `${path}?baseline=${encodeURIComponent(first.runId)}`, {
    token: acme,
  });
  expect(compared.json).toMatchObject({
    report: {
      changes: [{ caseId: "Peru", before: 1, after: 0, reason: "compared" }],
      gates: [{ isPassed: false }, { isPassed: false }],
      isUnreliable: true,
    },
  });
  // In the order in which the trials ended.
  const rows = compared.json["rows"] as readonly { readonly caseId: string }[];
  expect(rows.map(({ caseId }) => caseId).toSorted()).toEqual(["France", "Peru"]);
  expect(compared.json["baselineRows"]).toHaveLength(2);
  const one = await server.call("GET", `${path}/cases?caseId=Peru`, { token: acme });
  expect(one.json).toMatchObject({ input: "Peru", trials: [{ caseId: "Peru", output: "no" }] });
  expect((await server.call("GET", path, { token: other })).status).toBe(404);
});
