/** A Reeve MCP server as a program: a tool that counts its executions, a tool that needs approval, and an agent. */
import { Agent, tool } from "../../src/entries/index.ts";
import { mcpServer } from "../../src/assembly/mcp.ts";
import { scriptedModel } from "../../src/testing/index.ts";

let calls = 0;
const nothing = { type: "object", properties: {} } as const;

const server = await mcpServer({
  name: "own",
  tools: [
    tool({
      name: "count",
      description: "Counts its executions",
      inputSchema: nothing,
      execute: () => ({ calls: ++calls }),
    }),
    tool({
      name: "pay",
      description: "Pays",
      inputSchema: { type: "object", properties: { usd: { type: "number" } }, required: ["usd"] } as const,
      risk: "critical",
      needsApproval: true,
      execute: ({ usd }) => `paid ${usd}`,
    }),
  ],
  agents: [
    {
      agent: new Agent({ name: "clerk", model: scriptedModel([["It is ", "done."].join("")]) }),
      description: "Does the work of a clerk",
    },
  ],
});
await server.serveStdio().closed;
await server.close();
