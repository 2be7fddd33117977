import { expect, onTestFinished, test } from "vitest";
import { Gateway } from "../../src/capabilities/gateway/gateway.ts";
import { gatewayAgent, GatewayRuns } from "../../src/capabilities/gateway/gateway-runs.ts";
import { GatewayTokens } from "../../src/capabilities/gateway/gateway-tokens.ts";
import { formatRunId, type RunHandle, type RunRecord } from "../../src/kernel/index.ts";
import { answerJson, MockUpstream } from "../capabilities/gateway/mock-upstream.ts";
import { axeIssues } from "./axe-issues.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { pageTests } from "./page-tests.ts";

const { server, open } = pageTests();
const model = "claude-sonnet-4-5";

interface Program {
  readonly run: RunHandle;
  /** Sends a request and returns the status of the answer. */
  readonly ask: () => Promise<number>;
}

/** A gateway run that asks at its budget, which pays for one request. */
async function program(name: string): Promise<Program> {
  const { runtime, store } = server;
  const upstream = await MockUpstream.open(({ path, body }, response) => {
    if (path.endsWith("count_tokens")) return answerJson(response, { input_tokens: 0 });
    const { max_tokens } = JSON.parse(body.toString()) as { max_tokens: number };
    answerJson(response, { usage: { input_tokens: 0, output_tokens: max_tokens } });
  });
  const tokens = new GatewayTokens(store.records);
  const runs = new GatewayRuns(tokens, runtime);
  const provider = { baseUrl: upstream.url, apiKey: "secret-key" };
  const gateway = await Gateway.open({ upstreams: { anthropic: provider } }, { stored: runs });
  onTestFinished(async () => {
    await runs.close(0);
    await gateway.close();
    await upstream.close();
  });
  const runId = formatRunId(crypto.randomUUID());
  const token = await tokens.create(runId);
  const metadata = { gateway: name, maxBudgetUsd: 0.1 };
  const { id } = gatewayAgent(name);
  const agent = await runs.resolver.resolve({ agentId: id, metadata } as unknown as RunRecord);
  if (agent === undefined) throw new Error("the resolver made no agent");
  const run = await runtime.submit(
    { ...agent, onBudget: "ask" },
    { models: null, wire: null, expiresAt: null, served: 0 },
    { runId, metadata, budget: { maxCostUsd: 0.1 }, userId: "ann", tenantId: "acme" },
  );
  return {
    run,
    ask: async () => {
      const body = JSON.stringify({ model, max_tokens: 1000, messages: [] });
      for (;;) {
        const headers = { "x-api-key": token };
        const { status } = await fetch(`${gateway.url}/v1/messages`, { method: "POST", headers, body });
        if (status !== 503) return status;
      }
    },
  };
}

test("a gateway run shows its requests, and an answer to its question in the inbox lets the held request pass", async () => {
  const { run, ask } = await program("claude");
  expect(await ask()).toBe(200);
  const held = ask();
  const page = await open("/gateway");
  const row = page.getByRole("row").filter({ hasText: "claude" });
  for (const text of ["ann", "acme", "of $0.1"]) await row.getByText(text).waitFor();
  await row.getByRole("link", { name: "claude" }).click();
  await page.getByRole("heading", { name: "claude", level: 1 }).waitFor();
  const requests = page.getByRole("table", { name: "Requests, newest first" });
  await requests.getByRole("row").filter({ hasText: model }).getByText("done").waitFor();
  expect(await page.getByRole("button", { name: "Fork" }).count()).toBe(0);
  await page.getByRole("link", { name: "1 question" }).click();
  await page.getByRole("button", { name: "Top up" }).first().click();
  expect(await held).toBe(200);
  await page.goto(`${server.url}/runs/${run.runId}`);
  await requests.getByRole("row").filter({ hasText: "done" }).nth(1).waitFor();
  await run.cancel("the test ends");
});

test.each([1440, 390])(
  "the views of a gateway run fit %i px and have no serious issue in axe",
  async (width) => {
    const { run, ask } = await program(`narrow-${width}`);
    expect(await ask()).toBe(200);
    const view = { viewport: { width, height: 900 }, colorScheme: "light", reducedMotion: "reduce" } as const;
    for (const path of ["/gateway", `/runs/${run.runId}`]) {
      const page = await open(path, view);
      await page.getByRole("table").first().waitFor();
      expect(width < 720 ? await narrowIssues(page) : []).toEqual([]);
      const overflow = "document.documentElement.scrollWidth - innerWidth";
      expect(await page.evaluate(overflow)).toBeLessThanOrEqual(0);
      expect(await axeIssues(page, [path])).toEqual([]);
    }
    await run.cancel("the test ends");
  },
);
