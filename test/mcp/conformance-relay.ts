/**
 * The program that the conformance suite starts as a client, with the arguments PORT URL. The test that listens on the
 * port acts as the client, because a process that loads Reeve would need five times the processor time. This program
 * ends in the same way as that client.
 */
import type { IncomingMessage } from "node:http";
import type { ClientOrders } from "./conformance-client.ts";

const [, , port = "", url = ""] = process.argv;
const { MCP_CONFORMANCE_SCENARIO: scenario = "", MCP_CONFORMANCE_CONTEXT: context = "{}" } = process.env;
const orders: ClientOrders = { url, scenario, context: JSON.parse(context) as ClientOrders["context"] };
const end = (response: IncomingMessage): void => {
  process.exitCode = response.statusCode === 200 ? 0 : 1;
  response.pipe(process.stderr);
};
process
  .getBuiltinModule("node:http")
  .request({ host: "127.0.0.1", port, method: "POST", agent: false }, end)
  .end(JSON.stringify(orders));
