import type { Locator } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { answerJson } from "../capabilities/gateway/mock-upstream.ts";
import { isFull } from "../effort.ts";
import { axeIssues } from "./axe-issues.ts";
import { gatewayModel, openProgram, type Program, type ProgramOptions } from "./gateway-program.ts";
import { waitsForPerson } from "./page-runs.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { pageTests } from "./page-tests.ts";

const { server, open } = pageTests();

/** A program that ends with its test. */
async function program(name: string, options?: ProgramOptions): Promise<Program> {
  const opened = await openProgram(server, name, options);
  onTestFinished(opened.close);
  return opened;
}

test("the page shows the requests of a gateway run, and an answer in the inbox lets a held request pass", async () => {
  const { run, ask } = await program("claude");
  expect(await ask()).toBe(200);
  const held = ask();
  await waitsForPerson(server, run.runId);
  const page = await open("/gateway");
  const row = page.getByRole("row").filter({ hasText: "claude" });
  // The list, the badge and the run have one definition of what waits for a person.
  await page.getByRole("link", { name: "Inbox 1" }).waitFor();
  for (const text of ["Waits for you", "ann", "acme", "of $0.1"]) await row.getByText(text).waitFor();
  await row.getByRole("link", { name: "claude" }).click();
  await page.getByRole("heading", { name: "claude", level: 1 }).waitFor();
  const requests = page.getByRole("table", { name: "Requests, newest first" });
  await requests.getByRole("row").filter({ hasText: gatewayModel }).getByText("done").waitFor();
  expect(await page.getByRole("button", { name: "Fork" }).count()).toBe(0);
  await page.getByRole("link", { name: "1 question" }).click();
  await page.getByRole("button", { name: "Top up" }).first().click();
  expect(await held).toBe(200);
  await page.goto(`${server.url}/runs/${run.runId}`);
  await requests.getByRole("row").filter({ hasText: "done" }).nth(1).waitFor();
  await run.cancel("the test ends");
});

test("the page shows what a gateway run refused and why, what it reserved and sent, and which cap resets when", async () => {
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
  await row("402, above the cap, not sent").getByText(gatewayModel).waitFor();
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

test("the page shows a gateway refusal for lack of budget with the model, and says if another server executes the run", async () => {
  const { run, ask, runs } = await program("elsewhere", { onBudget: "end" });
  expect(await ask()).toBe(200);
  const page = await open("/gateway");
  const listed = page.getByRole("row").filter({ hasText: "elsewhere" });
  await listed.getByRole("cell", { name: "0", exact: true }).waitFor();
  await page.getByText("Added delay").waitFor();
  // Another server executes the run: this one knows nothing of it.
  server.gateway = undefined;
  await listed.getByText("not here").waitFor();
  await page.goto(`${server.url}/runs/${run.runId}`);
  await page.getByText(/This server does not execute the run, and answers its requests with 503/).waitFor();
  server.gateway = { runs };
  expect(await ask()).toBe(402);
  const refused = page.getByRole("row").filter({ hasText: "402, above the budget, not sent" });
  await refused.getByText(gatewayModel).waitFor();
  await run.cancel("the test ends");
});

test.each(isFull ? [1440, 1024, 390] : [390])(
  "the page's views of a gateway run fit %i px, cut no status and no amount, and have no serious issue in axe",
  async (width) => {
    const ended = await program(`stopped-${width}`, { onBudget: "end" });
    for (const status of [200, 402]) expect(await ended.ask()).toBe(status);
    await ended.run.result();
    const { run, ask } = await program(`narrow-${width}`);
    expect(await ask()).toBe(200);
    const view = { viewport: { width, height: 900 }, colorScheme: "light", reducedMotion: "reduce" } as const;
    for (const path of ["/gateway", `/runs/${run.runId}`]) {
      const page = await open(path, view);
      await page.getByRole("table").first().waitFor();
      expect(width < 720 ? await narrowIssues(page) : []).toEqual([]);
      const overflow = "document.documentElement.scrollWidth - innerWidth";
      expect(await page.evaluate(overflow)).toBeLessThanOrEqual(0);
      const cut =
        "[...document.querySelectorAll('.gateway td:not(.cut)')].filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)";
      expect(await page.evaluate(cut)).toEqual([]);
      expect(await axeIssues(page, [path])).toEqual([]);
    }
    await run.cancel("the test ends");
  },
);
