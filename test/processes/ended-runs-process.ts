// Prints the kilobytes per ended run that survive minor garbage collections. Started with --expose-gc.
import { Agent, HistoryRetention, openRuntime } from "../../src/entries/index.ts";
import type { Model, ModelResponse } from "../../src/kernel/index.ts";

const answer: ModelResponse = {
  message: { role: "assistant", content: [{ type: "text", text: "done" }] },
  stopReason: "stop",
  usage: { inputTokens: 10, outputTokens: 5 },
};
const model: Model = {
  provider: "test",
  modelId: "test",
  generate: async () => answer,
  async *stream() {
    yield { type: "finish", ...answer };
  },
};
const agent = new Agent({ name: "worker", model });
const runtime = await openRuntime({ unknownPrice: "ignore", keepEndedRunsMs: 0 });

async function finish(runs: number): Promise<void> {
  for (let run = 0; run < runs; run++) {
    const handle = await runtime.submit(agent, "work", { retention: HistoryRetention.RUN });
    await handle.result();
  }
}

function heapAfter(type: "minor" | "major"): number {
  globalThis.gc?.({ type, execution: "sync" });
  return process.memoryUsage().heapUsed / 1_024;
}

// The compiler has finished with the code of a run by then, so that the measured heap holds runs only.
await finish(2_000);
const before = heapAfter("major");
const runs = 900;
for (let batch = 0; batch < 10; batch++) {
  await finish(runs / 10);
  // An object that survives two minor collections is moved to old space, which only a full collection frees.
  heapAfter("minor");
  heapAfter("minor");
}
process.stdout.write(`${(heapAfter("minor") - before) / runs}\n`);
await runtime.close();
