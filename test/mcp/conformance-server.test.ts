import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, it } from "vitest";
import { conformanceServer } from "./conformance-server.ts";
import { problemsOf, runServerScenarios, serverScenarioCount } from "./conformance-suite.ts";

const server = await conformanceServer(() => undefined);
const http = createServer(server.handle).listen(0, "127.0.0.1");
await once(http, "listening");
const url = `http://localhost:${(http.address() as AddressInfo).port}/mcp`;
const verdicts = await runServerScenarios(url);

afterAll(async () => {
  await server.close();
  http.closeAllConnections();
  http.close();
});

it("the MCP conformance suite runs all its server scenarios", () => {
  expect(verdicts.size).toBe(serverScenarioCount);
});

it.for([...verdicts.keys()])("the MCP server passes the conformance scenario %s", (scenario) => {
  const verdict = verdicts.get(scenario);
  expect(problemsOf(new Map(verdict && [[scenario, verdict]]))).toEqual([]);
});
