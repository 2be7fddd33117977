import { expect, test } from "vitest";
import { createServer, listen, pageFolder, storedTokens } from "../../src/surfaces/server/index.ts";
import { axeIssues, axeIssuesHere } from "./axe-issues.ts";
import { submitRun } from "./page-runs.ts";
import { pageTests, shown } from "./page-tests.ts";

const { server, open } = pageTests();

const escaped = String.raw`<b>bold</b> \u001b[31mred\u202e txt\u200b`;

async function ended(agent: string, input: string): Promise<string> {
  const runId = await submitRun(server, agent, input);
  await (await server.runtime.find(runId))?.result();
  return runId;
}

test("the page shows what a model saw turn by turn: instructions, tools, messages, size, and what is not recorded", async () => {
  const runId = await ended("archivist", "Archive the letters");
  const page = await open(`/runs/${runId}/conversation`);
  await page.locator(".shares dd").first().waitFor();
  const shares = await page.locator(".shares dt, .shares dd").allTextContents();
  await page.keyboard.press("4");
  await page.getByRole("region", { name: "What the model saw in Turn 2" }).waitFor();
  // The conversation and this view split the same request in the same way.
  await page.locator(".context-parts dt").first().waitFor();
  const parts = await page.locator(".context-parts dt, .context-parts dd").allTextContents();
  expect(shares).toHaveLength(8);
  expect(shares).toEqual(parts.slice(0, shares.length));
  await page.getByText("of 50,000 tokens").waitFor();
  const instructions = page.getByRole("region", { name: "Instructions" });
  await instructions.getByText(`Keep the archive. ${escaped}`).waitFor();
  expect(await page.locator(".saw b", { hasText: /^bold$/u }).count()).toBe(0);
  const tools = page.getByRole("region", { name: "Tools" });
  await tools.locator("summary").click();
  await tools.getByText('"required"').waitFor();
  await page.getByText("One ephemeral message followed the messages. Their text is never stored.").waitFor();
  await page.getByText("proven by the recorded digest").waitFor();
  const messages = page.getByRole("region", { name: "Messages", exact: true });
  await messages.locator("summary", { hasText: /^recite$/u }).click();
  await messages.getByRole("button", { name: /^Show 99\d,\d{3} more characters$/u }).waitFor();
  await page.keyboard.press("c");
  await messages.getByText("2 of 3, new since the turn before").waitFor();
  await page.keyboard.press("r");
  await page.getByRole("region", { name: "Raw request" }).getByText('"messages": [').waitFor();
  await page.keyboard.press("r");
  await page.keyboard.press("ArrowUp");
  await page.getByRole("region", { name: "What the model saw in Turn 1" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Turn 1" }).first().waitFor();
  expect(await axeIssues(page, [`${server.url}/runs/${runId}/saw`])).toEqual([]);
});

test("the page shows a call in flight in what a model saw before its answer, and the turn can be tried again", async () => {
  const runId = await submitRun(server, "chatter", "Are we there yet?");
  const page = await open(`/runs/${runId}/saw`);
  const calls = page.getByRole("navigation", { name: "Model calls" });
  expect(await shown(calls.getByRole("link", { name: /^Turn 1 in flight/u }))).toBe(true);
  await page.getByRole("region", { name: "Messages", exact: true }).getByText("Are we there yet?").waitFor();
  await page.getByRole("link", { name: "Try this turn again" }).click();
  await page.getByRole("region", { name: "A, as recorded" }).waitFor();
  await (await server.runtime.find(runId))?.cancel();
});

test("an event on the page has a raw view with copy and a link that opens the event and brings it into view", async () => {
  const runId = await ended("archivist", "Archive once more");
  const page = await open(`/runs/${runId}/saw`);
  await page.getByRole("link", { name: /^\d+$/u }).last().click();
  await page.locator(".raw-event pre", { hasText: '"type": "message_start"' }).waitFor();
  const again = await open(`/runs/${runId}/events?event=2`, { viewport: { width: 1440, height: 500 } });
  await again.locator(".raw-event pre", { hasText: '"seq": 2,' }).waitFor();
  const row = again.locator(".event-row.chosen");
  await row.waitFor();
  const list = await again.locator(".event-rows").boundingBox();
  const box = await row.boundingBox();
  expect((box?.y ?? -1) >= (list?.y ?? 0) && (box?.y ?? 0) < (list?.y ?? 0) + (list?.height ?? 0)).toBe(true);
  await again.getByRole("button", { name: "Copy a link to the event" }).waitFor();
  await again.keyboard.press("Escape");
  await again.locator(".raw-event").waitFor({ state: "detached" });
  expect(await again.locator("pre b").count()).toBe(0);
});

test("a schedule is made from a run on the page, edited, run at once, and shows the outcomes of its last runs", async () => {
  const runId = await ended("writer", "Write the weekly report");
  const page = await open(`/runs/${runId}`);
  await page.getByRole("link", { name: "Schedule", exact: true }).click();
  expect(await page.getByLabel("Task").inputValue()).toBe("Write the weekly report");
  expect(await page.getByRole("combobox", { name: "Agent" }).inputValue()).toBe("writer");
  await page.getByLabel("Name").fill("weekly");
  await page.getByRole("button", { name: "Create" }).click();
  const row = page.getByRole("row").filter({ hasText: "weekly" });
  await row.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Task").fill("Write it in one line");
  await page.getByRole("textbox", { name: "Cron expression" }).fill("30 8 * * 1");
  await page.getByRole("button", { name: "Save" }).click();
  await row.getByText("Write it in one line").waitFor();
  await row.locator(".c-meter code", { hasText: "30 8 * * 1 " }).waitFor();
  await row.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("heading", { name: "Write it in one line" }).waitFor();
  await page.getByRole("link", { name: "Schedules" }).click();
  await row.getByRole("link", { name: /^Done: run_/u }).waitFor();
  const { schedules } = server.runtime;
  const [owner] = (await schedules.list()).filter(({ name }) => name === "weekly");
  const { tenantId = null, userId = null } = owner ?? {};
  await schedules.edit("weekly", { agent: "keyless" }, { tenantId, userId });
  await page.reload();
  await row.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("heading", { name: "Write it in one line" }).waitFor();
  await page.getByRole("link", { name: "Schedules" }).click();
  await row.getByText("Failing").waitFor();
  await row.getByText("The last run did not complete").waitFor();
  await schedules.remove("weekly", { tenantId, userId });
});

test("a schedule form on the page has the fields of its agent, says why a run was refused, and asks before it is removed", async () => {
  const body = { name: "bookings", agent: "booker", input: "Rome for two", everyMs: 3_600_000 };
  await fetch(`${server.url}/api/schedules`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const page = await open("/schedules");
  const row = page.getByRole("row").filter({ hasText: "bookings" });
  await row.getByRole("button", { name: "Run now" }).click();
  await page
    .getByRole("alert")
    .getByText(/^The run was refused: .*input/u)
    .waitFor();
  await row.getByText("Failing").waitFor();
  await row.getByText(/^The last fire was refused: .*input/u).waitFor();
  expect(server.errors).toContainEqual(expect.objectContaining({ code: "invalid_argument" }));
  await row.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("City").waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("This field is needed.").first().waitFor();
  await page.getByLabel("City").fill("Rome");
  await page.getByLabel("Nights").fill("2");
  await page.getByRole("button", { name: "Save" }).click();
  await row.getByText('{ "city": "Rome", "nights": 2 }').waitFor();
  await row.getByRole("button", { name: "Run now" }).click();
  await page.getByRole("link", { name: "Schedule", exact: true }).click();
  await page.getByLabel("Nights").waitFor();
  expect(await page.getByLabel("City").inputValue()).toBe("Rome");
  await page.getByRole("button", { name: "Close" }).click();
  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
});

test("a browser without a token signs in on a form of the page, and returns to the address that it asked for", async () => {
  const tokens = storedTokens(server.store.records);
  const guarded = createServer(server.runtime, { tokens, page: pageFolder });
  const listening = await listen(guarded, { port: 0 });
  const { token } = await tokens.create({ name: "desk", scope: "admin" });
  const browser = (await open("/agents")).context().browser();
  const context = await browser?.newContext();
  const page = await context?.newPage();
  if (page === undefined) throw new Error("the browser is closed");
  await page.goto(`${listening.url}/schedules`);
  await page.getByRole("heading", { name: "Sign in to reeve" }).waitFor();
  // A token with markup stays the text of the field, and none of it is drawn.
  const hostile = `"><img src=x onerror=alert(1)>\u202Eevil \u001B[31m`;
  await page.getByLabel("Token").fill(hostile);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This token is not known here").waitFor();
  expect(await page.getByLabel("Token").inputValue()).toBe(hostile);
  expect(await page.locator("img[src=x]").count()).toBe(0);
  await page.getByLabel("Token").fill("reeve_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This token is not known here").waitFor();
  expect(await page.getByLabel("Token").inputValue()).toBe("reeve_wrong");
  expect(await axeIssuesHere(page)).toEqual([]);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  expect(await shown(page.getByRole("heading", { name: "Schedules" }))).toBe(true);
  expect(page.url()).toBe(`${listening.url}/schedules`);
  await context?.close();
  await listening.close();
});
