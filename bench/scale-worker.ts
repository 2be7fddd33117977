// A worker process of the scale benchmark: node scale-worker.ts ORDERS. It writes "ready" to stdout and drives runs until it is killed.
import { openRuntime, sha256 } from "reeve";
import { postgresStore } from "reeve/postgres";
import { stepping, type ScaleWorkerOrders } from "./scale-agent.ts";

const orders = JSON.parse(process.argv[2] ?? "{}") as ScaleWorkerOrders;
const { url, schema, workerId, leaseMs, concurrency, callMs } = orders;
const store = await postgresStore({ url, schema, leaseMs, hash: sha256 });
const runtime = await openRuntime({
  store,
  workerId,
  concurrency,
  keepAlive: true,
  onError: ({ code, message }) => console.error(`${workerId}: ${code}: ${message}`),
});
runtime.register(stepping(callMs));
console.log("ready");
