import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { z } from "zod";
import { Agent, tool } from "../../src/entries/index.ts";
import { FatalError, object, signal, update, workflow } from "../../src/entries/workflow.ts";
import type { HostedAgent, RunId } from "../../src/kernel/index.ts";
import type { ServedAgent } from "../../src/surfaces/server/index.ts";
import { openWorkspace, type Workspace } from "../../src/workspace/workspace.ts";
import { isFull } from "../effort.ts";
import { readAll } from "../runtime/runtime-setup.ts";
import { axeIssues } from "./axe-issues.ts";
import { booker } from "./company.ts";
import { narrowIssues } from "./narrow-issues.ts";
import { submitRun, ended } from "./page-runs.ts";
import { PageServer } from "./page-server.ts";
import { sharedPage } from "./page-tests.ts";
import { Stage } from "./stage.ts";
import { hostile, shortHostile, unsafe } from "./unsafe.ts";

const stage = new Stage();
const look = tool({
  name: "look",
  description: "Looks.",
  inputSchema: { type: "object", properties: { where: { type: "string" } } },
  execute: async () => "3 open ports",
});
const wipe = tool({
  name: "wipe",
  description: "Wipes.",
  inputSchema: { type: "object" },
  execute: async () => "wiped",
});
const looks = { calls: [{ tool: "look", input: { where: "here" } }] };
const checker = new Agent({
  name: "checker",
  model: stage.actor([looks, { text: "Three ports are open.\nClose them." }]),
  tools: [look, wipe],
  instructions: "Never rank by score alone.",
});
const villain = new Agent({
  name: "villain",
  description: hostile,
  model: stage.actor([looks, { text: hostile }]),
  tools: [look],
  instructions: hostile,
});
const paid = signal(
  "paid",
  z.object({
    cents: z.int().min(1).max(100_000).meta({ title: "Cents" }),
    method: z.enum(["card", "cash"]).optional().meta({ title: "Method" }),
  }),
);
const packed = signal("packed", z.object({ boxes: z.int().meta({ title: shortHostile }) }));
const move = update("move", { input: z.string().min(2), output: z.string() });
const order = workflow(
  "order",
  {
    input: z.object({ orderId: z.string().min(2).meta({ title: "Order" }) }),
    signals: [paid, packed],
    updates: [move],
  },
  async (ctx, { orderId }) => {
    const { promise } = ctx.promise(z.string());
    const charge = async ({ attempt }: { readonly attempt: number }): Promise<number> =>
      attempt < 2 ? Promise.reject(new Error("the bank is closed")) : attempt;
    await ctx.step("charge", charge, { retry: { baseDelayMs: 1 } });
    await ctx.compensate("refund", () => undefined);
    ctx.publish("progress", { done: 1 });
    const payment = await ctx.waitForSignal(paid, { timeoutMs: 86_400_000 });
    await ctx.handleUpdate(move, async (to) => to);
    const carrier = await promise.result();
    if (orderId === "sold out") throw new FatalError("nothing is left");
    return { paid: payment?.cents ?? null, carrier };
  },
);
const cart = object("cart", {
  add: async (ctx, name: string) => {
    ctx.setState({ name, books: 3 });
    return null;
  },
  clear: async (ctx) => ctx.clearState(),
  hold: async (ctx) => ctx.waitForSignal("go"),
});

let workspace: Workspace;
const file = (): string => join(server.folder, "project/.reeve/agents/sorter.md");
const sorter: ServedAgent = {
  name: "sorter",
  start: async () => ({ agent: await workspace.agent("sorter") }),
  describe: () => workspace.agent("sorter"),
  prompt: {
    read: async () => (await workspace.instructions("sorter")) ?? Promise.reject(new Error("no file")),
    save: (instructions, hash) => workspace.saveInstructions("sorter", instructions, hash),
  },
};
const agents = [checker, booker(stage), villain, order, cart, sorter as unknown as HostedAgent];
const server = new PageServer(() => agents, {
  resolveModel: (name) =>
    name === "stage/haiku-5"
      ? stage.actor([looks, { text: "Three ports are open.\nLeave them." }], "haiku-5")
      : undefined,
});

const shared = sharedPage(server, {
  prepare: async () => {
    mkdirSync(join(server.folder, "project/.reeve/agents"), { recursive: true });
    writeFileSync(file(), "---\ndescription: Sorts.\n---\n\nSort by date.\nBe brief.\n");
    workspace = await openWorkspace({
      cwd: join(server.folder, "project"),
      home: join(server.folder, "home"),
      env: { REEVE_MODEL: "stage/sonnet-5" },
      resolveModel: () => stage.actor([{ text: "Sorted." }]),
    });
    await workspace.trust();
  },
  cleanUp: () => workspace.close(),
});
const { open } = shared;

test("a form of the page with a field per property starts a run, and a wrong field says what is expected", async () => {
  const page = await open("/runs");
  await page.keyboard.press("n");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("booker");
  await page.getByLabel("City").fill("R");
  await page.getByLabel("Nights").fill("12");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Enter at least 2 characters.").waitFor();
  await page.getByText("Enter at most 9.").waitFor();
  expect((await server.runtime.list()).runs).toHaveLength(0);
  await page.getByLabel("City").fill("Rome");
  await page.getByLabel("Nights").fill("2");
  await page.getByLabel("Room optional").selectOption("double");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Booked.").first().waitFor();
  const [run] = (await server.runtime.list()).runs;
  expect(run?.title).toContain('"city": "Rome"');
});

test("a run starts on the page with files, a model from the list and edited instructions", async () => {
  const page = await open("/runs");
  await page.keyboard.press("n");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("checker");
  await page.getByLabel("Task").fill("Check the ports");
  const ports = { name: "ports.txt", mimeType: "text/plain", buffer: Buffer.from("22, 80") };
  await page.getByLabel("Files, optional").setInputFiles([ports, { ...ports, name: "old.txt" }]);
  await page.getByRole("button", { name: "Remove old.txt" }).click();
  await page.getByText("Change something for this run").click();
  await page.getByLabel("Model, as provider/id").fill("stage/haiku-5");
  expect(await page.getByLabel("Instructions").inputValue()).toBe("Never rank by score alone.");
  await page.getByLabel("Instructions").fill("Rank by reach.");
  await page.getByRole("checkbox", { name: "wipe" }).uncheck();
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Leave them.").first().waitFor();
  const [run] = (await server.runtime.list({ agentId: "checker" })).runs;
  const [start] = await readAll(server.store, run?.runId ?? ("" as RunId));
  expect(start?.data).toMatchObject({
    input: [
      { type: "text", text: "Check the ports" },
      { type: "file", filename: "ports.txt" },
    ],
    changes: {
      instructions: "Rank by reach.",
      model: { provider: "stage", modelId: "haiku-5" },
      tools: ["look"],
    },
  });
});

test("a turn runs again on the page with other instructions, another model and an edited result, side by side", async () => {
  const runId = await submitRun(server, "checker", "Check again");
  await ended(server, runId);
  const page = await open(`/runs/${runId}`);
  await page.getByRole("link", { name: "Run again" }).click();
  // While the chosen turn is read, no form can be filled whose text its arrival would discard.
  const isReading = page.getByText("Reading the run").waitFor();
  await page.route("**/requests/*", async (route) => {
    await isReading;
    await route.continue();
  });
  await page.getByLabel("Turn to start from").selectOption({ label: "Turn 2" });
  await page.getByText("2 steps before it are free").waitFor();
  await page.getByLabel("Instructions").fill("Rank by what an outsider can reach.");
  await page.getByRole("button", { name: "Start variant B" }).click();
  const b = page.getByRole("region", { name: "B, Instructions" });
  await b.getByText("Rank by what an outsider can reach.").waitFor();
  await b.getByText("Three ports are open.").waitFor();
  await page.getByRole("button", { name: "+ Variant" }).click();
  await page.getByLabel("Model, as provider/id").fill("stage/haiku-5");
  await page.getByRole("button", { name: "Start variant C" }).click();
  const c = page.getByRole("region", { name: "C, Model" });
  // A line that A does not have is marked once the variant has ended.
  await c.locator(".differs", { hasText: "Leave them." }).waitFor();
  await page.getByText("1 differs").waitFor();
  await page.getByRole("button", { name: "+ Variant" }).click();
  await page.getByLabel("Tool result to edit").selectOption({ label: "look" });
  await page.getByLabel("Edited result").fill("0 open ports");
  await page.getByRole("button", { name: "Start variant D" }).click();
  const d = page.getByRole("region", { name: "D, A tool's result" });
  await d.getByText("0 open ports").waitFor();
  await d.getByText("edited", { exact: true }).waitFor();
  await d.getByText("Three ports are open.").waitFor();
  expect(await page.getByRole("button", { name: "+ Variant" }).isDisabled()).toBe(true);
  await page.keyboard.press("3");
  await page.locator(".variant:focus", { hasText: "Leave them." }).waitFor();
  const { pathname, search } = new URL(page.url());
  expect(await axeIssues(page, [`${pathname}${search}`])).toEqual([]);
  // The variants are in the address, so that they survive a reload.
  await page.reload();
  await page.getByRole("region", { name: "D, A tool's result" }).getByText("0 open ports").waitFor();
  const forks = (await server.runtime.list({ agentId: "checker" })).runs.filter(
    ({ title }) => title === "Check again",
  );
  expect(forks).toHaveLength(4);
  await page.keyboard.press("c");
  await page.waitForURL(/\/compare\?a=run_[\w-]+&b=run_/u);
});

test("the page closes the form of a variant when the variant starts, also if another turn was chosen meanwhile", async () => {
  const runId = await submitRun(server, "checker", "Check twice");
  await ended(server, runId);
  const page = await open(`/again?run=${runId}`);
  const forked = Promise.withResolvers<void>();
  await page.route("**/fork", async (route) => {
    await forked.promise;
    await route.continue();
  });
  await page.getByLabel("Instructions").fill("Be brief.");
  await page.getByRole("button", { name: "Start variant B" }).click();
  await page.getByLabel("Turn to start from").selectOption({ label: "Turn 2" });
  await page.getByText("2 steps before it are free").waitFor();
  forked.resolve();
  await page.getByRole("region", { name: /^B, / }).waitFor();
  await expect.poll(() => page.getByRole("button", { name: "+ Variant" }).isEnabled()).toBe(true);
});

test("the page's form for a new run has the agent and the input of an earlier run, and a person can change them", async () => {
  const [earlier] = (await server.runtime.list({ agentId: "booker" })).runs;
  const page = await open(`/runs/${earlier?.runId}`);
  await page.getByRole("link", { name: "Run again" }).click();
  await page.getByRole("button", { name: "As a new run" }).click();
  const form = page.getByRole("dialog");
  const chosen = form.getByRole("combobox", { name: "Agent" });
  await expect.poll(() => chosen.inputValue()).toBe("booker");
  await expect.poll(() => form.getByLabel("City").inputValue()).toBe("Rome");
  await form.getByLabel("Nights").fill("3");
  await form.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/\/runs\/run_/u);
  const titles = (await server.runtime.list({ agentId: "booker" })).runs.map(({ title }) => title);
  expect(titles).toEqual([
    expect.stringMatching(/"city": "Rome", "nights": 3, "room": "double"/u),
    expect.stringMatching(/"city": "Rome", "nights": 2, "room": "double"/u),
  ]);
});

test("a message is edited on the page where the run began, and a wrong limit is refused in the form", async () => {
  const runId = await submitRun(server, "checker", "Check the doors");
  await ended(server, runId);
  const page = await open(`/again?run=${runId}`);
  await page.getByLabel("Message").fill("Check the windows");
  await page.getByLabel("Limit of this variant in dollars").fill("-1");
  await page.getByRole("button", { name: "Start variant B" }).click();
  await page.getByText("The limit must be a number above 0.").waitFor();
  await page.getByLabel("Limit of this variant in dollars").fill("0.10");
  await page.getByRole("button", { name: "Start variant B" }).click();
  const b = page.getByRole("region", { name: "B, Message" });
  await b.getByText("Check the windows").waitFor();
  await b.getByText("Close them.").waitFor();
  await page.getByText("of $0.10 for all").waitFor();
  const titles = (await server.runtime.list({ agentId: "checker" })).runs.map(({ title }) => title);
  expect(titles).toContain("Check the windows");
});

test("a variant on the page that stopped at its limit says why, and counts neither as the cheapest nor as another answer", async () => {
  const runId = await submitRun(server, "checker", "Check the doors");
  await ended(server, runId);
  const page = await open(`/again?run=${runId}`);
  await page.getByLabel("Instructions").fill("Be brief.");
  await page.getByLabel("Limit of this variant in dollars").fill("0.001");
  await page.getByRole("button", { name: "Start variant B" }).click();
  const b = page.getByRole("region", { name: "B, Instructions" });
  await b.getByText(/The next call needed at least/u).waitFor();
  const facts = page.locator(".facts > div");
  for (const name of ["Cheapest variant", "Answers"])
    await facts.filter({ hasText: name }).getByText("None yet").waitFor();
  // Each part of the column has a row of the grid, so that none covers another one.
  const [answer, footer] = await Promise.all(
    [".variant-answer", "footer"].map((part) => b.locator(part).boundingBox()),
  );
  expect((answer?.y ?? 0) + (answer?.height ?? 0)).toBeLessThanOrEqual(Math.ceil(footer?.y ?? 0));
});

test("changed instructions on the page are saved to the agent's file after a diff, and not over a newer file", async () => {
  const page = await open("/runs");
  await page.keyboard.press("n");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("sorter");
  await page.getByLabel("Task").fill("Sort these");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Sorted.").first().waitFor();
  // The options of the agent, which name its own instructions, arrive after the recorded call.
  const recorded = page.waitForResponse(/\/requests\/\d+$/u);
  const late = Promise.withResolvers<void>();
  await page.route(/\/options$/u, async (route) => {
    await late.promise;
    await route.continue();
  });
  await page.getByRole("link", { name: "Run again" }).click();
  await (await recorded).finished();
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  const instructions = page.getByLabel("Instructions");
  expect(await instructions.count()).toBe(0);
  late.resolve();
  await instructions.waitFor();
  expect(await instructions.inputValue()).toBe("Sort by date.\nBe brief.");
  await instructions.fill("Sort by size.\nBe brief.");
  await page.getByRole("button", { name: "Start variant B" }).click();
  await page.getByRole("button", { name: "Save B's instructions to the agent" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Sort by size.").waitFor();
  await dialog.getByText("+1 −1").waitFor();
  writeFileSync(file(), "---\ndescription: Sorts.\n---\n\nSort by colour.\nBe brief.\n");
  shared.expect({ says: /status of 409/u, path: /instructions$/u });
  await dialog.getByRole("button", { name: "Save to the file" }).click();
  await dialog.getByText("has changed since you read it").waitFor();
  await dialog.getByText("Sort by colour.").waitFor();
  await dialog.getByRole("button", { name: "Save to the file" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(readFileSync(file(), "utf8")).toBe("---\ndescription: Sorts.\n---\n\nSort by size.\nBe brief.\n");
});

/** Returns the markup from other people in the dialog, and the characters that hide or reverse a text. */
async function unsafeIn(page: Page): Promise<readonly string[]> {
  const dialog = page.getByRole("dialog");
  const text = (await dialog.textContent()) ?? "";
  const elements = await dialog.locator("img, script").count();
  const hidden = ["\u202E", "\u001B"].filter((character) => text.includes(character));
  return elements === 0 ? hidden : [...hidden, "an element"];
}

// In `npm test` `hostile.test.ts` visits the views of runs.
test.runIf(isFull)(
  "hostile texts stay text in the page's form of a new run and in the difference of a prompt",
  async () => {
    writeFileSync(file(), "---\ndescription: Sorts.\n---\n\nSort by date.\nBe brief.\n");
    const page = await open("/runs");
    await page.keyboard.press("n");
    await page.getByRole("combobox", { name: "Agent" }).selectOption("villain");
    await page.getByText("Change something for this run").click();
    await page.getByLabel("Instructions").waitFor();
    const name = "a\u202Egnp.<img src=x onerror=alert(1)>.txt";
    await page
      .getByLabel("Files, optional")
      .setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from("x") });
    await page.getByRole("button", { name: /^Remove a/u }).waitFor();
    expect(await unsafeIn(page)).toEqual([]);
    await page.keyboard.press("Escape");
    const earlier = (await server.runtime.list({ agentId: "sorter" })).runs.at(-1);
    const sorted = earlier?.runId ?? (await submitRun(server, "sorter", "Sort the inbox"));
    await ended(server, sorted);
    await open(`/again?run=${sorted}`);
    await page.getByLabel("Instructions").fill("<img src=x onerror=alert(1)> \u202Eevil \u001B[31m");
    await page.getByRole("button", { name: "Start variant B" }).click();
    await page.getByRole("button", { name: "Save B's instructions to the agent" }).click();
    await page.getByRole("dialog").getByText("onerror=alert(1)").waitFor();
    expect(await unsafeIn(page)).toEqual([]);
    await page.keyboard.press("Escape");
  },
);

test.runIf(isFull)("hostile texts stay text in the columns and the forms of the page", async () => {
  const runId = await submitRun(server, "villain", '<b onclick="alert(1)">bold</b>');
  await ended(server, runId);
  const page = await open(`/again?run=${runId}`);
  await page.getByLabel("Turn to start from").selectOption({ label: "Turn 2" });
  await page.getByLabel("Tool result to edit").selectOption({ label: "look" });
  await page.getByLabel("Edited result").fill("<script>alert(1)</script> \u202Eevil \u001B[31m");
  await page.getByRole("button", { name: "Start variant B" }).click();
  const b = page.getByRole("region", { name: "B, A tool's result" });
  await b.getByText("<script>alert(1)</script>").waitFor();
  await page.getByRole("region", { name: "A, as recorded" }).getByText('onerror="alert(1)"').waitFor();
  await page.getByText("The run shows the rest.").first().waitFor();
  expect(await page.locator("main img, main script, main b[onclick]").count()).toBe(0);
  const shown = (await page.locator("main").textContent()) ?? "";
  expect(["\u202E", "\u001B"].filter((hidden) => shown.includes(hidden))).toEqual([]);
  const width = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  expect(width).toBeLessThanOrEqual(0);
});

test("a workflow is started by its form on the page, shows attempts and its timer, and takes a signal, an update and a promise", async () => {
  const page = await open("/runs");
  await page.keyboard.press("n");
  await page.getByRole("combobox", { name: "Agent" }).selectOption("order");
  await page.getByRole("textbox", { name: "Order" }).fill("sold out");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("2 attempts: the bank is closed").waitFor();
  await page.getByRole("heading", { name: 'order { "orderId": "sold out" }' }).waitFor();
  await page.getByText("Wakes in 23:59").waitFor();
  await page.getByText('{"done":1}').waitFor();
  const form = page.getByRole("dialog");
  const show = async (what: string, name: string): Promise<void> => {
    await page.getByRole("listitem").filter({ hasText: what }).getByRole("button", { name }).click();
    await form.waitFor();
  };
  const send = async (
    name: string,
    field: string,
    wrong: string,
    says: string,
    value: string,
  ): Promise<void> => {
    await form.getByLabel(field).fill(wrong);
    await form.getByRole("button", { name }).click();
    await form.getByText(says).waitFor();
    await form.getByLabel(field).fill(value);
    await form.getByRole("button", { name }).click();
    await form.waitFor({ state: "detached" });
  };
  expect(await axeIssues(page, [new URL(page.url()).pathname])).toEqual([]);
  // A signal for which it does not wait yet is offered with its form too.
  await show("Accepts the signal packed", "Send signal");
  await form.getByLabel("onerror=").waitFor();
  expect(await unsafeIn(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await show("Waits for the signal paid", "Send signal");
  await form.getByLabel("Method optional").selectOption("card");
  await send("Send signal", "Cents", "0", "Enter at least 1.", "900");
  await show("Waits for the update move", "Send update");
  await page.route("**/update", (route) => route.fulfill({ status: 202, json: { id: "1", run: {} } }), {
    times: 1,
  });
  await form.getByLabel("Value").fill("Side St 2");
  await form.getByRole("button", { name: "Send update" }).click();
  await form.getByText("has not replied within 30 seconds").waitFor();
  await form.getByRole("button", { name: "Close" }).click();
  await show("Waits for the update move", "Send update");
  await send("Send update", "Value", "M", "Enter at least 2 characters.", "Main St 1");
  await show("Waits for a promise", "Resolve");
  await send("Resolve", "Value, as JSON", "{wrong", "The value is not JSON", '"ACME"');
  await page.getByText("From here on the run undoes its work: refund").waitFor();
  await page.getByText("The run has undone its work, so it cannot continue.").waitFor();
  expect(await page.getByRole("button", { name: "Continue from the last step" }).count()).toBe(0);
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
  await page.setViewportSize({ width: 1440, height: 900 });
});

test("the page shows the state of an object by key, from its card and from a call, and hostile texts stay text", async () => {
  const key = shortHostile.slice(0, 120);
  const ofKey = `/objects?${new URLSearchParams({ name: "cart", key }).toString()}`;
  const calls = Array.from({ length: 49 }, (_, at) => server.runtime.object(cart, `z${at}`).add("a"));
  await Promise.all([...calls, server.runtime.object(cart, "long").add(hostile.slice(0, 60_000))]);
  const call = await server.runtime.object(cart, key).send.add(shortHostile);
  await call.result();
  const page = await open("/agents");
  const found: (readonly [path: string, problems: readonly string[]])[] = [];
  const check = async (what: string): Promise<void> => {
    found.push([what, await page.evaluate<readonly string[]>(unsafe)]);
  };
  const card = page.getByRole("region", { name: "cart" });
  await card.getByText("add, clear, hold").waitFor();
  await card.getByRole("link", { name: "State by key" }).click();
  const rows = page.locator(".table.states tbody tr");
  await rows.nth(49).waitFor();
  await check("keys");
  await page.getByRole("link", { name: "Next keys" }).click();
  await page.getByRole("link", { name: "First keys" }).waitFor();
  await expect.poll(() => rows.count()).toBe(1);
  await open(`/runs/${call.runId}`);
  await page.getByTitle("State of the key").waitFor();
  await page.getByRole("heading", { name: "cart.add" }).waitFor();
  // A call of an object cannot be forked or made again.
  expect(await page.getByRole("button", { name: "Fork" }).count()).toBe(0);
  expect(await page.getByText("Run again").count()).toBe(0);
  await check("call");
  // The server refuses the fork of a call.
  expect(await page.getByRole("button", { name: "Fork" }).count()).toBe(0);
  await page.getByTitle("State of the key").click();
  const state = page.getByRole("region", { name: "State of the key" });
  await state.getByText('"books": 3').waitFor();
  await check("key");
  expect(await axeIssues(page, [ofKey, "/objects?name=cart"])).toEqual([]);
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of [`/runs/${call.runId}`, "/objects?name=cart", ofKey]) {
    await open(path);
    await page.locator(".key-of, .table.states, .state").first().waitFor();
    await check(`${path} at 390 px`);
    found.push([path, await narrowIssues(page)]);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await server.runtime.object(cart, key).clear();
  await open(ofKey);
  await page.getByText("This key has no state").waitFor();
  await page.getByText("No call waits or runs.").waitFor();
  expect(found.filter(([, problems]) => problems.length > 0)).toEqual([]);
});

test("the page shows the unfinished calls of an object by key, and first the call that has the key", async () => {
  const held = await server.runtime.object(cart, "..").send.hold();
  for await (const event of held.events()) if (event.type === "task_suspend") break;
  const waiting = [
    await server.runtime.object(cart, "..").send.add("one"),
    await server.runtime.object(cart, "..").send.add("two"),
  ];
  const page = await open("/objects?name=cart");
  const row = page.locator(".table.calls-by-key tbody tr").filter({ hasText: ".." });
  await row.getByText("3 calls").waitFor();
  await row.getByTitle(held.runId).waitFor();
  await row.getByRole("link", { name: "..", exact: true }).click();
  const line = page.getByRole("region", { name: "Calls in line" }).getByRole("listitem");
  await expect.poll(() => line.count()).toBe(3);
  const shown = await line
    .getByRole("link")
    .evaluateAll((links) => links.map((link) => (link as unknown as { readonly title: string }).title));
  expect(shown).toEqual([held, ...waiting].map(({ runId }) => runId));
  await line.nth(2).getByText("Waits for its turn").waitFor();
  expect(await axeIssues(page, ["/objects?name=cart", "/objects?name=cart&key=.."])).toEqual([]);
  await page.setViewportSize({ width: 390, height: 844 });
  for (const path of ["/objects?name=cart", "/objects?name=cart&key=.."]) {
    await open(path);
    await page.getByRole("heading", { name: "Calls in line" }).waitFor();
    expect(await narrowIssues(page)).toEqual([]);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await held.signal("go", null);
  await waiting[1]?.result();
  // The key is no part of a path, which cannot contain it.
  await open("/objects?name=cart&key=..");
  await page.getByText('"name": "two"').waitFor();
});

/** The views that show texts of a run and its fork, each with what is visible when it has read them. */
