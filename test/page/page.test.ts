import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { buildPage } from "../../build/page.ts";
import { company, soloists } from "./company.ts";
import { axeIssues } from "./axe-issues.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { deadLetter, decisions, releaseRun, submitRun, waitsForPerson } from "./page-runs.ts";
import { openPage, PageServer } from "./page-server.ts";
import { Stage } from "./stage.ts";

const stage = new Stage();
const server = new PageServer((folder) => [company(stage, folder), ...soloists(stage)], {
  resolveModel: (name) =>
    name === "stage/haiku-5"
      ? stage.actor(
          Array.from({ length: 5 }, () => ({ text: "In short: published." })),
          "haiku-5",
        )
      : undefined,
});
let browser: Browser;
const opened: { readonly page: Page; readonly problems: string[] }[] = [];

beforeAll(async () => {
  await buildPage();
  await server.start();
  browser = await startBrowser();
});

afterEach(async () => {
  for (const { page, problems } of opened.splice(0)) {
    await page.context().close();
    // The browser itself reports refused connections while the server is stopped, and the answer to a lost race.
    const others = problems.filter((problem) => !/ERR_|status of 40[49]/u.test(problem));
    if (others.length > 0) throw new Error(`the page reported: ${others.join("; ")}`);
  }
});

afterAll(async () => {
  await browser.close();
  removeBrowser();
  await server.remove();
});

async function open(path: string): Promise<Page> {
  const one = await openPage(browser, server.url + path);
  opened.push(one);
  return one.page;
}

/** Whether something becomes visible. Fails after the timeout of the page. */
async function shown(what: Locator): Promise<boolean> {
  await what.waitFor();
  return true;
}

test("the empty page says what a run is, and New run starts one and opens it", async () => {
  const page = await open("/");
  await page.getByRole("heading", { name: "No runs yet" }).waitFor();
  await page.keyboard.press("n");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("writer");
  await page.getByLabel("Task").fill("Summarise the incident");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("heading", { name: "Summarise the incident" }).waitFor();
  await page.getByText("one missing index").waitFor();
  expect(await shown(page.getByText("Done", { exact: true }))).toBe(true);
});

test("the list of runs follows changes, filters by text and shows a group", async () => {
  const page = await open("/runs");
  await page.getByRole("link", { name: "Summarise the incident" }).waitFor();
  const runId = await submitRun(server, "publisher", "Publish the patch");
  await page.getByRole("link", { name: "Publish the patch" }).waitFor();
  await page.getByText("Waits for you").last().waitFor();
  await page.getByLabel("Filter runs").fill("cost>50");
  await page.getByText("No run fits").waitFor();
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await page.getByRole("button", { name: "Waits for you" }).click();
  await page.getByRole("link", { name: "Publish the patch" }).waitFor();
  expect(await page.getByRole("link", { name: "Summarise the incident" }).count()).toBe(0);
  await (await server.runtime.find(runId))?.cancel();
});

test("an approval in the inbox runs the call, and a second tab says who was first", async () => {
  const runId = await submitRun(server, "publisher", "Publish once");
  await waitsForPerson(server, runId);
  const first = await open(`/inbox?run=${runId}`);
  const second = await open(`/inbox?run=${runId}`);
  await second.getByRole("button", { name: "Edit" }).click();
  await first.getByRole("button", { name: "Approve" }).click();
  await first.getByText("Approved by you").waitFor();
  await second.getByRole("button", { name: "Approve the edited call" }).click();
  await second.getByText(/approved this .* ago/u).waitFor();
  await first.goto(`${server.url}/runs/${runId}/conversation`);
  await first.getByText("Published.").waitFor();
  expect(await decisions(server, runId)).toHaveLength(1);
});

test("an edited call runs with the person's arguments", async () => {
  const runId = await submitRun(server, "publisher", "Publish with care");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("heading", { name: /wants to call publish/u }).waitFor();
  await page.keyboard.press("e");
  await page.getByLabel("Arguments of the call").fill('{ "command": "npm publish --dry-run" }');
  await page.getByRole("button", { name: "Approve the edited call" }).click();
  await page.getByText("Published.").waitFor();
  expect(await decisions(server, runId)).toMatchObject([{ input: { command: "npm publish --dry-run" } }]);
});

test("a denied call does not run, and the agent reads the reason", async () => {
  const runId = await submitRun(server, "publisher", "Publish today");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("button", { name: /^Deny/u }).click();
  await page.getByLabel(/Reason/u).fill("Wait for the notes.");
  await page.getByRole("button", { name: "Deny the call" }).click();
  await page.getByText("Published.").waitFor();
  expect(await decisions(server, runId)).toMatchObject([
    { decision: "denied", reason: "Wait for the notes." },
  ]);
});

test("a question offers its choices, and the choice is the answer", async () => {
  const runId = await submitRun(server, "triage", "Answer the mail");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("button", { name: "Second item, $31.50" }).click();
  await page.getByText("The refund is on its way.").waitFor();
  expect(await decisions(server, runId)).toMatchObject([
    { decision: "approved", input: "Second item, $31.50" },
  ]);
});

test("text appears while the model writes it, survives a restart of the server, and steering arrives", async () => {
  const runId = await submitRun(server, "desk", "Is 0.9 ready to ship?");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByText("Not yet: two tests are").waitFor();
  await page.getByText("writing", { exact: true }).waitFor();
  await page.getByLabel("Steer desk").fill("Check the licence, too.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText(/sent: Check the licence, too/u).waitFor();
  await server.stop();
  await page.getByText(/The server stopped answering/u).waitFor();
  // Nothing is blanked.
  await page.getByText("Is 0.9 ready to ship?").first().waitFor();
  await server.start();
  await page.getByText(/The server stopped answering/u).waitFor({ state: "hidden" });
  await page.getByText("Live", { exact: true }).first().waitFor();
  stage.open("desk");
  await page.getByText("one advisory is open.").waitFor();
  await page.getByText("Steering", { exact: true }).waitFor();
  expect(await shown(page.getByText("Done", { exact: true }))).toBe(true);
});

test("a run is paused, resumed and cancelled from its page", async () => {
  const runId = await submitRun(server, "publisher", "Publish later");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("heading", { name: /wants to call publish/u }).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.getByRole("button", { name: "Cancel run" }).click();
  await page.getByText("1 agent stops.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
  expect(await shown(page.getByText("Cancelled", { exact: true }))).toBe(true);
});

test("a run that stopped at its allowance says what happened, and a top-up continues it", async () => {
  const runId = await submitRun(server, "nightly", "Nightly dependency updates");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("region", { name: "Stopped at its allowance" }).waitFor();
  await page.getByRole("button", { name: /Top up \$1\.00 and continue/u }).click();
  await page.getByText("Updated.").last().waitFor();
  expect(await shown(page.getByText("Done", { exact: true }))).toBe(true);
});

test("a company shows every agent with its edits and its approval card", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/conversation`);
  const agents = page.getByRole("navigation", { name: "Agents of the run" });
  await agents.getByRole("link", { name: "release" }).click();
  await page.getByText('"version": "0.9.0",').waitFor();
  await page.getByText("npm publish --tag latest --access public", { exact: true }).first().waitFor();
  expect(await shown(page.getByText("1 question", { exact: true }))).toBe(true);
});

test("the chart shows cards with purses, arrows move between agents, and zoom changes the level", async () => {
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
  await page.getByRole("columnheader", { name: "Allowance" }).waitFor();
  await page.keyboard.press("z");
  expect(
    await shown(page.getByRole("link", { name: /^(?:research|build|review), \d+ agents/u }).first()),
  ).toBe(true);
});

test("the playhead redraws every view, disables orders, and L returns to live", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart`);
  await page.getByRole("treeitem", { name: /^release/u }).waitFor();
  await page.getByRole("slider", { name: "Playhead" }).focus();
  await page.keyboard.press("Home");
  await page.getByText(/^Replay, as of/u).waitFor();
  await page.getByRole("treeitem", { name: /^release/u }).waitFor({ state: "detached" });
  expect(await page.getByRole("treeitem").count()).toBe(1);
  expect(await page.getByRole("button", { name: "Cancel run" }).isDisabled()).toBe(true);
  await page.keyboard.press("5");
  await page.getByText("1 event", { exact: true }).waitFor();
  await page.keyboard.press("4");
  await page.getByRole("row").filter({ hasText: "lead" }).waitFor();
  await page.keyboard.press("l");
  expect(await shown(page.getByRole("row").filter({ hasText: "fix-flaky-tests" }))).toBe(true);
});

test("the timeline opens a lane into its steps, and a step offers a fork", async () => {
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

test("money adds up to the run, and messages show who gave whom a task", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/money`);
  await page.getByRole("row").filter({ hasText: "Total" }).waitFor();
  const own = await page
    .locator(".money .table")
    .first()
    .locator("tbody tr:not(.total) td:nth-child(4)")
    .allTextContents();
  const sum = own.reduce((total, text) => total + Number(text.replace("$", "")), 0);
  const total = Number((await page.locator("tr.total td:nth-child(4)").textContent())?.replace("$", ""));
  expect(Math.abs(sum - total)).toBeLessThan(0.01);
  await page.keyboard.press("6");
  expect(await shown(page.getByText("Publish if it is clean."))).toBe(true);
});

test("a chat streams the answer, keeps it in the session, continues it and stops a run", async () => {
  const page = await open("/sessions?new=1");
  await page.getByLabel("With").selectOption("chatter");
  await page.getByLabel("Message").fill("Is it ready?");
  await page.keyboard.press("Enter");
  await page.getByText("Almost: one t").waitFor();
  expect(await page.getByText("one test is flaky.").count()).toBe(0);
  stage.open("chatter");
  await page.getByText("one test is flaky.").first().waitFor();
  await page.getByRole("button", { name: /^Stop/u }).waitFor({ state: "hidden" });
  await page
    .getByLabel("Files", { exact: true })
    .setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("two lines") });
  await page.getByRole("button", { name: "Remove notes.txt" }).waitFor();
  await page.getByLabel("Message").fill("Then fix it.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("I am at it").waitFor();
  await page.getByRole("button", { name: /^Stop/u }).click();
  await page.getByRole("button", { name: /^Stop/u }).waitFor({ state: "hidden" });
  await page.reload();
  await page.getByText("[notes.txt]").first().waitFor();
  expect(await shown(page.locator(".tree-line").nth(2))).toBe(true);
});

test("a fork with another message is compared with its origin, and shared steps are free", async () => {
  const runId = await submitRun(server, "writer", "Write about the outage");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByText("Done", { exact: true }).waitFor();
  await page.keyboard.press("f");
  await page.getByLabel(/Message that follows/u).fill("Shorter, please.");
  await page.getByRole("button", { name: "Start the fork" }).click();
  await page.getByRole("link", { name: "Compare" }).click();
  await page.getByText("the same 1 step").waitFor();
  expect(await page.getByText("free", { exact: true }).count()).toBe(1);
  expect(
    await shown(
      page
        .getByText("only B")
        .or(page.getByText("first", { exact: true }))
        .first(),
    ),
  ).toBe(true);
});

test("agents, schedules and usage show what the server hosts, when it starts and what it spent", async () => {
  const page = await open("/agents");
  await page.getByRole("img", { name: "lead may hire 4 agents" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.getByRole("link", { name: "Schedules" }).click();
  await page.getByRole("button", { name: "New schedule" }).click();
  await page.getByLabel("Name").fill("morning");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("writer");
  await page.getByLabel("Task").fill("Write the report");
  await page.getByRole("button", { name: "Create" }).click();
  const row = page.getByRole("row").filter({ hasText: "morning" });
  await row.getByRole("button", { name: "Pause" }).click();
  await row.getByText("Paused").waitFor();
  await row.getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Usage" }).click();
  expect(await shown(page.getByRole("row").filter({ hasText: "Total" }))).toBe(true);
});

test("the list shows agents, allowance and steps of a run, and badge, figures and inbox count the same", async () => {
  const stopped = await submitRun(server, "nightly", "Updates of the night");
  await (await server.runtime.find(stopped))?.result();
  await deadLetter(server, "reviewer");
  const page = await open("/runs");
  const row = page.getByRole("row").filter({ hasText: "Updates of the night" });
  await row.getByText("of $0.05").waitFor();
  await row.getByText("Stopped at its allowance").waitFor();
  expect(await row.getByRole("cell").nth(2).textContent()).toBe("1");
  // The whole status is visible: nothing of it is cut.
  const cut =
    "[...document.querySelectorAll('.runs .word')].filter((word) => word.getBoundingClientRect().right > word.closest('td').getBoundingClientRect().right).length";
  expect(await page.evaluate(cut)).toBe(0);
  await page
    .getByRole("link", { name: /^Inbox/u })
    .first()
    .click();
  await page.getByText("A message could not be delivered").first().waitFor();
  const items = await page.locator(".inbox-item").count();
  expect(await page.locator(".top .badge").textContent()).toBe(`${items} wait for you`);
  await page.locator(".inbox-item", { hasText: "A message could not be delivered" }).first().click();
  await page.getByRole("button", { name: "Send again" }).click();
  await page.getByText("A message could not be delivered").waitFor({ state: "detached" });
  expect(await server.runtime.deadLetters("reviewer")).toEqual([]);
});

test("an agent gets another priority, and the chart shows who gave its seat to whom at that event", async () => {
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

test("find shows runs, agents and messages that contain a text", async () => {
  const runId = await submitRun(server, "writer", "Describe the aqueduct");
  await (await server.runtime.find(runId))?.result();
  const page = await open("/usage");
  await page.keyboard.press("/");
  await page.keyboard.type("aqueduct");
  await page.keyboard.press("Enter");
  await page
    .getByRole("region", { name: "Runs" })
    .getByRole("link", { name: /Describe the aqueduct/u })
    .waitFor();
  expect(await shown(page.getByRole("region", { name: "Messages" }).getByRole("link"))).toBe(true);
});

test("a step shows what the model saw, and a fork with a changed model is compared with its origin", async () => {
  const runId = await submitRun(server, "publisher", "Publish with a note");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("button", { name: /^Approve/u }).click();
  await page.getByText("Done", { exact: true }).waitFor();
  await page.getByText("What the model saw last").waitFor();
  await page.keyboard.press("2");
  await page
    .getByRole("button", { name: /^sonnet-5/u })
    .last()
    .click();
  await page.getByText("Result of publish").waitFor();
  await page.keyboard.press("f");
  await page.getByLabel(/Message that follows/u).fill("Shorter, please.");
  await page.getByLabel(/Other model/u).fill("stage/haiku-5");
  await page.getByRole("button", { name: "Start the fork" }).click();
  await page.getByText("In short: published.").first().waitFor();
  await page.getByRole("link", { name: "Compare" }).click();
  expect(await shown(page.getByText(/the same \d+ steps?/u))).toBe(true);
});

test("focus, selection and scroll survive a reload", async () => {
  const runId = await releaseRun(server);
  const page = await open(`/runs/${runId}/chart`);
  await page.getByRole("treeitem", { name: /^fix-flaky-tests/u }).click();
  await page.reload();
  await page.locator("[role=treeitem]:focus", { hasText: "fix-flaky-tests" }).waitFor();
  await page.getByRole("complementary", { name: "About fix-flaky-tests" }).waitFor();
  await page.keyboard.press("5");
  await page.locator(".event-row").first().waitFor();
  await page.evaluate("document.querySelector('.event-rows').scrollTo(0, 560)");
  await page.reload();
  const place = (): Promise<unknown> => page.evaluate("document.querySelector('.event-rows')?.scrollTop");
  await expect.poll(place, { timeout: 60_000 }).toBe(560);
});

const sections = "runs inbox sessions agents schedules usage compare find?text=publish".split(" ");
const tabs = ["chart", "timeline", "conversation", "money", "events", "messages"];

test.each([
  ["the sections", 1440],
  ["the sections", 390],
  ["a run", 1440],
  ["a run", 390],
] as const)("axe finds no serious issue in the views of %s on %i px, in both themes", async (what, width) => {
  const runId = await releaseRun(server);
  const paths =
    what === "a run" ? tabs.map((tab) => `/runs/${runId}/${tab}`) : sections.map((name) => `/${name}`);
  const one = await openPage(browser, server.url + (paths[0] ?? ""), {
    viewport: { width, height: 900 },
    colorScheme: "light",
    reducedMotion: "reduce",
  });
  opened.push(one);
  expect(await axeIssues(one.page, paths)).toEqual([]);
});
