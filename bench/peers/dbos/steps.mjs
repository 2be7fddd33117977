// node steps.mjs URL: reads { runs, each } as lines of JSON, and answers each with the steps per second.
import { createInterface } from "node:readline";
import { DBOS } from "@dbos-inc/dbos-sdk";

const [url] = process.argv.slice(2);
const kilobyte = { text: "x".repeat(1_000) };

DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, runAdminServer: false, logLevel: "error" });
const work = DBOS.registerWorkflow(
  async (each) => {
    for (let index = 0; index < each; index++) await DBOS.runStep(async () => kilobyte, { name: "work" });
    return "done";
  },
  { name: "work" },
);
await DBOS.launch();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const { runs, each } = JSON.parse(line);
  const began = performance.now();
  await Promise.all(Array.from({ length: runs }, () => work(each)));
  console.log(JSON.stringify((runs * each) / ((performance.now() - began) / 1_000)));
}
await DBOS.shutdown();
