import axe from "axe-core";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { buildPage } from "../../build/page.ts";
import { company, releaseTask, soloists } from "./company.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { openPage, PageServer } from "./page-server.ts";
import { Stage } from "./stage.ts";

const stage = new Stage();
const server = new PageServer((folder) => [company(stage, folder), ...soloists(stage)]);
let browser: Browser;
const opened: { readonly page: Page; readonly problems: string[] }[] = [];

beforeAll(async () => {
  await buildPage();
  await server.start();
  browser = await startBrowser();
  // Unpacking the browser takes seconds, and longer on a busy machine.
}, 120_000);

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

/** Starts a run as a program would. Returns its id. */
async function submit(agent: string, input: string): Promise<string> {
  const response = await fetch(`${server.url}/api/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ agent, input }),
  });
  const { run } = (await response.json()) as { readonly run: { readonly runId: string } };
  return run.runId;
}

async function waitsForPerson(runId: string): Promise<void> {
  const run = await server.runtime.find(runId);
  for await (const event of run?.events() ?? []) if (event.type === "approval_request") return;
}

async function decisions(runId: string): Promise<readonly unknown[]> {
  const run = await server.runtime.find(runId);
  const found: unknown[] = [];
  for await (const event of run?.events({ follow: false, types: ["approval_decision"] }) ?? [])
    if (event.type === "approval_decision") found.push(event.data.decision);
  return found;
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
  const runId = await submit("publisher", "Publish the patch");
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
  const runId = await submit("publisher", "Publish once");
  await waitsForPerson(runId);
  const first = await open(`/inbox?run=${runId}`);
  const second = await open(`/inbox?run=${runId}`);
  await second.getByRole("button", { name: "Edit" }).click();
  await first.getByRole("button", { name: "Approve" }).click();
  await first.getByText("Approved by you").waitFor();
  await second.getByRole("button", { name: "Approve the edited call" }).click();
  await second.getByText(/approved this .* ago/u).waitFor();
  await first.goto(`${server.url}/runs/${runId}/conversation`);
  await first.getByText("Published.").waitFor();
  expect(await decisions(runId)).toHaveLength(1);
});

test("an edited call runs with the person's arguments", async () => {
  const runId = await submit("publisher", "Publish with care");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("heading", { name: /wants to call publish/u }).waitFor();
  await page.keyboard.press("e");
  await page.getByLabel("Arguments of the call").fill('{ "command": "npm publish --dry-run" }');
  await page.getByRole("button", { name: "Approve the edited call" }).click();
  await page.getByText("Published.").waitFor();
  expect(await decisions(runId)).toMatchObject([{ input: { command: "npm publish --dry-run" } }]);
});

test("a denied call does not run, and the agent reads the reason", async () => {
  const runId = await submit("publisher", "Publish today");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("button", { name: /^Deny/u }).click();
  await page.getByLabel(/Reason/u).fill("Wait for the notes.");
  await page.getByRole("button", { name: "Deny the call" }).click();
  await page.getByText("Published.").waitFor();
  expect(await decisions(runId)).toMatchObject([{ decision: "denied", reason: "Wait for the notes." }]);
});

test("a question offers its choices, and the choice is the answer", async () => {
  const runId = await submit("triage", "Answer the mail");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("button", { name: "Second item, $31.50" }).click();
  await page.getByText("The refund is on its way.").waitFor();
  expect(await decisions(runId)).toMatchObject([{ decision: "approved", input: "Second item, $31.50" }]);
});

test("text appears while the model writes it, survives a restart of the server, and steering arrives", async () => {
  const runId = await submit("desk", "Is 0.9 ready to ship?");
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
  const runId = await submit("publisher", "Publish later");
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
  const runId = await submit("nightly", "Nightly dependency updates");
  const page = await open(`/runs/${runId}/conversation`);
  await page.getByRole("region", { name: "Stopped at its allowance" }).waitFor();
  await page.getByRole("button", { name: /Top up \$1\.00 and continue/u }).click();
  await page.getByText("Updated.").last().waitFor();
  expect(await shown(page.getByText("Done", { exact: true }))).toBe(true);
});

test("a company shows every agent with its edits and its approval card", async () => {
  const runId = await releaseRun();
  const page = await open(`/runs/${runId}/conversation`);
  const agents = page.getByRole("navigation", { name: "Agents of the run" });
  await agents.getByRole("link", { name: "release" }).click();
  await page.getByText('"version": "0.9.0",').waitFor();
  await page.getByText("npm publish --tag latest --access public", { exact: true }).first().waitFor();
  expect(await shown(page.getByText("1 question", { exact: true }))).toBe(true);
});

test("the chart shows cards with purses, arrows move between agents, and zoom changes the level", async () => {
  const runId = await releaseRun();
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
  const runId = await releaseRun();
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
  const runId = await releaseRun();
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
  const runId = await releaseRun();
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
  const runId = await submit("writer", "Write about the outage");
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

/** The company's run, which waits for a person. */
async function releaseRun(): Promise<string> {
  const { runs } = await server.runtime.list({ agentId: "lead", limit: 500, status: ["running", "waiting"] });
  const known = runs.at(-1)?.runId;
  if (known !== undefined) return known;
  const runId = await submit("lead", releaseTask);
  await waitsForPerson(runId);
  return runId;
}

const sections = ["runs", "inbox", "sessions", "agents", "schedules", "usage", "compare"];
const tabs = ["chart", "timeline", "conversation", "money", "events", "messages"];

test.each([
  ["the sections", 1440],
  ["the sections", 390],
  ["a run", 1440],
  ["a run", 390],
] as const)(
  "axe finds no serious issue in the views of %s on %i px, in both themes",
  async (what, width) => {
    const runId = await releaseRun();
    const paths =
      what === "a run" ? tabs.map((tab) => `/runs/${runId}/${tab}`) : sections.map((name) => `/${name}`);
    const one = await openPage(browser, server.url + (paths[0] ?? ""), {
      viewport: { width, height: 900 },
      colorScheme: "light",
      reducedMotion: "reduce",
    });
    opened.push(one);
    const { page } = one;
    // Through the debugger, because the page's policy refuses scripts from elsewhere.
    await page.evaluate(axe.source);
    const found: string[] = [];
    for (const path of paths) {
      await goWithin(page, path);
      for (const issue of await axeIssues(page, { resultTypes: ["violations"] }))
        found.push(`${path}: ${issue}`);
      await page.keyboard.press("t");
      const contrast = { runOnly: ["color-contrast"], resultTypes: ["violations"] };
      for (const issue of await axeIssues(page, contrast)) found.push(`${path} in the other theme: ${issue}`);
    }
    expect(found).toEqual([]);
  },
  240_000,
);

/** Goes to a view as the browser's history does, without loading the page again. */
async function goWithin(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"));`,
  );
  await page.locator("main h1").first().waitFor();
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly impact: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

async function axeIssues(page: Page, options: object): Promise<readonly string[]> {
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as AxeResult;
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}
