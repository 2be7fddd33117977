import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPage } from "../../build/page.ts";
import { isWithin } from "./box.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { releaseTask } from "./company.ts";
import { openPage, serverIsDown } from "./page-server.ts";
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

test("a page whose server is killed keeps what it shows, continues live, and shows the crash with its unpaid steps", async () => {
  const runId = await served.submit("lead", releaseTask);
  const one = await openPage(browser, `${served.url}/runs/${runId}/chart`);
  const { page, problems } = one;
  await page.getByRole("treeitem", { name: /^lead/u }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("link", { name: releaseTask }).click();
  await page.getByRole("treeitem", { name: /^release.*waits for you: publish/u }).waitFor();
  await page.getByRole("treeitem", { name: /^build/u }).click();
  const answers = one.expect(serverIsDown);
  await served.kill();
  await page.getByText(/The server stopped answering (?:just now|\d+ s ago)\./u).waitFor();
  // It opens a form that the server fills, so that it is off as the orders are.
  await page.getByRole("button", { name: "Run again", disabled: true }).waitFor();
  await page.getByText(/You see the state of event \d+/u).waitFor();
  expect(await page.locator("[role=treeitem]:focus").textContent()).toMatch(/^build/u);
  // Nothing is blanked, also after a visit of another view.
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("link", { name: releaseTask }).click();
  await page.getByRole("treeitem", { name: /^build/u }).click();
  await served.start();
  await page.getByText(/The server stopped answering/u).waitFor({ state: "hidden" });
  await page.getByText("1 crash survived").waitFor();
  answers();
  await page.getByText(/steps? replayed free, \$[\d.]+ not paid again/u).waitFor();
  // Neither focus nor selection moved.
  expect(await page.locator("[role=treeitem]:focus").textContent()).toMatch(/^build/u);
  await page.getByRole("complementary", { name: "About build" }).waitFor();

  // At the event before the recovery, no worker owns the run. The dock and the log number events alike.
  await page.goto(`${served.url}/runs/${runId}/events?find=run_recover`);
  const recovered = Number(await page.locator(".event-row .number").first().textContent());
  await page.locator(".event-row .number").first().click();
  await page.keyboard.press("ArrowLeft");
  await page
    .locator(".dock .position b")
    .getByText(String(recovered - 1), { exact: true })
    .waitFor();
  await page.getByText("No worker owns it").waitFor();
  await page.keyboard.press("1");
  await page
    .getByRole("complementary", { name: /^About/u })
    .getByText("No owner", { exact: true })
    .waitFor();
  await page.keyboard.press("2");
  await page
    .getByText(
      "The worker died. No call starts until a worker takes it over. A call in flight may still be billed.",
    )
    .waitFor();
  await page.locator(".axis").getByText("no owner", { exact: true }).waitFor();
  await page.keyboard.press("l");
  // A crash takes the same room in the dock, however long it lasted.
  expect(await page.locator(".scrubber .crash").getAttribute("width")).toBe("20");
  await page.keyboard.press("2");
  await page
    .getByText(/^\d+ free$/u)
    .first()
    .waitFor();
  await page.getByText(/another one continued after/u).waitFor({ state: "attached" });
  await page.keyboard.press("6");
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
  expect(problems).toEqual([]);
  await page.context().close();
}, 240_000);

test("L7: the inbox of the page shows a run that ends its processes with its call and workers, and a button continues it", async () => {
  // The process may end before it has answered.
  await Promise.allSettled([served.submit("fuse", "Switch the light on"), served.ended()]);
  await served.start();
  await served.ended();
  await served.start();
  const { page, problems } = await openPage(browser, `${served.url}/inbox`);
  await page.locator(".inbox-item", { hasText: "Switch the light on" }).click();
  const card = page.getByRole("region", { name: "Paused as a crash loop" });
  await card.getByText(/^2 processes ended while executing this run/u).waitFor();
  expect(await card.getByText(/^Ended: worker \S+ on \S+, noticed /u).count()).toBe(2);
  await card.getByText(/tool light/u).waitFor();
  await card.getByText("No task has ended.", { exact: false }).waitFor();
  writeFileSync(join(served.folder, "corrected"), "");
  await card.getByRole("button", { name: "Continue where it stood" }).click();
  await page.getByText("Resumed. The run continues where it stood.").waitFor();
  await page.goto(`${served.url}/runs`);
  await page.getByRole("link", { name: "Switch the light on" }).click();
  await page.getByText("The light is on.").first().waitFor();
  await page.getByText("Done", { exact: true }).waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
}, 240_000);

test("a comparison on the page marks shared steps as free in their row, on the side of the fork, also on 390 px", async () => {
  const origin = await served.submit("writer", "Write about the outage");
  const { page, problems } = await openPage(browser, `${served.url}/runs/${origin}/conversation`);
  await page.getByText("Done", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Fork" }).waitFor();
  await page.keyboard.press("f");
  await page.getByLabel(/Message that follows/u).fill("Shorter, please.");
  await page.getByRole("button", { name: "Start the fork" }).click();
  await page.getByRole("link", { name: "Compare" }).click();
  const cell = page.locator(".compare .cell").filter({ has: page.getByText("free", { exact: true }) });
  await cell.waitFor();
  expect(await cell.allTextContents()).toEqual(["writerthe same 1 stepfree"]);
  const chip = await cell.getByText("free", { exact: true }).boundingBox();
  expect(isWithin(chip, await cell.boundingBox())).toBe(true);
  await page.getByRole("button", { name: "Swap" }).click();
  await page.locator(".compare > .cell:nth-child(4)").filter({ hasText: "free" }).waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  const padded = { x: 16, y: 0, width: 390 - 2 * 16, height: Infinity };
  for (const part of [page.getByRole("button", { name: "Swap" }), cell.getByText("writer").first()])
    expect(isWithin(await part.boundingBox(), padded)).toBe(true);
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
  expect(problems).toEqual([]);
  await page.context().close();
});
