import { expect, it, onTestFinished } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { tool } from "../../src/capabilities/index.ts";
import { mcpServers } from "../../src/assembly/mcp.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { storedStateKey } from "../../src/surfaces/cli/commands/serve/serve-command.ts";
import { newPath } from "../runtime/stores/sqlite/store-files.ts";
import { endlessModel } from "../surfaces/protocols/endless-model.ts";
import { startServer, type TestServer } from "../surfaces/server/test-server.ts";
import { caller } from "./live-servers.ts";

it("an MCP host with the protocol of 2026-07-28 answers a question after a restart of a server with its key in the store", async () => {
  let sent = 0;
  const send = tool({
    name: "send",
    description: "Sends a letter",
    inputSchema: { type: "object", properties: {} },
    needsApproval: true,
    execute: () => `sent ${++sent}`,
  });
  const path = await newPath();
  /** Starts the server as `reeve serve` does after a restart: with new objects on the same store. */
  const start = async (port: number): Promise<TestServer> => {
    const store = await sqliteStore({ path, hash: sha256, watchEveryMs: 5 });
    const model = endlessModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "It is sent." : { toolCalls: [{ name: "send", input: {} }] },
    );
    const stateKey = await storedStateKey(store.records);
    const agents = [new Agent({ name: "careful", description: "Sends", model, tools: [send] })];
    return startServer(agents, { store, mcp: { stateKey }, listen: { port } });
  };
  const first = await start(0);
  const token = await first.tokenOf("acme", "run", "ann");
  const host = mcpServers({
    careful: {
      url: `${first.url}/mcp`,
      protocol: "2026-07-28",
      headers: { authorization: `Bearer ${token}` },
    },
  });
  const runtime = await openRuntime();
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  const agent = caller(await host.tools());
  const run = await runtime.submit(agent, { toolName: "mcp__careful__careful", input: { input: "Go" } });
  const [question] = await run.untilPersonIsNeeded();
  await first.close();
  const second = await start(first.port);
  onTestFinished(() => second.close());
  await run.approve(question?.approvalId ?? "", { decision: "approved" });
  expect(JSON.stringify((await run.result()).output)).toContain("It is sent.");
  expect(sent).toBe(1);
});
