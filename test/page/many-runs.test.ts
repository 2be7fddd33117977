import { expect, test } from "vitest";
import { releaseRun, storeEndedRun, submitRun, waitsForPerson } from "./page-runs.ts";
import { axeIssues } from "./axe-issues.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { pageTests } from "./page-tests.ts";

const { server, open } = pageTests();

const dayMs = 86_400_000;
/** Noon of yesterday in the time zone of the browser, which is that of this process. */
const yesterday = new Date(new Date().setHours(12, 0, 0, 0) - dayMs).getTime();

test("yesterday's failed runs of one user take three clicks on the page, and the address keeps the filter", async () => {
  const failed = { userId: "mara", createdAt: yesterday, status: "failed" } as const;
  await storeEndedRun(server, { ...failed, name: "y1", title: "Import invoices", error: "no such table" });
  await storeEndedRun(server, {
    ...failed,
    name: "y2",
    title: "Send reminders",
    createdAt: yesterday - 3 * dayMs,
  });
  await storeEndedRun(server, { ...failed, name: "y3", title: "Close the books", userId: "jon" });
  await storeEndedRun(server, { ...failed, name: "y4", title: "Print labels", status: "completed" });
  const page = await open("/runs");
  await page.getByRole("link", { name: "Print labels" }).waitFor();
  await page.getByRole("button", { name: /^Failed/u }).click();
  await page.getByRole("button", { name: "Yesterday", exact: true }).click();
  await page.getByRole("button", { name: "mara", exact: true }).first().click();
  await page.getByText("1 run", { exact: true }).waitFor();
  const titles = page.locator(".table.runs .title");
  expect(await titles.allTextContents()).toEqual(["Import invoices"]);
  await page.getByText("no such table").waitFor();
  await page.reload();
  await page.getByRole("link", { name: "Import invoices" }).waitFor();
  expect(await titles.count()).toBe(1);
  await page.getByRole("button", { name: "Remove the filter User mara" }).click();
  await page.getByRole("link", { name: "Close the books" }).waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole("button", { name: "jon", exact: true }).click();
  await page.getByText("1 run", { exact: true }).waitFor();
  expect(await narrowIssues(page)).toEqual([]);
});

test("a saved view of the page is a named address with a count from the server", async () => {
  for (const [at, costUsd] of [1, 12, 7].entries())
    await storeEndedRun(server, {
      name: `c${at}`,
      title: `Order ${costUsd}`,
      createdAt: yesterday,
      costUsd,
      metadata: { order: "8841" },
    });
  const page = await open("/runs");
  const field = page.getByLabel("Filter runs");
  await field.fill("order=8841 cost>5");
  await field.press("Enter");
  await page.getByText("2 runs", { exact: true }).waitFor();
  await page.getByRole("button", { name: /^Sort: time/u }).click();
  await page.getByText("Sorted by what each run had spent when it last waited or ended.").waitFor();
  expect(await page.locator(".table.runs .title").allTextContents()).toEqual(["Order 12", "Order 7"]);
  await page.getByRole("button", { name: "+ Save view" }).click();
  await page.getByLabel("Name of the view").fill("Dear orders");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("button", { name: /^Dear orders\s*2$/u }).waitFor();
  const address = new URL(page.url());
  expect([address.searchParams.get("meta"), address.searchParams.get("above")]).toEqual(["order=8841", "5"]);
  await field.fill("started=someday");
  await field.press("Enter");
  await page.getByText("started=someday").first().waitFor();
  await page.getByText("is no filter").waitFor();
});

test("the page says what an order for many runs does to each of them before it is sent, and leaves out runs that came later", async () => {
  const metadata = { batch: "orders" };
  const ended = (name: string, status: "failed" | "completed" | "budget_exhausted") =>
    storeEndedRun(server, { name, title: `Batch ${name}`, createdAt: yesterday, status, metadata });
  await ended("b1", "completed");
  await ended("b2", "failed");
  const waiting = await submitRun(server, "publisher", "Publish later");
  await waitsForPerson(server, waiting);
  const page = await open("/runs?meta=batch%3Dorders");
  await page.getByText("2 runs", { exact: true }).waitFor();
  await page.getByLabel("Select Batch b1").check();
  expect(await page.getByRole("button", { name: "Cancel", exact: true }).isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Select all 2" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("are deleted with their events and contents").waitFor();
  expect(await axeIssues(page, ["/runs?meta=batch%3Dorders"])).toEqual([]);
  await ended("b3", "failed");
  await page.getByRole("button", { name: "Delete 2 runs" }).click();
  await page.getByText("were deleted.").waitFor();
  expect(await server.runtime.find("run_b1")).toBeUndefined();
  expect(await server.runtime.find("run_b3")).toBeDefined();
  await page.getByRole("button", { name: "Close", exact: true }).click();
  await page.getByRole("link", { name: "Batch b3" }).waitFor();
  await (await server.runtime.find(waiting))?.cancel();
});

test("one click on the head of a column of the page sorts the most expensive agent of a run first", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/money`);
  await page.locator(".by-agent .total").waitFor();
  await page.getByRole("button", { name: "Own" }).click();
  const cells = page.locator('.by-agent tbody tr:not(.total) td[data-head="Own"]');
  await page.locator('th[aria-sort="descending"]').waitFor();
  const amounts = (await cells.allTextContents()).map((text) => Number(text.replaceAll(/[$,]/gu, "")));
  expect(amounts.length).toBeGreaterThan(3);
  expect(amounts).toEqual(amounts.toSorted((one, other) => other - one));
  expect(new URL(page.url()).searchParams.get("by")).toBe("own");
});

test("the page shows names with markup, reordering and control characters as one line of plain text", async () => {
  await storeEndedRun(server, {
    name: "hostile",
    title: `<img src=x onerror="document.title='hacked'">\u202Etxt.exe\u001b[31m${"long ".repeat(200_000)}`,
    userId: "\u202Enimda<b>",
    createdAt: Date.now(),
    error: "<script>document.title='hacked'</script>",
    metadata: { hostile: "yes" },
  });
  const page = await open("/runs?meta=hostile%3Dyes");
  const title = page.locator(".table.runs .title");
  await title.waitFor();
  expect(await title.textContent()).toContain("\\u202etxt.exe\\u001b[31m");
  expect((await title.boundingBox())?.height).toBeLessThan(30);
  await page.getByRole("button", { name: String.raw`\u202enimda<b>`, exact: true }).click();
  await page.getByRole("button", { name: String.raw`Remove the filter User \u202enimda<b>` }).waitFor();
  await title.waitFor();
  expect(await page.locator("img, script:not([src])").count()).toBe(0);
  expect(await page.title()).not.toBe("hacked");
});
