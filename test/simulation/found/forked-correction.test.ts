import { expect, test } from "vitest";
import { Agent } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/entries/testing.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";

// Workload basics, seed 1035.
test("a fork of a run whose usage was corrected continues", async () => {
  const store = memoryStore({ hash: sha256 });
  const runtime = await createRuntime({ store, unknownPrice: "ignore", onError: () => undefined });
  const model = scriptedModel([{ text: "Bern.", cut: true }, "Bern.", "Paris."]);
  const clerk = new Agent({ name: "clerk", model, retry: { baseDelayMs: 1 } });
  runtime.register(clerk);
  const run = await runtime.submit(clerk, "Name the capital.", { streaming: true });
  await run.result();
  for await (const event of run.events({ types: ["budget_lost"], follow: false }))
    if (event.type === "budget_lost")
      await runtime.correctUsage(run.runId, event.data.reservationId, { inputTokens: 3, outputTokens: 2 });
  for (;;) {
    const { unreported } = await run.result();
    if (unreported.tokens === 0) break;
    await new Promise<void>((resolve) => {
      const forget = store.onChange(() => {
        forget();
        resolve();
      });
    });
  }
  const types: string[] = [];
  for await (const { type } of store.events.read(run.runId)) types.push(type);
  expect(types).toContain("usage_corrected");
  const fork = await run.fork({ at: types.length - 1, input: "That of France." });
  expect((await fork.result()).output).toBe("Paris.");
  await runtime.close();
});
