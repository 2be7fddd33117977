import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { expect, test } from "vitest";
import { addDays, utcDay, visibleLine } from "../../src/kernel/index.ts";
import { delta, spend } from "../../src/testing/contracts/usage-fixtures.ts";
import { isFull } from "../effort.ts";
import { axeIssues } from "./axe-issues.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { pageTests, shown } from "./page-tests.ts";
import { hostile, models, seedUsage } from "./usage-days.ts";

const { server, open } = pageTests();
const seeded = new Set<string>();

/** Stores usage in the first test that needs it. */
async function seed(): Promise<void> {
  if (seeded.has(server.folder)) return;
  seeded.add(server.folder);
  await seedUsage(server.store);
}

test("the page's usage shows six measures over 14 days with the days before, and a bar opens the runs of its day", async () => {
  await seed();
  const page = await open("/usage");
  const panels = page.locator(".usage-panel");
  await panels.getByRole("img").first().waitFor();
  const titles = ["Cost", "Tokens", "Runs", "Failures", "Latency of a model call", "Cache share of input"];
  expect(await panels.locator("h2").allTextContents()).toEqual(titles);
  const cost = page.getByRole("img", { name: /^Cost from .* more, \$/u });
  const failures = page.getByRole("region", { name: "Failures" });
  await failures.getByText("4 more than before").waitFor();
  await failures
    .getByRole("img", { name: /^Failures .*: 4 .* of runs\. 4 more than before, without today\./u })
    .waitFor();
  // Bars stand on zero: the highest has the height of the scale, and the days before are a dashed line.
  expect(await cost.locator(".bar").count()).toBe(14);
  expect(await page.locator(".usage-chart .prev").count()).toBe(6);
  // The keys mark one day in all panels.
  await failures.focus();
  for (let press = 0; press < 4; press++) await page.keyboard.press("ArrowLeft");
  await failures.locator(".marked", { hasText: ", 4" }).waitFor();
  expect(await page.locator(".marked").count()).toBe(6);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/runs\?/u);
  const day = addDays(utcDay(Date.now()), -3);
  expect(new URL(page.url()).search).toBe(`?ended=${day}Z&status=failed`);
  await page.getByText(`Ended ${day} UTC`).first().waitFor();
  await page.goBack();
  await cost.click({ position: { x: 2, y: 60 } });
  await page.waitForURL(/\/runs\?/u);
  expect(new URL(page.url()).search).toBe(`?started=${addDays(utcDay(Date.now()), -13)}Z`);
});

test("a chosen row of the page's usage shows only itself in the panels, and users of two tenants are two rows", async () => {
  await seed();
  const page = await open("/usage");
  const row = page.getByRole("row").filter({ hasText: models[1] });
  await row.getByRole("button").click();
  await page.getByText(`Only ${models[1]}`).waitFor();
  await page.reload();
  await page.getByText(`Only ${models[1]}`).waitFor();
  // A run has several models, so the failures of a model are those of its calls.
  await page.getByRole("region", { name: "Failed calls" }).getByText("14", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("region", { name: "Failures" }).waitFor();
  expect(await shown(page.getByRole("button", { name: `acme/${visibleLine(hostile)}` }))).toBe(true);
  await page.getByRole("button", { name: "By user" }).click();
  await page.getByRole("button", { name: "ann of acme" }).waitFor();
  await page.getByRole("button", { name: "ann of beta" }).click();
  await page.getByRole("img", { name: /^Runs / }).click({ position: { x: 2, y: 60 } });
  await page.waitForURL(/user=ann&tenant=beta/u);
  await page.goto(`${server.url}/usage?by=tenant`);
  await page.getByRole("button", { name: "No tenant" }).waitFor();
  await page.getByRole("combobox", { name: "Tenant" }).selectOption("beta");
  await page.getByRole("button", { name: "acme", exact: true }).waitFor({ state: "detached" });
  expect(await page.getByRole("row").filter({ hasText: "beta" }).count()).toBe(1);
});

test("the page's usage has hours for a day and its numbers as tables, and says what an earlier version did not record", async () => {
  await seed();
  const page = await open("/usage?period=24h");
  await page.getByText("this hour so far").first().waitFor();
  expect(
    await page
      .getByRole("img", { name: /^Cost / })
      .locator(".bar")
      .count(),
  ).toBeGreaterThan(0);
  const database = new DatabaseSync(join(server.folder, "reeve.db"));
  const day = addDays(utcDay(Date.now()), -5);
  database.prepare("UPDATE usage_totals SET detailed = 0 WHERE period = ?").run(day);
  database.close();
  await page.getByRole("button", { name: "14 days" }).click();
  await page.getByText(/An earlier version kept usage by day/u).waitFor();
  const failures = page.getByRole("region", { name: "Failures" });
  expect(await failures.locator(".gap").count()).toBe(1);
  expect(await page.getByRole("region", { name: "Cost" }).locator(".gap").count()).toBe(0);
  await page.getByRole("button", { name: "Show as table" }).click();
  const cells = failures.getByRole("row").nth(9).getByRole("cell");
  expect(await cells.nth(1).textContent()).toBe("not recorded");
  expect(await failures.getByRole("row").nth(8).getByRole("cell").nth(1).textContent()).toBe("0");
});

test("the page's usage says what was charged without reported usage and what it likely cost, or that this is not known", async () => {
  const usd = 1e9;
  const day = utcDay(Date.now());
  const lost = { lostCalls: 2, lostTokens: 900, lostNanoUsd: 5 * usd };
  const known = delta({ day, agent: "flaky", turns: 3, runs: 1, nanoUsd: 5.9 * usd, ...lost });
  await spend(server.store, "flaky", [known], { tenantId: "flaky", userId: null });
  const alone = delta({ day, agent: "alone", runs: 1, nanoUsd: 5 * usd, ...lost });
  await spend(server.store, "alone", [alone], { tenantId: "alone", userId: null });
  const page = await open("/usage");
  const charged = "$5.00 was charged for calls without reported usage.";
  await page.getByRole("combobox", { name: "Tenant" }).selectOption("flaky");
  expect(await shown(page.getByText(`${charged} They likely cost $0.60.`))).toBe(true);
  await page.getByRole("combobox", { name: "Tenant" }).selectOption("alone");
  const unknown = "What they cost is not known, because no other call was made.";
  expect(await shown(page.getByText(`${charged} ${unknown}`))).toBe(true);
});

test.each(isFull ? [1440, 1024, 390] : [390])(
  "the page's usage with hostile names fits %i px and has no serious issue in axe",
  async (width) => {
    await seed();
    const page = await open("/usage?by=agent", {
      viewport: { width, height: 900 },
      colorScheme: "light",
      reducedMotion: "reduce",
    });
    await page.getByRole("img", { name: /^Cost / }).waitFor();
    expect(width < 720 ? await narrowIssues(page) : []).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - innerWidth";
    expect(await page.evaluate(overflow)).toBeLessThanOrEqual(0);
    expect(await axeIssues(page, ["/usage?by=agent"])).toEqual([]);
  },
);
