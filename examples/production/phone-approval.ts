// A person approves a tool call on a phone. The server notifies an address, such as that of a push service, that a run waits. The
// notification contains the id of the run, and nothing that was said in it. The phone then uses the API of the page with the person's token.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Agent, openRuntime, openStore, tool } from "reeve";
import { createChannels, createServer, listen, pageFolder, storedTokens } from "reeve/server";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";

const deployed: string[] = [];
const deploy = tool({
  name: "deploy",
  description: "Deploys a version.",
  inputSchema: z.object({ version: z.string() }),
  needsApproval: true,
  execute: ({ version }) => {
    deployed.push(version);
    return "deployed";
  },
});
const model = scriptedModel([
  { toolCalls: [{ name: "deploy", input: { version: "2.4" } }] },
  "Version 2.4 is live.",
]);
const operator = new Agent({ name: "operator", model, tools: [deploy] });

// A push service, played by a server of this machine. It checks the signature and keeps the notification.
const secret = "0123456789abcdef0123456789abcdef";
const notified = Promise.withResolvers<unknown>();
async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  const [, seconds, mac] = /^t=(\d+),v1=(\w+)$/u.exec(String(request.headers["x-reeve-signature"])) ?? [];
  assert.equal(mac, createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex"));
  response.end();
  notified.resolve(JSON.parse(body));
}
const push = createHttpServer((request, response) => void receive(request, response));
await new Promise<void>((resolve) => void push.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(push.address() as AddressInfo).port}/push`;

const store = await openStore("memory:"); // "sqlite:./reeve.db": the question outlives the server
const runtime = await openRuntime({ store });
const tokens = storedTokens(store.records);
const phone = {
  name: "phone",
  to: { url, secret, allowPrivate: true },
  on: ["waiting"],
  users: ["ann"],
} as const;
const channels = createChannels(runtime, { store, agents: [operator], channels: [], notifications: [phone] });
const server = createServer(runtime, { agents: [operator], tokens, page: pageFolder });
const listening = await listen(server, { port: 0 });
channels.start();

// Something starts the run, such as a schedule or another program. It belongs to Ann.
const run = await runtime.submit(operator, "Deploy version 2.4.", { userId: "ann", tenantId: "acme" });

// The phone. The page is at the address of the server and sends the same requests; the token belongs to Ann.
const { token } = await tokens.create({ name: "phone", scope: "run", tenantId: "acme", userId: "ann" });
async function ask(path: string, body?: object): Promise<unknown> {
  const response = await fetch(listening.url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.json();
}

const notice = z
  .object({ data: z.object({ cause: z.string(), runId: z.string() }) })
  .parse(await notified.promise);
console.log(`${notice.data.cause}: ${notice.data.runId === run.runId}`);
const question = z.object({ approvalId: z.string(), toolName: z.string(), input: z.unknown() });
const { approvals } = z
  .object({ approvals: z.array(question) })
  .parse(await ask(`/api/runs/${run.runId}/approvals`));
const [open] = approvals;
console.log(open?.toolName, JSON.stringify(open?.input));
assert.deepEqual(deployed, []);

await ask(`/api/runs/${run.runId}/decide`, { approvalId: open?.approvalId, decision: "approved" });
const { output } = await run.result();
console.log(output);
assert.equal(output, "Version 2.4 is live.");
assert.deepEqual(deployed, ["2.4"]);

await channels.close();
await listening.close();
await runtime.close();
push.close();
