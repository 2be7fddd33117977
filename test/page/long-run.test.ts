import { expect, test, beforeAll, afterAll } from "vitest";
import type { Browser } from "playwright-core";
import { buildPage } from "../../build/page.ts";
import { Agent } from "../../src/entries/index.ts";
import { eventDraft, formatAgentId, type HostedAgent } from "../../src/kernel/index.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { openPage, PageServer } from "./page-server.ts";
import { Stage } from "./stage.ts";

/** Number of steps and events after the first ones. It exceeds what the page keeps. */
const laterSteps = 2_100;
const laterEvents = 5_000;

const scout = new Agent({
  name: "scout",
  model: new Stage().actor([{ text: "Two packages need work." }]),
});

/** An agent that hires another one first, and then takes more steps than the page keeps. */
const historian: HostedAgent = {
  id: formatAgentId({ name: "historian" }),
  subAgents: [scout],
  budget: { maxCostUsd: 5 },
  run: async (ctx) => {
    await ctx.step("plan", async () => null);
    const outcome = await ctx.spawn(scout.id, "Look for packages.", { budget: { maxCostUsd: 1 } });
    if (outcome.kind === "refused") throw new Error(outcome.reason);
    await ctx.joinAll([outcome.handle]);
    for (let step = 1; step <= laterSteps; step++) await ctx.step(`page ${step}`, async () => null);
    for (let turn = 1; turn <= laterEvents; turn++) ctx.emitEvent(eventDraft("turn_start", { turn }));
    return null;
  },
};

const server = new PageServer(() => [historian]);
let browser: Browser;
let runId = "";
/** The event with which the model call of the scout started. */
let calledAt = 0;

beforeAll(async () => {
  await buildPage();
  await server.start();
  browser = await startBrowser();
  const run = await server.runtime.submit(historian, "Write the history");
  ({ runId } = run);
  await run.result();
  for await (const event of run.events({ types: ["message_start"], follow: false }))
    if (event.type === "message_start") calledAt = event.seq;
}, 180_000);

afterAll(async () => {
  await browser.close();
  removeBrowser();
  await server.remove();
});

test("every view of the page shows the run at an event that is older than all that the page keeps of the run", async () => {
  const { page, problems } = await openPage(browser, `${server.url}/runs/${runId}/events`);
  const tabs = page.getByRole("navigation", { name: "Views of the run" });
  await tabs.getByRole("link", { name: "Timeline 2,102" }).waitFor();
  await page.getByRole("button", { name: /^Read the \d,\d{3} older events$/u }).click();
  await page.getByRole("searchbox", { name: "Filter events" }).fill("message_start");
  await page.getByRole("button", { name: `Show the run at event ${calledAt}`, exact: true }).click();
  await page.getByText(/^Replay, as of/u).waitFor();
  await page.locator(".dock .position b").getByText(String(calledAt), { exact: true }).waitFor();
  await tabs.getByRole("link", { name: "Org chart 2" }).waitFor();
  await tabs.getByRole("link", { name: "Timeline 1", exact: true }).waitFor();
  // What the call will cost is held, although its end is thousands of events away.
  await page
    .getByRole("img", { name: /\$[\d.]+ held/u })
    .first()
    .waitFor();

  await tabs.getByRole("link", { name: "Org chart 2" }).click();
  await page.getByRole("treeitem", { name: /^scout/u }).click();
  const about = page.getByRole("complementary", { name: "About scout" });
  await about.getByText("in flight", { exact: true }).waitFor();

  await page.keyboard.press("2");
  await page.getByText("2 agents, 1 step", { exact: true }).waitFor();
  await page.getByRole("button", { name: /^historian/u, expanded: true }).waitFor();
  await page.getByRole("button", { name: /^plan/u }).waitFor();
  expect(await page.getByRole("button", { name: /^page \d/u }).count()).toBe(0);
  await page.getByRole("button", { name: /^scout/u }).click();
  await page.getByRole("button", { name: /^sonnet-5.*in flight$/u }).click();
  await page.getByRole("complementary", { name: "About the step" }).getByText("in flight").waitFor();

  await page.keyboard.press("3");
  await page.getByRole("link", { name: "scout", exact: true }).click();
  await page.getByText("Look for packages.").first().waitFor();
  expect(await page.getByText("Two packages need work.").count()).toBe(0);

  await page.keyboard.press("5");
  await page.getByRole("row").filter({ hasText: "scout" }).getByText("sonnet-5").waitFor();

  // Without the list that was read above: the page reads what is before the playhead by itself.
  await page.keyboard.press("6");
  await page.getByRole("searchbox", { name: "Filter events" }).fill("");
  await page.getByText(`${calledAt + 1} events, 0 to ${calledAt}`, { exact: true }).waitFor();
  await page.getByRole("button", { name: `Show the run at event ${calledAt}`, exact: true }).waitFor();

  await tabs.getByRole("link", { name: /^Messages/u }).click();
  await page.getByText("No agent and no person has sent a message yet.").waitFor();
  await page.keyboard.press("l");
  await page.getByText("1 message", { exact: true }).waitFor();
  expect(problems).toEqual([]);
});
