import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPage } from "../../build/page.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { releaseTask } from "./company.ts";
import { openPage } from "./page-server.ts";
import { ServedPage } from "./served.ts";

const served = new ServedPage();
let browser: Browser;

beforeAll(async () => {
  await buildPage();
  await served.start();
  browser = await startBrowser();
}, 240_000);

afterAll(async () => {
  await served.remove();
  await browser.close();
  removeBrowser();
}, 60_000);

test("a page whose server is killed keeps what it shows, continues live, and draws the crash with its free steps", async () => {
  const runId = await served.submit("lead", releaseTask);
  const { page, problems } = await openPage(browser, `${served.url}/runs/${runId}/chart`);
  await page.getByRole("treeitem", { name: /^release.*waits for you: publish/u }).waitFor();
  await page.getByRole("treeitem", { name: /^build/u }).click();
  await served.kill();
  await page.getByText(/The server stopped answering/u).waitFor();
  await page.getByText(/You see the state of event \d+/u).waitFor();
  expect(await page.locator("[role=treeitem]:focus").textContent()).toMatch(/^build/u);
  await served.start();
  await page.getByText(/The server stopped answering/u).waitFor({ state: "hidden" });
  await page.getByText("1 crash survived").waitFor();
  await page.getByText(/steps? replayed free, \$[\d.]+ not paid again/u).waitFor();
  // Neither focus nor selection moved.
  expect(await page.locator("[role=treeitem]:focus").textContent()).toMatch(/^build/u);
  await page.getByRole("complementary", { name: "About build" }).waitFor();

  await page.keyboard.press("2");
  await page
    .getByText(/^\d+ free$/u)
    .first()
    .waitFor();
  await page.getByText(/another one continued after/u).waitFor({ state: "attached" });
  await page.keyboard.press("5");
  await page.locator(".event-row").first().waitFor();
  const numbers = await page.locator(".event-row .number").allTextContents();
  expect(new Set(numbers).size).toBe(numbers.length);
  await page.keyboard.press("3");
  await page
    .getByRole("navigation", { name: "Agents of the run" })
    .getByRole("link", { name: "release" })
    .click();
  await page.getByRole("button", { name: /^Approve/u }).click();
  await page.getByText(/approved publish/u).waitFor();
  const others = problems.filter((problem) => !problem.includes("ERR_"));
  expect(others).toEqual([]);
  await page.context().close();
}, 240_000);
