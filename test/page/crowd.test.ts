import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPage } from "../../build/page.ts";
import { Agent, tool } from "../../src/entries/index.ts";
import { eventDraft, formatAgentId, formatTaskId, type HostedAgent } from "../../src/kernel/index.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { crowd } from "./crowd.ts";
import { openPage, PageServer } from "./page-server.ts";

const agents = 1_200;
/** A page with 13 agents has about 450 nodes. A page with 1,200 agents must not have a node per agent. */
const mostNodes = 3_000;

const convert = tool({
  name: "convert",
  description: "Converts a module",
  inputSchema: { type: "object", properties: { module: { type: "string" } }, required: ["module"] },
  execute: async ({ module }) => `converted ${module}`,
});

/** 1,200 agents whose model calls are in flight until the server stops. */
const company = crowd({
  agents,
  worker: (name, model) => new Agent({ name, model, tools: [convert] }),
  turn: () => new Promise(() => undefined),
});
/** More messages than one page of the log holds. */
const parcels = 1_500;
/** More events after the last message and the last step than the page reads when it opens. */
const later = 2_500;

/** One agent whose steps and messages are all older than the newest 1,000 events of its run. */
const courier: HostedAgent = {
  id: formatAgentId({ name: "courier" }),
  run: async (ctx) => {
    await ctx.step("load", async () => null);
    for (let at = 1; at <= parcels; at++)
      ctx.emitEvent(
        eventDraft("handoff", {
          target: formatAgentId({ name: "desk" }),
          childTaskId: formatTaskId(1),
          task: `Parcel ${at}.`,
        }),
      );
    await ctx.step("lock", async () => null);
    for (let turn = 1; turn <= later; turn++) ctx.emitEvent(eventDraft("turn_start", { turn }));
    return null;
  },
};
const server = new PageServer(() => [company, courier], { concurrency: 2 * agents });
let browser: Browser;
let page: Page;
let problems: string[] = [];
let runId = "";

beforeAll(async () => {
  await buildPage();
  await server.start();
  browser = await startBrowser();
  const run = await server.runtime.submit(company, "Port 1,200 packages");
  ({ runId } = run);
  let hired = 1;
  for await (const event of run.events({ types: ["spawn_start"] }))
    if (event.type === "spawn_start" && ++hired === agents) break;
  ({ page, problems } = await openPage(browser, `${server.url}/runs/${runId}/chart`));
  page.setDefaultTimeout(60_000);
}, 180_000);

afterAll(async () => {
  await browser.close();
  removeBrowser();
  await server.remove();
});

function nodes(): Promise<number> {
  return page.evaluate("document.querySelectorAll('*').length");
}

test("the page shows a run of 1,200 agents as seats, and every level and view has a bounded number of nodes", async () => {
  await page.getByRole("link", { name: /^testing, \d+ agents/u }).waitFor();
  await page.getByText("1,200").first().waitFor();
  const counts: Record<string, number> = { seats: await nodes() };
  await page.keyboard.press("z");
  await page.getByRole("treeitem", { name: /^lead/u }).waitFor();
  counts["cards"] = await nodes();
  await page.keyboard.press("z");
  await page.getByRole("row", { name: /^lead/u }).waitFor();
  counts["rows"] = await nodes();
  await page.goto(`${server.url}/runs/${runId}/timeline`);
  await page.getByText(/^1,200 agents/u).waitFor();
  counts["timeline"] = await nodes();
  await page.goto(`${server.url}/runs/${runId}/conversation`);
  await page.getByRole("link", { name: "testing", exact: true }).waitFor();
  counts["conversation"] = await nodes();
  await page.goto(`${server.url}/runs/${runId}/events`);
  await page
    .getByRole("region", { name: /^Events/u })
    .getByText("spawn_start")
    .first()
    .waitFor();
  counts["events"] = await nodes();
  for (const [view, count] of Object.entries(counts)) expect([view, count < mostNodes]).toEqual([view, true]);
});

test("the keyboard reaches any of 1,200 agents on the page: a team from its box, and the first, next and last from the rows", async () => {
  await page.goto(`${server.url}/runs/${runId}/chart`);
  const box = page.getByRole("link", { name: /^testing, \d+ agents/u });
  await box.waitFor();
  await box.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Managers" }).getByText("testing").waitFor();
  await page.goto(`${server.url}/runs/${runId}/chart?zoom=rows`);
  await page.getByRole("row", { name: /^lead/u }).getByRole("button").focus();
  await page.keyboard.press("ArrowDown");
  await page.locator("[data-task]:has(button:focus)").filter({ hasText: "testing" }).waitFor();
  await page.keyboard.press("End");
  await page.getByRole("complementary", { name: /^About search-\d+/u }).waitFor();
  await page
    .locator("[data-task]:has(button:focus)")
    .filter({ hasText: /^search-\d+/u })
    .waitFor();
  await page.keyboard.press("ArrowUp");
  await page.locator("[data-task]:has(button:focus)").waitFor();
  expect(await nodes()).toBeLessThan(mostNodes);
  expect(problems).toEqual([]);
});

test("the page loses no key press in rows: in a line that was not chosen, after a scroll, and before the next line is drawn", async () => {
  await page.goto(`${server.url}/runs/${runId}/chart?zoom=rows`);
  const line = (name: string, focus = ""): Locator =>
    page.locator(`tr[data-task]${focus}`).filter({ hasText: new RegExp(`^${name}(?!\\d)`, "u") });
  const focused = (name: string): Promise<void> => line(name, ":has(button:focus)").waitFor();
  await line("testing-1").getByRole("button").focus();
  await page.keyboard.press("ArrowDown");
  await focused("testing-2");
  // The line is no longer drawn, and the next one is not drawn yet.
  await page.evaluate("document.querySelector('.canvas').scrollTo(0, 20_000)");
  await line("testing-2").waitFor({ state: "detached" });
  await page.keyboard.press("ArrowDown");
  await focused("testing-3");
  await page.keyboard.press("End");
  const about = page.getByRole("complementary", { name: /^About search-\d+/u });
  const last = Number((await about.getAttribute("aria-label"))?.split("-").at(-1));
  await focused(`search-${last}`);
  await page.keyboard.press("Home");
  await focused("lead");
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await focused(`search-${last - 2}`);
  expect(problems).toEqual([]);
});

test("the page shows messages of the whole run, also those before the newest 1,000 events", async () => {
  const run = await server.runtime.submit(courier, "Deliver 1,500 parcels");
  await run.result();
  await page.goto(`${server.url}/runs/${run.runId}/messages`);
  await page.getByText("Parcel 1500.", { exact: true }).waitFor();
  await page.getByText("1,500 messages", { exact: true }).waitFor();
  expect(await nodes()).toBeLessThan(mostNodes);
  await page.evaluate("document.querySelector('.canvas.messages').scrollTo(0, 1_000_000)");
  await page.getByText("Parcel 1.", { exact: true }).waitFor();
  expect(problems).toEqual([]);
});

test("Shift and an arrow on the page move the playhead to steps before the newest 1,000 events", async () => {
  const run = await server.runtime.submit(courier, "Deliver 1,500 parcels");
  await run.result();
  const ends: number[] = [];
  for await (const event of run.events({ types: ["step_end"], follow: false }))
    if ("seq" in event) ends.push(event.seq);
  const [load, lock] = ends;
  const at = (seq: number | undefined): Promise<void> =>
    page
      .locator(".dock .position b")
      .getByText((seq ?? Number.NaN).toLocaleString("en-US"), { exact: true })
      .waitFor();
  await page.goto(`${server.url}/runs/${run.runId}/messages`);
  await page.getByRole("button", { name: "End", pressed: true }).waitFor();
  // The second move must start from the result of the first one.
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("Shift+ArrowLeft");
  await at(load);
  await page.getByText("No agent and no person has sent a message yet.").waitFor();
  await page.keyboard.press("Shift+ArrowRight");
  await at(lock);
  await page.getByText("Parcel 1500.", { exact: true }).waitFor();
  await page.keyboard.press("Shift+ArrowRight");
  await page.getByRole("button", { name: "End", pressed: true }).waitFor();
  expect(problems).toEqual([]);
});
