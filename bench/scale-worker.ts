// A worker process of the scale benchmark: node scale-worker.ts ORDERS. It writes "ready" to stdout and executes runs until it is killed.
import { openRuntime, sha256 } from "reeve";
import type { EngineFactory } from "reeve/kernel";
import { postgresStore } from "reeve/postgres";
import { restate } from "reeve/restate";
import { stepping, type ScaleSite, type ScaleWorkerOrders } from "./scale-agent.ts";

const orders = JSON.parse(process.argv[2] ?? "{}") as ScaleWorkerOrders;
const { url, schema, workerId, leaseMs, concurrency, callMs, site } = orders;
const store = await postgresStore({ url, schema, leaseMs, hash: sha256 });
const runtime = await openRuntime({
  store,
  workerId,
  concurrency,
  keepAlive: true,
  ...(site !== undefined && { engine: engineOf(site) }),
  onError: ({ code, message }) => console.error(`${workerId}: ${code}: ${message}`),
});
runtime.register(stepping(callMs));
console.log("ready");

function engineOf({ ingressUrl, service, registerUrl, identityKey }: ScaleSite): EngineFactory {
  const onListen = async (port: number): Promise<void> => {
    const response = await fetch(`${registerUrl}/${port}`, { method: "POST" });
    if (!response.ok) throw new Error(`the port was not registered: ${await response.text()}`);
  };
  return restate({
    ingressUrl,
    service,
    listen: { port: 0 },
    onListen,
    ...(identityKey !== undefined && { identityKeys: [identityKey] }),
  });
}
