import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { isFull } from "../effort.ts";
import { isWithin } from "./box.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { goWithin } from "./page-server.ts";
import { decisions, releaseRun, submitRun, waitsForPerson } from "./page-runs.ts";
import { pageTests, shown } from "./page-tests.ts";

const { server, open } = pageTests();
const viewport = { width: 390, height: 844 };
const screen = { x: 0, y: 0, ...viewport };
/** Views of a run, with what is visible when they are read. */
const views = {
  chart: ".card",
  "chart?zoom=rows": ".org-rows button",
  "chart?zoom=seats": ".team-box",
  timeline: ".agent-lane",
  conversation: ".message",
  saw: ".context-parts",
  money: ".by-agent .total",
  events: ".event-row",
  "events?event=3": ".raw-event pre",
  messages: ".message-list li",
} as const;
const sections = {
  runs: ".table.runs .title",
  inbox: ".inbox-item",
  sessions: ".session-line",
  "sessions?new=1": ".composer",
  agents: ".agent-card",
  schedules: "h1",
  usage: ".segments",
  "find?text=publish": ".found-line",
} as const;

test.each([
  ["the sections", sections],
  ["a run", views],
] as const)("the page's views of %s fit 390 px and their targets have 40 px", async (what, paths) => {
  const runId = await releaseRun(server);
  const page = await open("/runs", { viewport });
  const issues: string[] = [];
  for (const [path, ready] of Object.entries(paths)) {
    await goWithin(page, `${what === "a run" ? `/runs/${runId}` : ""}/${path}`);
    await page.locator(ready).first().waitFor();
    issues.push(...(await narrowIssues(page)).map((issue) => `${path}: ${issue}`));
  }
  expect(issues).toEqual([]);
});

test("a comparison on the page fits 390 px with 40 px targets, and cuts no name", async () => {
  const runId = await submitRun(server, "writer", "Summarise the incident of 14 March for the customer");
  const run = await server.runtime.find(runId);
  await run?.result();
  let at = 0;
  for await (const event of run?.events({ follow: false, types: ["run_end"] }) ?? [])
    if ("seq" in event) at = event.seq;
  const fork = await run?.fork({ at, input: "Shorter, please." });
  await fork?.result();
  const page = await open(`/compare?a=${runId}&b=${fork?.runId}`, { viewport });
  await page.locator(".compare .cell").first().waitFor();
  expect(await narrowIssues(page)).toEqual([]);
  const cut =
    "[...document.querySelectorAll('.compare .cut, .facts .cut')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)";
  expect(await page.evaluate(cut)).toEqual([]);
});

test("the dialogs of the page fit 390 px, their targets have 40 px, and each has a button that closes it", async () => {
  const runId = await releaseRun(server);
  const page = await open("/runs", { viewport });
  const issues: string[] = [];
  const look = async (opener: Locator): Promise<void> => {
    await opener.click();
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    const name = await dialog.getAttribute("aria-label");
    issues.push(...(await narrowIssues(page)).map((issue) => `${name}: ${issue}`));
    await dialog.getByRole("button", { name: "Close" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  const button = (name: string): Locator => page.getByRole("button", { name, exact: true });
  await page.locator(".table.runs .title").first().waitFor();
  for (const name of ["New run", "Keys and help", "More"]) await look(button(name));
  await page.goto(`${server.url}/schedules`);
  await look(button("New schedule"));
  await page.goto(`${server.url}/runs/${runId}/chart?task=t0`);
  await page.getByRole("complementary", { name: "About lead" }).waitFor();
  await look(button("Priority: NORMAL"));
  await page.keyboard.press("Escape");
  for (const name of ["Top up", "Fork", "Cancel run"]) await look(button(name));
  expect(issues).toEqual([]);
});

test.each(isFull ? [390, 1_000] : [390])(
  "the inspector of a conversation on the page is a sheet on %i px",
  async (width) => {
    const runId = await releaseRun(server);
    const page = await open(`/runs/${runId}/conversation`, { viewport: { width, height: 844 } });
    const sheet = page.getByRole("complementary", { name: "About lead" });
    await page.getByRole("button", { name: "About lead" }).click();
    await sheet.getByText("What the model saw last").waitFor();
    expect(await page.evaluate("getComputedStyle(document.querySelector('aside.inspector')).position")).toBe(
      "fixed",
    );
    expect(isWithin(await sheet.boundingBox(), { x: 0, y: 0, width, height: 844 })).toBe(true);
    // Only on a phone are all targets for fingers.
    expect(width === viewport.width ? await narrowIssues(page) : []).toEqual([]);
    await page.reload();
    await sheet.waitFor();
    await sheet.getByRole("button", { name: "Close" }).click();
    await sheet.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "About lead" }).click();
    await sheet.waitFor();
    await page.keyboard.press("Escape");
    expect(await sheet.isVisible()).toBe(false);
  },
);

test("scroll and focus survive a reload of the page on 390 px, where the whole page scrolls", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart?zoom=rows`, { viewport: { width: 390, height: 500 } });
  const line = page.locator("tr[data-task]").filter({ hasText: /^fix-flaky-tests/u });
  await line.getByRole("button").focus();
  await page.evaluate("scrollTo(0, 230)");
  await page.reload();
  const top = (): Promise<unknown> => page.evaluate("scrollY");
  await expect.poll(top).toBe(230);
  await line.and(page.locator(":has(button:focus)")).waitFor();
});

test("a conversation on a 390 px page opens at its newest entry, unless the person read something above before a reload", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/conversation`, { viewport: { width: 390, height: 500 } });
  const top = (): Promise<number> => page.evaluate("scrollY");
  const entries = page.locator(".thread .message");
  // The newest entry, after which lead waits for its reports.
  await entries.filter({ hasText: "hired release" }).waitFor();
  const count = await entries.count();
  await expect.poll(top).toBeGreaterThan(120);
  const end = await top();
  const reload = async (): Promise<void> => {
    await page.reload();
    await entries.nth(count - 1).waitFor();
  };
  // The thread grows entry by entry.
  const network = await page.context().newCDPSession(page);
  await network.send("Network.enable");
  const receive = (bytesPerSecond: number): Promise<unknown> =>
    network.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 0,
      downloadThroughput: bytesPerSecond,
      uploadThroughput: -1,
    });
  await receive(20_000);
  await reload();
  await expect.poll(top).toBe(end);
  await page.evaluate("scrollTo(0, 60)");
  await reload();
  await expect.poll(top).toBe(60);
  // The place is kept until the person acts.
  await page.mouse.wheel(0, 1_000);
  await expect.poll(top).toBe(end);
  await reload();
  await expect.poll(top).toBe(end);
  // The page is used by the tests that follow.
  await receive(-1);
  await network.detach();
});

test("a conversation on a 390 px page opens at the question that waits, with its agent in view", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/conversation`, { viewport });
  const agents = page.getByRole("navigation", { name: "Agents of the run" });
  await agents.getByRole("link", { name: "release" }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.evaluate("scrollTo(0, 0); sessionStorage.clear()");
  await page.goto(page.url());
  const skip = page.getByRole("button", { name: "Skip", exact: true });
  await expect.poll(async () => isWithin(await skip.boundingBox(), screen)).toBe(true);
  expect(isWithin(await agents.locator("[aria-current=page]").boundingBox(), screen)).toBe(true);
});

test("a long call on a 390 px page shows all its buttons, and is approved only after its last line was in view", async () => {
  const runId = await submitRun(server, "longhand", "Publish at length");
  await waitsForPerson(server, runId);
  const page = await open(`/inbox?run=${runId}`, { viewport });
  const item = page.locator(".inbox-item");
  await item.waitFor();
  // The list hides the question: no key answers it.
  for (const key of ["a", "s"]) await page.keyboard.press(key);
  await item.click();
  const card = page.getByRole("region", { name: "longhand waits for you" });
  await card.getByText(/\d+ lines not read yet/u).waitFor();
  const button = (name: string): Locator => card.getByRole("button", { name });
  expect(await button("Approve").isDisabled()).toBe(true);
  const tabs = await page.locator(".bottom-tabs").boundingBox();
  const view = { ...screen, height: tabs?.y ?? 0 };
  for (const name of ["Approve", "Edit", "Deny", "Skip"])
    expect(isWithin(await button(name).boundingBox(), view)).toBe(true);
  expect(await decisions(server, runId)).toEqual([]);
  // What was unread before an edit is unread after it.
  await button("Edit").click();
  expect(await narrowIssues(page)).toEqual([]);
  await button("Back").click();
  await page.evaluate("document.querySelector('.asked').scrollTo(0, 1e6)");
  await button("Approve").click();
  await page.getByText("Approved by you").waitFor();
  expect(await decisions(server, runId)).toHaveLength(1);
});

test("on a 390 px page each row of events contains its words, and the tab Events is in view", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/events`, { viewport });
  const row = page.locator(".event-row").first();
  await row.waitFor();
  const tab = page.getByRole("link", { name: /^Events/u });
  await expect.poll(async () => isWithin(await tab.boundingBox(), screen)).toBe(true);
  expect(await shown(row.locator(".number"))).toBe(true);
  // Rows move while events arrive.
  const words = row.locator("> :last-child");
  const isInside = async (): Promise<boolean> => isWithin(await words.boundingBox(), await row.boundingBox());
  await expect.poll(isInside).toBe(true);
});

test("a session on a 390 px page opens at its newest entry above the composer, and its entries are one tap away", async () => {
  const runId = await releaseRun(server);
  const sessionId = (await server.runtime.find(runId))?.sessionId ?? "";
  const page = await open(`/sessions?id=${encodeURIComponent(sessionId)}`, { viewport });
  const [newest, composer] = [page.locator(".thread > :last-child"), page.locator(".composer")];
  await newest.waitFor();
  await expect.poll(async () => isWithin(await newest.boundingBox(), screen)).toBe(true);
  const [write, tabs] = [await composer.boundingBox(), await page.locator(".bottom-tabs").boundingBox()];
  expect((write?.y ?? 0) + (write?.height ?? 0)).toBe(tabs?.y);
  expect(await narrowIssues(page)).toEqual([]);
  await page.getByRole("button", { name: "Entries" }).click();
  await page.locator(".session-tree").waitFor();
  expect(await composer.isVisible()).toBe(false);
  await page.getByRole("button", { name: "Chat" }).click();
  expect(await shown(composer)).toBe(true);
});

test("a schedule on a 390 px page shows its name, its status and its next time in full", async () => {
  const times = { cron: "0 9 * * 1", timeZone: "UTC" };
  await fetch(`${server.url}/api/schedules`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      name: "weekly-report",
      agent: "writer",
      input: "Report on the orders of the whole week",
      ...times,
    }),
  });
  const page = await open("/schedules", { viewport });
  const row = page.getByRole("row").filter({ hasText: "weekly-report" });
  await row.getByText("Active", { exact: true }).waitFor();
  const cut =
    "[...document.querySelectorAll('.schedules tbody td')].filter((cell) => cell.scrollWidth > cell.clientWidth || [...cell.children].some((part) => part.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1)).map((cell) => cell.textContent)";
  expect(await page.evaluate(cut)).toEqual([]);
  expect(await narrowIssues(page)).toEqual([]);
});
