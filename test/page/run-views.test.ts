import { expect, test } from "vitest";
import { Agent } from "../../src/entries/index.ts";
import { workflow } from "../../src/entries/workflow.ts";
import type { RetryChanges } from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../src/testing/index.ts";
import { isFull } from "../effort.ts";
import { readAll } from "../runtime/runtime-setup.ts";
import { axeIssues } from "./axe-issues.ts";
import { releaseTask } from "./company.ts";
import { releaseRun } from "./page-runs.ts";
import { pageTests, shown } from "./page-tests.ts";

const { server, open } = pageTests();

test("the page shows every agent of a company with its edits and its approval card", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/conversation`);
  const agents = page.getByRole("navigation", { name: "Agents of the run" });
  await agents.getByRole("link", { name: "release" }).click();
  await page.getByText('"version": "0.9.0",').waitFor();
  await page.getByText("npm publish --tag latest --access public", { exact: true }).first().waitFor();
  expect(await shown(page.getByRole("link", { name: "1 approval" }))).toBe(true);
});

test("the page's chart shows cards with budget meters, arrows move between agents, and zoom changes the level", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart`);
  const tree = page.getByRole("tree", { name: "Org chart" });
  await tree.getByRole("treeitem", { name: /^release.*waits for you: publish.*of \$0\.40/u }).waitFor();
  await tree.getByRole("treeitem", { name: /^lead/u }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  // At once: no key press may get lost, however slowly the page draws.
  expect(await page.locator("[role=treeitem]:focus").textContent()).toMatch(/^build/u);
  await page.getByRole("complementary", { name: "About build" }).waitFor();
  await page.keyboard.press("z");
  await page.getByRole("columnheader", { name: "Budget", exact: true }).waitFor();
  await page.keyboard.press("z");
  expect(
    await shown(page.getByRole("link", { name: /^(?:research|build|review), \d+ agents/u }).first()),
  ).toBe(true);
});

test("the playhead of the page redraws every view and disables orders, and L returns to the live run", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart`);
  await page.getByRole("treeitem", { name: /^release/u }).waitFor();
  await page.getByRole("slider", { name: "Playhead" }).focus();
  await page.keyboard.press("Home");
  await page.getByText(/^Replay, as of/u).waitFor();
  await page.getByRole("treeitem", { name: /^release/u }).waitFor({ state: "detached" });
  expect(await page.getByRole("treeitem").count()).toBe(1);
  expect(await page.getByRole("button", { name: "Cancel run" }).isDisabled()).toBe(true);
  await page.keyboard.press("6");
  await page.getByText("1 event, number 0", { exact: true }).waitFor();
  await page.keyboard.press("5");
  await page.getByRole("row").filter({ hasText: "lead" }).waitFor();
  await page.keyboard.press("l");
  expect(await shown(page.getByRole("row").filter({ hasText: "fix-flaky-tests" }))).toBe(true);
});

test("the page's timeline opens the line of an agent into its steps, and a step offers a fork", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/timeline`);
  await page.getByRole("button", { name: /^release/u }).click();
  await page.getByRole("button", { name: /^edit/u }).click();
  await page.getByText("replaced 1 occurrence").waitFor();
  await page.getByRole("button", { name: "Fork from here" }).click();
  await page.getByRole("button", { name: "Start the fork" }).click();
  await page.getByRole("link", { name: `Fork of ${runId}` }).waitFor();
  expect(page.url()).not.toContain(runId);
  await page.getByRole("button", { name: "Cancel run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
  await page.getByText("Cancelled", { exact: true }).waitFor();
});

test("each step of a workflow on the page has an address, also a step that is older than the newest lines", async () => {
  const long = workflow("long", async (ctx) => {
    for (let index = 1; index <= 520; index++) await ctx.step(`step ${index}.`, () => index);
  });
  const run = await server.runtime.start(long, null, { runId: "run_long" });
  await run.result();
  const page = await open(`/runs/${run.runId}`);
  await page.getByRole("listitem").filter({ hasText: "step 519." }).getByRole("link").click();
  const chosen = page.getByRole("listitem").filter({ has: page.locator("[aria-current=true]") });
  await chosen.filter({ hasText: "step 519." }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await chosen.filter({ hasText: "step 520." }).waitFor();
  const [third] = (await readAll(server.store, run.runId)).filter(
    (event) => event.type === "step_end" && event.data.name === "step 3.",
  );
  const old = await open(`/runs/${run.runId}?step=${third?.seq}`);
  const line = old.getByRole("listitem").filter({ has: old.locator("[aria-current=true]") });
  await line.filter({ hasText: "step 3." }).waitFor();
  expect(await line.count()).toBe(1);
});

test("Esc closes the details of a timeline step on the page, which have no visible Close button on a wide screen", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/timeline`);
  await page.getByRole("button", { name: /^release/u }).click();
  await page.getByRole("button", { name: /^edit/u }).click();
  const about = page.getByRole("complementary", { name: "About the step" });
  await about.getByText("tool call", { exact: true }).waitFor();
  expect(await about.getByRole("button", { name: "Close" }).isVisible()).toBe(false);
  await page.keyboard.press("Escape");
  await about.waitFor({ state: "detached" });
  await page.getByText("Open a lane and choose a step").waitFor();
});

test("the page's timeline draws a top-up in the line of its agent, and in no other line", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/timeline`);
  const lane = page.locator(".agent-lane", { hasText: "fix-flaky-tests" });
  const taskId = (await lane.getAttribute("data-task")) ?? "";
  const run = await server.runtime.find(runId);
  await run?.topUp({ maxCostUsd: 0.5 }, taskId);
  await lane.getByText("+$0.50").waitFor();
  expect(await page.getByText("+$0.50").count()).toBe(1);
});

test("a team that needs a person moves to the front of the page's seats and keeps the focus", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart?zoom=seats`);
  const box = page.getByRole("link", { name: /^release, \d+ agents/u });
  await page.locator(".team-box.waits", { hasText: "release" }).waitFor();
  // Before the question, the team needs no person.
  await page.keyboard.press("Shift+ArrowLeft");
  await page.locator(".team-box:not(.waits)", { hasText: "release" }).waitFor();
  await box.focus();
  await page.keyboard.press("l");
  await page.locator(".team-box.waits", { hasText: "release" }).waitFor();
  expect(await page.evaluate("document.activeElement?.getAttribute('aria-label')")).toMatch(/^release,/u);
});

test("the amounts in the page's money view add up to that of the run, and its messages show who gave whom a task", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/money`);
  await page.getByRole("row").filter({ hasText: "Total" }).first().waitFor();
  const own = await page
    .locator(".money .table")
    .first()
    .locator("tbody tr:not(.total) td:nth-child(4)")
    .allTextContents();
  const sum = own.reduce((total, text) => total + Number(text.replace("$", "")), 0);
  const total = Number(
    (await page.locator("tr.total td:nth-child(4)").first().textContent())?.replace("$", ""),
  );
  expect(Math.abs(sum - total)).toBeLessThan(0.01);
  await page.keyboard.press("7");
  expect(await shown(page.getByText("Publish if it is clean."))).toBe(true);
});

test("the page's money view shows what calls without an answer were charged and likely cost, or that this is not known", async () => {
  const broken = { error: new Error("socket hang up") };
  const usage = { inputTokens: 100, outputTokens: 10 };
  const moneyOf = async (name: string, replies: readonly ScriptStep[], retry: RetryChanges) => {
    const agent = new Agent({ name, model: scriptedModel(replies), retry });
    const run = await server.runtime.submit(agent, "Go.");
    await run.result();
    const page = await open(`/runs/${run.runId}/money`);
    const rows = page.locator(".models tbody tr");
    await rows.filter({ hasText: "charged in full" }).waitFor();
    const charged = rows.filter({ hasText: "charged in full" }).getByRole("cell").last();
    const likely = rows.filter({ hasText: "likely cost" });
    return [await charged.textContent(), await likely.textContent()] as const;
  };
  // 100 input tokens and 10 output tokens cost 0.003 USD.
  const [charged, likely] = await moneyOf("flaky", [broken, { text: "Hi.", usage }], { baseDelayMs: 1 });
  expect(Number(charged?.replace("$", ""))).toBeGreaterThan(0.003);
  expect(likely).toBe("what these calls likely cost, like the others on average$0.003");
  const [alone, unknown] = await moneyOf("alone", [broken], false);
  expect(alone).toBe(charged);
  expect(unknown).toBe("what these calls likely cost is not known, because no other call was madenot known");
});

test("the page's view of messages says that it is loading until the stream has brought the events of the run", async () => {
  const runId = await releaseRun(server);
  const page = await open("/agents");
  const held = Promise.withResolvers<void>();
  await page.route("**/stream?*", async (route) => {
    await held.promise;
    await route.continue();
  });
  await page.goto(`${server.url}/runs/${runId}/messages`);
  await page.getByText("Reading messages").waitFor();
  held.resolve();
  expect(await shown(page.getByText("17 messages"))).toBe(true);
});

test("an agent gets another priority on the page, and the chart shows who gave its seat to whom at that event", async () => {
  const runId = await releaseRun(server);
  const run = await server.runtime.find(runId);
  let yieldedAt = 0;
  for await (const event of run?.events({ follow: false, types: ["seat_yield"] }) ?? [])
    if (event.type === "seat_yield") yieldedAt = event.seq;
  expect(yieldedAt).toBeGreaterThan(0);
  const page = await open(`/runs/${runId}/events?find=seat_yield`);
  await page.locator(".event-row .number", { hasText: new RegExp(`^${yieldedAt}$`, "u") }).click();
  await page.keyboard.press("1");
  await page.locator("path.handover").first().waitFor({ state: "attached" });
  await page.keyboard.press("l");
  await page.getByRole("treeitem", { name: /^research/u }).click();
  await page.getByRole("button", { name: "Priority: NORMAL" }).click();
  await page.getByRole("radio", { name: "HIGH", exact: true }).check();
  await page.getByRole("button", { name: "Set HIGH" }).click();
  expect(await shown(page.getByRole("button", { name: "Priority: HIGH" }))).toBe(true);
});

test("a person on the page steers one agent of a team and cancels another with the agents below it, and the run continues", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart`);
  await page.getByRole("treeitem", { name: /^fix-flaky-tests/u }).click();
  await page.getByRole("link", { name: "Steer" }).click();
  // The field has the focus, so that no letter is a key of the page.
  await page.locator("textarea:focus").waitFor();
  await page.keyboard.type("Twenty runs are enough.");
  expect(await page.getByLabel("Steer fix-flaky-tests").inputValue()).toBe("Twenty runs are enough.");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText(/sent: Twenty runs are enough/u).waitFor();
  await page.getByLabel("Steer fix-flaky-tests").fill("Then tidy up.");
  await page.getByRole("button", { name: "Queue" }).click();
  await page.getByText(/sent: Then tidy up/u).waitFor();
  await page.getByRole("link", { name: "research", exact: true }).click();
  // The views that show one agent keep the chosen one.
  await page.getByRole("link", { name: /^Org chart/u }).click();
  await page.getByRole("button", { name: "Cancel agent" }).click();
  await page.getByText("The run continues.").waitFor();
  await page.getByLabel(/Reason/u).fill("We know enough.");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel agent" }).click();
  await page.getByRole("navigation", { name: "Views of the run" }).getByText("Conversation").click();
  await page.getByText("You cancelled this agent and its reports: We know enough.").waitFor();
  await page.getByText("cancelled by you: We know enough.").first().waitFor();
  const agents = page.getByRole("navigation", { name: "Agents of the run" });
  await agents.getByRole("link", { name: "security-advisory-correlator" }).click();
  await page.getByText("cancelled by you: We know enough.").first().waitFor();
  expect((await (await server.runtime.find(runId))?.summary())?.endedAt).toBeNull();
});

test("focus, selection and scroll survive a reload of the page", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart`);
  await page.getByRole("treeitem", { name: /^fix-flaky-tests/u }).click();
  await page.reload();
  await page.locator("[role=treeitem]:focus", { hasText: "fix-flaky-tests" }).waitFor();
  await page.getByRole("complementary", { name: "About fix-flaky-tests" }).waitFor();
  await page.keyboard.press("6");
  await page.locator(".event-row").first().waitFor();
  await page.evaluate("document.querySelector('.event-rows').scrollTo(0, 560)");
  await page.reload();
  const place = (): Promise<unknown> => page.evaluate("document.querySelector('.event-rows')?.scrollTop");
  await expect.poll(place).toBe(560);
});

test("the tabs of the page count agents, steps, events and messages, and the list shows what a run contains", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart`);
  const tabs = page.getByRole("navigation", { name: "Views of the run" });
  await tabs.getByRole("link", { name: /^Org chart\s*13$/u }).waitFor();
  for (const name of ["Timeline", "Events", "Messages"])
    await tabs.getByRole("link", { name: new RegExp(`^${name}\\s*\\d+$`, "u") }).waitFor();
  await page.goto(`${server.url}/runs`);
  await page.getByRole("button", { name: /^Live\s*\d+$/u }).waitFor();
  const row = page.getByRole("row").filter({ has: page.locator(`a[href="/runs/${runId}"]`) });
  expect(await shown(row.getByRole("img", { name: /\$[\d.]+ held/u }))).toBe(true);
});

test("a reload of the page keeps the chart where it was, also if the chosen card is out of view", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart`, { viewport: { width: 1440, height: 560 } });
  const card = page.getByRole("treeitem", { name: /^security-advisory-correlator/u });
  await card.click();
  await page.evaluate("document.querySelector('.canvas').scrollTo(0, 0)");
  await page.reload();
  await page.getByRole("complementary", { name: /^About security/u }).waitFor();
  await page.locator("[role=treeitem]:focus", { hasText: "security" }).waitFor();
  expect(await page.evaluate("document.querySelector('.canvas').scrollTop")).toBe(0);
  await page.getByRole("treeitem", { name: /^lead/u }).click();
  await card.click();
  expect(await page.evaluate("document.querySelector('.canvas').scrollTop")).toBeGreaterThan(0);
});

test("the view of a run on the page shows its title with its styles before its script is loaded", async () => {
  const runId = await releaseRun(server);
  const page = await open("/usage");
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route(/\/assets\/.*\.js$/u, async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(`${server.url}/runs/${runId}/chart`);
  const title = page.getByRole("heading", { level: 1, name: releaseTask });
  await title.waitFor();
  expect(await page.locator("header.top nav").count()).toBe(0);
  expect(await page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize")).toBe("20px");
  release();
  await page.getByRole("treeitem", { name: /^lead/u }).waitFor();
});

test("a hidden tab, which is never painted, loads the script of the page's run view", async () => {
  const runId = await releaseRun(server);
  const page = await open("/usage");
  await page.addInitScript(`
    Object.defineProperty(document, "hidden", { value: true });
    window.requestAnimationFrame = () => 0;
  `);
  await page.goto(`${server.url}/runs/${runId}/chart`);
  expect(await shown(page.locator("header.top nav"))).toBe(true);
});

const sections = "runs inbox sessions agents schedules usage compare find?text=publish".split(" ");
const tabs = ["chart", "timeline", "conversation", "money", "events", "messages"];

test.each([
  ["the sections", 390],
  ["a run", 1440],
  ...(isFull
    ? ([
        ["the sections", 1024],
        ["the sections", 1440],
        ["a run", 390],
        ["a run", 1024],
      ] as const)
    : []),
] as const)(
  "axe finds no serious issue in the page's views of %s on %i px, in both themes",
  async (what, width) => {
    const runId = await releaseRun(server);
    const sessionId = (await (await server.runtime.find(runId))?.summary())?.sessionId ?? "";
    await server.runtime.schedules.create({
      name: `at_${width}`,
      agent: "writer",
      input: "Report on the orders",
      cron: "0 9 * * 1",
      timeZone: "UTC",
    });
    const paths =
      what === "a run"
        ? tabs.map((tab) => `/runs/${runId}/${tab}`)
        : [...sections.map((name) => `/${name}`), `/sessions?id=${sessionId}`];
    const page = await open(paths[0] ?? "", {
      viewport: { width, height: 900 },
      colorScheme: "light",
      reducedMotion: "reduce",
    });
    expect(await axeIssues(page, paths)).toEqual([]);
  },
);
