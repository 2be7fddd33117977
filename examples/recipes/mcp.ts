// A program offers its tools over MCP. An agent in another process uses them over MCP and asks before it pays.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Agent, openRuntime, tool } from "reeve";
import { mcpServer, mcpServers } from "reeve/mcp";
import { scriptedModel } from "reeve/testing";

if (process.argv[2] === "serve") {
  // The other side: this very file, started by the client below as a server.
  const pay = tool({
    name: "pay",
    description: "Pays an invoice",
    inputSchema: { type: "object", properties: { usd: { type: "number" } }, required: ["usd"] } as const,
    risk: "critical",
    needsApproval: true,
    execute: ({ usd }) => `paid ${usd} USD`,
  });
  const server = await mcpServer({ name: "till", tools: [pay] });
  await server.serveStdio().closed;
  await server.close();
} else {
  const mcp = mcpServers({
    till: {
      command: process.execPath,
      args: [fileURLToPath(import.meta.url), "serve"],
      env: { TILL: "${TILL:-main}" },
    },
  });
  const runtime = await openRuntime();
  const clerk = new Agent({
    name: "clerk",
    model: scriptedModel([
      { toolCalls: [{ name: "mcp__till__pay", input: { usd: 20 } }] },
      "The roofer has the money.",
    ]),
    tools: await mcp.tools(), // the server starts here
  });

  const run = await runtime.submit(clerk, "Pay the roofer.");
  for await (const event of run.events({ types: ["approval_request"] })) {
    if (event.type !== "approval_request") continue;
    console.log(event.data.reason); // the server's question, shown to the person who watches this run
    await run.approve(event.data.approvalId, { decision: "approved", by: "grace" });
    break;
  }
  const { status, output } = await run.result();
  const said: string[] = [];
  for await (const event of run.events()) {
    if (event.type === "tool_execution_end") said.push(JSON.stringify(event.data.result.output));
  }
  console.log(status, output, said);
  assert.equal(status, "completed");
  assert.deepEqual(said, ['{"type":"text","text":"paid 20 USD"}']);
  await runtime.close();
  await mcp.close();
}
