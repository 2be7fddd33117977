import { expect, it, onTestFinished } from "vitest";
import { GatewayDesk } from "../../../src/capabilities/gateway/gateway-desk.ts";
import { GatewayTokens } from "../../../src/capabilities/gateway/gateway-tokens.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { startGatewayRun } from "./example-calls.ts";
import { startServer, type TestServer } from "./test-server.ts";

const figures = { open: 2, held: 1, refused: 3, addedDelayMs: 4.5 };

/** A server whose gateway executes every run of the store. */
async function drivingServer(): Promise<TestServer> {
  const store = memoryStore({ hash: sha256 });
  const driven: string[] = [];
  const runs = { figures: () => figures, driven: () => driven as never };
  const desk = new GatewayDesk(new GatewayTokens(store.records), { url: "http://127.0.0.1:1", runs });
  const server = await startServer([], { store, gateway: desk });
  onTestFinished(() => server.close());
  for (const tenantId of ["acme", "other"]) driven.push(await startGatewayRun(server, { tenantId }));
  return server;
}

it("S6: the server shows the tokens and open requests of gateway runs only to callers of their tenant", async () => {
  const server = await drivingServer();
  const { json: all } = await server.call("GET", "/api/gateway/runs");
  expect((all["runs"] as unknown[]).length).toBe(2);
  const token = await server.tokenOf("acme", "read");
  const { json: own } = await server.call("GET", "/api/gateway/runs", { token });
  const [{ runId, ...shown } = { runId: "" }, ...others] = own["runs"] as unknown as { runId: string }[];
  expect([shown, others]).toEqual([{ figures }, []]);
  const path = `/api/gateway/runs/${runId}`;
  expect((await server.call("GET", path, { token })).json).toEqual({
    url: "http://127.0.0.1:1",
    figures,
    tokens: [
      {
        ending: expect.stringMatching(/^.{3}$/) as string,
        createdAt: expect.any(Number) as number,
        expiresAt: null,
      },
    ],
    others: [],
  });
  const stranger = await server.tokenOf("other", "run");
  expect((await server.call("GET", path, { token: stranger })).status).toBe(404);
  expect((await server.call("POST", `${path}/revoke`, { token: stranger })).status).toBe(404);
  // A token that may only read does not revoke.
  expect((await server.call("POST", `${path}/revoke`, { token })).status).toBe(403);
  const mayRun = await server.tokenOf("acme", "run");
  const revoked = await server.call("POST", `${path}/revoke`, { token: mayRun });
  expect([revoked.status, revoked.json]).toEqual([202, { tokens: 1 }]);
  expect((await server.call("GET", path, { token })).json).toMatchObject({ tokens: [] });
});

it("the server lists runs by the name of their agent, and gateway runs of one program by the whole id", async () => {
  const server = await drivingServer();
  const count = async (agent: string): Promise<number> => {
    const { json } = await server.call("GET", `/api/runs?agent=${encodeURIComponent(agent)}`);
    return (json["runs"] as unknown[]).length;
  };
  const names = ["reeve:gateway", "reeve:gateway/bot", "reeve:gateway/other", "bot"];
  expect(await Promise.all(names.map(count))).toEqual([2, 2, 0, 0]);
});

it("a server without a gateway says so, and a run of another kind is refused as a gateway run", async () => {
  const server = await startServer([], { gateway: undefined as never });
  onTestFinished(() => server.close());
  const run = `/api/gateway/runs/${await startGatewayRun(server, {})}`;
  expect((await server.call("GET", "/api/gateway/runs")).text).toBe("null");
  expect((await server.call("GET", run)).text).toBe("null");
  expect((await server.call("POST", `${run}/revoke`)).json).toMatchObject({ code: "unsupported" });
  expect((await server.call("GET", "/api/gateway/runs/run_unknown")).status).toBe(404);
});
