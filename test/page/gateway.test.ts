import type { Locator } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { Gateway } from "../../src/capabilities/gateway/gateway.ts";
import { gatewayAgent, GatewayRuns } from "../../src/capabilities/gateway/gateway-runs.ts";
import { GatewayTokens } from "../../src/capabilities/gateway/gateway-tokens.ts";
import { formatRunId, type OnBudget, type RunHandle, type RunRecord } from "../../src/kernel/index.ts";
import { runIdWithin } from "../../src/runtime/index.ts";
import { answerJson, MockUpstream } from "../capabilities/gateway/mock-upstream.ts";
import { axeIssues } from "./axe-issues.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { pageTests } from "./page-tests.ts";

const { server, open } = pageTests();
const model = "claude-sonnet-4-5";

interface Program {
  readonly run: RunHandle;
  readonly runs: GatewayRuns;
  readonly upstream: MockUpstream;
  /** Sends a request and returns the status of the answer. */
  readonly ask: (changes?: object) => Promise<number>;
}

interface ProgramOptions {
  readonly onBudget?: OnBudget;
  /** B7: whether the budget renews each month, as a cap. */
  readonly isCapped?: boolean;
}

/** A gateway run whose budget of 0.10 USD pays for one request of 1,000 tokens. */
async function program(
  name: string,
  { onBudget = "ask", isCapped = false }: ProgramOptions = {},
): Promise<Program> {
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
  server.gateway = { runs };
  onTestFinished(async () => {
    server.gateway = undefined;
    await runs.close(0);
    await gateway.close();
    await upstream.close();
  });
  const runId = runIdWithin("acme", formatRunId(crypto.randomUUID()));
  const token = await tokens.create(runId);
  const metadata = { gateway: name, maxBudgetUsd: 0.1, ...(isCapped && { per: "month" }) };
  const { id } = gatewayAgent(name);
  const agent = await runs.resolver.resolve({ agentId: id, metadata } as unknown as RunRecord);
  if (agent === undefined) throw new Error("the resolver made no agent");
  const run = await runtime.submit(
    { ...agent, onBudget },
    { models: null, wire: null, expiresAt: null, served: 0 },
    { runId, metadata, ...(!isCapped && { budget: { maxCostUsd: 0.1 } }), userId: "ann", tenantId: "acme" },
  );
  return {
    run,
    runs,
    upstream,
    ask: async (changes = {}) => {
      const body = JSON.stringify({ model, max_tokens: 1000, messages: [], ...changes });
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

test("a gateway run shows what was refused and why, what was reserved and sent, and which cap resets when", async () => {
  const { run, ask, upstream } = await program("team", { isCapped: true });
  upstream.answer = (_received, response) => void response.destroy();
  expect(await ask({ max_tokens: 200 })).toBe(502);
  upstream.answer = ({ path }, response) =>
    answerJson(
      response,
      path.endsWith("count_tokens")
        ? { input_tokens: 0 }
        : { usage: { input_tokens: 0, output_tokens: 100 } },
    );
  expect(await ask({ max_tokens: 500 })).toBe(200);
  expect(await ask({ tools: [{ type: "web_search_20250305" }] })).toBe(403);
  expect(await ask({ max_tokens: 90_000, thinking: { type: "enabled", budget_tokens: 89_000 } })).toBe(402);
  const page = await open(`/runs/${run.runId}`);
  const requests = page.getByRole("table", { name: "Requests, newest first" });
  const row = (text: string): Locator => requests.getByRole("row").filter({ hasText: text });
  await row("402, above the cap, not sent").getByText(model).waitFor();
  await row("403, not sent")
    .getByText(/web_search_20250305/)
    .waitFor();
  await row("done")
    .getByText(/given back/)
    .waitFor();
  await row("cut before its usage was known").getByText("200", { exact: true }).waitFor();
  expect(await row("cut before its usage was known").getByRole("cell").last().textContent()).toMatch(
    /^\$0\.\d+$/,
  );
  await page.getByText(/The cap of \$0\.10+ .*is used up\. It resets at/).waitFor();
  expect(await requests.getByRole("row").count()).toBe(5);
  await page.getByText("Token …").waitFor();
  await page.getByText(/^0 open requests\. The gateway adds/).waitFor();
  await page.getByRole("button", { name: "Revoke token" }).click();
  const ask2 = page.getByRole("dialog", { name: "Revoke the token" });
  await ask2.getByText("No request is open.").waitFor();
  await ask2.getByRole("button", { name: "Revoke token" }).click();
  await page.getByText("The tokens are revoked.").waitFor();
  expect(await ask()).toBe(401);
});

test("a refusal because of the budget is shown with the model, and a run that another server drives says so", async () => {
  const { run, ask, runs } = await program("elsewhere", { onBudget: "end" });
  expect(await ask()).toBe(200);
  const page = await open("/gateway");
  const listed = page.getByRole("row").filter({ hasText: "elsewhere" });
  await listed.getByRole("cell", { name: "0", exact: true }).waitFor();
  await page.getByText("Added delay").waitFor();
  // Another server drives the run: this one knows nothing of it.
  server.gateway = undefined;
  await listed.getByText("not here").waitFor();
  await page.goto(`${server.url}/runs/${run.runId}`);
  await page.getByText(/This server does not drive the run, and answers its requests with 503/).waitFor();
  server.gateway = { runs };
  expect(await ask()).toBe(402);
  const refused = page.getByRole("row").filter({ hasText: "402, above the budget, not sent" });
  await refused.getByText(model).waitFor();
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
