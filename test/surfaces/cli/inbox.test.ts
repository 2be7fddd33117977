import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime, openStore, tool } from "../../../src/entries/index.ts";
import { formatAgentId, type HostedAgent } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { reeve } from "./reeve-process.ts";

const erase = tool({
  name: "erase",
  description: "Erases a disk",
  inputSchema: { type: "object", properties: { disk: { type: "string" } }, required: ["disk"] } as const,
  needsApproval: true,
  execute: ({ disk }) => `erased ${disk}`,
});
const prices = { find: () => ({ inputUsd: 1e-3, outputUsd: 1e-3 }) };

/** A store with an approval, a question, a request for money, a stopped run and a message that was not delivered. */
async function inbox() {
  const folder = await mkdtemp(join(tmpdir(), "reeve-inbox-"));
  const address = `sqlite:${join(folder, "reeve.db")}` as const;
  const store = await openStore(address, { inbox: { maxDeliveries: 1 } });
  const runtime = await openRuntime({ store, prices });
  onTestFinished(async () => {
    await runtime.close();
    await store.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const model = scriptedModel([{ toolCalls: [{ name: "erase", input: { disk: "sda\u202e" } }] }]);
  const clerk = new Agent({ name: "clerk", model, tools: [erase] });
  await (await clerk.submit("Erase", { runtime, runId: "run_approval" })).untilPersonIsNeeded();
  const asker: HostedAgent = {
    id: formatAgentId({ name: "asker" }),
    run: (ctx) =>
      ctx.approval({
        toolName: "ask",
        callId: "c1",
        input: { message: "Which disk?" },
        reason: "the agent asks",
        kind: "input",
      }),
  };
  await (await runtime.submit(asker, "", { runId: "run_question" })).untilPersonIsNeeded();
  const budget = { maxTokens: 10 };
  const poor = new Agent({ name: "poor", model: scriptedModel(["Yes."]), budget, onBudget: "ask" });
  await (await poor.submit("?", { runtime, runId: "run_money" })).untilPersonIsNeeded();
  const broke = new Agent({ name: "broke", model: scriptedModel(["Yes."]), budget });
  await (await broke.submit("?", { runtime, runId: "run_stopped" })).result();
  const to = formatAgentId({ name: "porter" });
  await store.inbox.deliver({ id: "$(rm x)", from: null, to, body: "Hi", sentAt: 1 });
  await store.inbox.nack(to, ["$(rm x)"]);
  const cli = (...args: string[]): ReturnType<typeof reeve> => reeve([...args, "--store", address]);
  return { cli, address };
}

test("reeve inbox lists what waits for a person with the command that answers it, and shows hidden characters", async () => {
  const { cli, address } = await inbox();
  const { code, out } = await cli("inbox");
  expect(code).toBe(0);
  const cells = out.map((line) => line.split(/ {2,}/u));
  const store = `--store ${address}`;
  expect(cells.map(([what, run, , agent, text]) => [what, run, agent, text])).toEqual([
    ["approval", "run_approval", "clerk", String.raw`erase {"disk":"sda\u202e"}`],
    ["question", "run_question", "asker", "Which disk?"],
    ["budget", "run_money", "poor", expect.stringContaining("tokens")],
    ["stopped", "run_stopped", "broke", "budget_exhausted, $0.0000 spent"],
    ["not delivered", "-", "porter", 'tried 1x: "Hi"'],
  ]);
  expect(cells.map((line) => line.at(-1))).toEqual([
    expect.stringMatching(new RegExp(`^reeve approve ${store} run_approval --id \\S+$`, "u")),
    expect.stringMatching(new RegExp(`^reeve approve ${store} run_question --id \\S+$`, "u")),
    expect.stringMatching(new RegExp(`^reeve approve ${store} run_money --id \\S+$`, "u")),
    `reeve top-up ${store} run_stopped --tokens N`,
    `reeve redeliver ${store} porter -- '$(rm x)'`,
  ]);
});

test("reeve inbox chooses by run, agent and kind, and --json prints the items in full", async () => {
  const { cli } = await inbox();
  const waits = async (...args: string[]): Promise<readonly unknown[]> => {
    const { out } = await cli("inbox", ...args, "--json");
    return out.map((line) => (JSON.parse(line) as { waits: string }).waits);
  };
  expect(await waits()).toEqual(["approval", "question", "budget", "stopped", "not delivered"]);
  expect(await waits("run_appr")).toEqual(["approval"]);
  expect(await waits("--agent", "porter")).toEqual(["not delivered"]);
  expect(await waits("--kind", "run")).toEqual(["stopped"]);
  expect(await waits("--limit", "1", "--kind", "question")).toEqual(["approval"]);
  const [stopped] = (await cli("inbox", "--kind", "run", "--json")).out;
  expect(JSON.parse(stopped ?? "")).toMatchObject({
    runId: "run_stopped",
    lack: { name: "maxTokens", limit: 10 },
    answer: expect.stringContaining("--tokens N") as string,
  });
  expect(await cli("inbox", "--kind", "letters")).toMatchObject({ code: 2, out: [] });
  expect((await cli("inbox", "--agent", "ghost")).talk).toBe("Nothing waits for a person.\n");
});
