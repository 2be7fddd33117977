import { expect, test } from "vitest";
import { isWithin } from "./box.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { releaseRun } from "./page-runs.ts";
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
  money: ".by-agent .total",
  events: ".event-row",
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
] as const)("views of %s fit 390 px and their targets have 40 px", async (what, paths) => {
  const runId = await releaseRun(server);
  const page = await open("/runs", { viewport });
  const issues: string[] = [];
  for (const [path, ready] of Object.entries(paths)) {
    await page.goto(`${server.url}${what === "a run" ? `/runs/${runId}` : ""}/${path}`);
    await page.locator(ready).first().waitFor();
    issues.push(...(await narrowIssues(page)).map((issue) => `${path}: ${issue}`));
  }
  expect(issues).toEqual([]);
});

test("a conversation on 390 px opens at the question that waits, with its agent in view", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/conversation`, { viewport });
  const agents = page.getByRole("navigation", { name: "Agents of the run" });
  await agents.getByRole("link", { name: "release" }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.evaluate("scrollTo(0, 0); sessionStorage.clear()");
  await page.goto(page.url());
  const skip = page.getByRole("button", { name: "Skip", exact: true });
  await expect.poll(async () => isWithin(await skip.boundingBox(), screen), { timeout: 60_000 }).toBe(true);
  expect(isWithin(await agents.locator("[aria-current=page]").boundingBox(), screen)).toBe(true);
});

test("the events of a run on 390 px say what happened, and their tab is in view", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/events`, { viewport });
  const row = page.locator(".event-row").first();
  await row.waitFor();
  const tab = page.getByRole("link", { name: /^Events/u });
  await expect.poll(async () => isWithin(await tab.boundingBox(), screen), { timeout: 60_000 }).toBe(true);
  expect(await shown(row.locator(".number"))).toBe(true);
  expect(isWithin(await row.locator("> :last-child").boundingBox(), await row.boundingBox())).toBe(true);
});

test("a session on 390 px opens at its newest entry above the composer, and its entries are one tap away", async () => {
  const runId = await releaseRun(server);
  const sessionId = (await server.runtime.find(runId))?.sessionId ?? "";
  const page = await open(`/sessions?id=${encodeURIComponent(sessionId)}`, { viewport });
  const [newest, composer] = [page.locator(".thread > :last-child"), page.locator(".composer")];
  await newest.waitFor();
  await expect.poll(async () => isWithin(await newest.boundingBox(), screen), { timeout: 60_000 }).toBe(true);
  const [write, tabs] = [await composer.boundingBox(), await page.locator(".bottom-tabs").boundingBox()];
  expect((write?.y ?? 0) + (write?.height ?? 0)).toBe(tabs?.y);
  expect(await narrowIssues(page)).toEqual([]);
  await page.getByRole("button", { name: "Entries" }).click();
  await page.locator(".session-tree").waitFor();
  expect(await composer.isVisible()).toBe(false);
  await page.getByRole("button", { name: "Chat" }).click();
  expect(await shown(composer)).toBe(true);
});
