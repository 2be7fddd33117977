import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, it } from "vitest";
import { conformanceServer } from "./conformance-server.ts";
import { runScenario, scenarios } from "./conformance-suite.ts";

const all = await scenarios("server");
const server = await conformanceServer(() => undefined);
const http = createServer(server.handle).listen(0, "127.0.0.1");
await once(http, "listening");
const url = `http://localhost:${(http.address() as AddressInfo).port}/mcp`;

afterAll(async () => {
  await server.close();
  http.closeAllConnections();
  http.close();
});

/**
 * Warnings that are expected: the suite uses 2025-03-26 here, and the first event of a stream and its `retry` are sent
 * only from 2025-11-25 on.
 */
const recommended: Readonly<Record<string, number>> = { "server-sse-polling": 2 };

it("the conformance suite lists its server scenarios", () => {
  expect(all).toHaveLength(32);
});

it.for(all)("the server passes the conformance scenario %s", async (scenario) => {
  const { passed, failures, warnings } = await runScenario(["server", "--url", url, "--scenario", scenario]);
  expect(failures).toEqual([]);
  expect(warnings).toHaveLength(recommended[scenario] ?? 0);
  expect(passed + warnings.length).toBeGreaterThan(0);
});
