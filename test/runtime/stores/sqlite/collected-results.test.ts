import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Agent, openRuntime } from "../../../../src/entries/index.ts";
import type { Model } from "../../../../src/kernel/index.ts";

const usage = {
  inputTokens: 1,
  outputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

/** Answers every request. A scripted model would keep all requests. */
const model: Model = {
  provider: "test",
  modelId: "echo",
  generate: async () => ({
    message: { role: "assistant", content: [{ type: "text", text: "done" }] },
    stopReason: "stop",
    usage,
  }),
  stream: async function* stream() {
    yield* [];
  },
};

test("invoke() on SQLite returns its result with keepEndedRunsMs: 0, in 500 invocations", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-collected-"));
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  const runtime = await openRuntime({ store, keepEndedRunsMs: 0, unknownPrice: "ignore" });
  try {
    const agent = new Agent({ name: "echo", model });
    for (let run = 0; run < 500; run++)
      expect(await agent.invoke("go", { runtime })).toMatchObject({ status: "completed", output: "done" });
  } finally {
    await runtime.close();
    await rm(folder, { recursive: true });
  }
});
