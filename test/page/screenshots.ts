// Takes pictures of every view in light, in dark and on a narrow screen: with a company of 13 agents whose worker was killed
// once, with one agent, with a workflow, an object and programs behind the gateway, and with 1,200 and 5,000 agents. The argument is the folder of the pictures. Default: docs/page. With
// --all also at 1024 px and in dark on a narrow screen.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { buildPage } from "../../build/page.ts";
import { repository } from "../gates/run-node.ts";
import { Agent, tool } from "../../src/entries/index.ts";
import { object, signal, workflow } from "../../src/entries/workflow.ts";
import { createServer, listen, pageFolder, storedTokens } from "../../src/surfaces/server/index.ts";
import { z } from "zod";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { releaseTask } from "./company.ts";
import { crowd } from "./crowd.ts";
import { openProgram } from "./gateway-program.ts";
import { openPage, PageServer } from "./page-server.ts";
import { ServedPage } from "./served.ts";

const isComplete = process.argv.includes("--all");
const folder =
  process.argv.slice(2).find((argument) => argument !== "--all") ?? join(repository, "docs/page");
const documented = [
  ["light", { colorScheme: "light", viewport: { width: 1440, height: 900 } }],
  ["dark", { colorScheme: "dark", viewport: { width: 1440, height: 900 } }],
  ["light-390", { colorScheme: "light", viewport: { width: 390, height: 844 } }],
] as const;
const others = [
  ["light-1024", { colorScheme: "light", viewport: { width: 1024, height: 768 } }],
  ["dark-1024", { colorScheme: "dark", viewport: { width: 1024, height: 768 } }],
  ["dark-390", { colorScheme: "dark", viewport: { width: 390, height: 844 } }],
] as const;
const looks = isComplete ? [...documented, ...others] : documented;

const convert = tool({
  name: "convert",
  description: "Converts a module",
  inputSchema: { type: "object", properties: { module: { type: "string" } }, required: ["module"] },
  execute: async ({ module }) => `converted ${module}`,
});

const paid = signal("paid", z.object({ cents: z.int().min(1), method: z.enum(["card", "cash"]) }));
const delivery = workflow(
  "delivery",
  { input: z.object({ order: z.string() }), signals: [paid] },
  async (ctx, { order }) => {
    const reserve = ({ attempt }: { readonly attempt: number }): Promise<string> =>
      attempt < 3 ? Promise.reject(new Error("the warehouse is busy")) : Promise.resolve("shelf 14");
    await ctx.step("reserve", reserve, { retry: { baseDelayMs: 1 } });
    await ctx.compensate("release the shelf", () => undefined);
    await ctx.step("print label", () => `label of ${order}`);
    await ctx.compensate("void the label", () => undefined);
    const payment = await ctx.waitForSignal(paid, { timeoutMs: 86_400_000 });
    return payment?.method ?? "unpaid";
  },
);
const cart = object("cart", {
  add: async (ctx, item: string) => {
    ctx.setState({ items: [item], total: "$84.00" });
    return null;
  },
});

/** Name of a picture, its path, what must be visible before it is taken, and what is done before it. */
type View = readonly [name: string, path: string, ready: string, act?: (page: Page) => Promise<void>];

type Look = (typeof looks)[number][0];

/** Numbers of agents, each with its pictures: view, path, what must be visible, and looks. */
const crowds: readonly (readonly [agents: number, pictures: readonly CrowdPicture[]])[] = [
  [
    1_200,
    [
      ["seats", "chart", ".team-box", ["light", "dark", "light-390"]],
      ["rows", "chart?zoom=rows", ".org-rows tr", ["light"]],
      ["timeline", "timeline", ".agent-lane", ["light"]],
      ["conversation", "conversation", ".agents a", ["light"]],
    ],
  ],
  [5_000, [["seats", "chart", ".team-box", ["light", "dark"]]]],
];
type CrowdPicture = readonly [name: string, path: string, ready: string, looks: readonly Look[]];

let taken = 0;
const served = new ServedPage();
mkdirSync(folder, { recursive: true });
await buildPage();
await served.start();
const browser = await startBrowser();
try {
  await takeAll([["empty", "/runs", ".empty h1"]]);
  await takeAll(await prepare());
  await takeShop();
  for (const [agents, pictures] of crowds) await takeCrowd(agents, pictures);
} finally {
  await browser.close();
  removeBrowser();
  await served.remove();
}

process.stdout.write(`${taken} pictures are in ${folder}\n`);

async function takePicture(page: Page, name: string): Promise<void> {
  await page
    .getByText(/^(?:Reading|Counting)/u)
    .first()
    .waitFor({ state: "hidden" });
  // A picture that is taken while the page scrolls shows an empty stripe.
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  await page.screenshot({ path: join(folder, `${name}.png`) });
  taken++;
}

/** Makes what the pictures show. */
async function prepare(): Promise<readonly View[]> {
  const lead = await served.submit("lead", releaseTask);
  const { page } = await openPage(browser, `${served.url}/runs/${lead}/chart`);
  await page.getByRole("treeitem", { name: /^release.*waits for you: publish/u }).waitFor();
  await served.kill();
  await page.getByText(/The server stopped answering/u).waitFor();
  await takePicture(page, "offline-light");
  await served.start();
  await page.getByText("1 crash survived").waitFor();
  const writer = await served.submit("writer", "Summarise the incident of 14 March for the customer");
  await until(page, writer, "Done");
  await page.keyboard.press("f");
  await page.getByLabel(/Message that follows/u).fill("Shorter, please.");
  await page.getByRole("button", { name: "Start the fork" }).click();
  await page.getByRole("link", { name: "Compare" }).waitFor();
  const fork = new URL(page.url()).pathname.split("/")[2] ?? "";
  await served.submit("publisher", "Publish the patch");
  await schedule("weekly-report", "writer", "Report on the orders of the week", "0 9 * * 1");
  await schedule("dependency-updates", "nightly", "Update the dependencies", "0 2 * * *");
  for (const name of ["weekly-report", "dependency-updates"]) await send(`/api/schedules/${name}/run`, {});
  await served.submit("triage", "Answer today's support mail");
  const stopped = await served.submit("nightly", "Nightly dependency updates");
  await page.goto(`${served.url}/runs/${stopped}/conversation`);
  await page.getByRole("region", { name: "Stopped at its budget" }).waitFor();
  const chat = await served.submit("chatter", "Is 0.9 ready to ship?");
  await page.goto(`${served.url}/runs/${chat}`);
  const session = await page.getByRole("link", { name: "Session", exact: true }).getAttribute("href");
  await page.context().close();
  const run = `/runs/${lead}`;
  return [
    ["runs", "/runs", ".c-budget .meter"],
    ["inbox", "/inbox", ".before"],
    ["find", "/find?text=publish", ".found-line"],
    ["sessions", "/sessions", ".session-line"],
    ["session", session ?? "/sessions", ".thread .caret"],
    ["agents", "/agents", "main h1"],
    ["schedules", "/schedules", ".outcomes"],
    ["new-run", "/runs", ".table.runs", openNewRun],
    ["bulk", "/runs", ".table.runs", chooseToDelete],
    ["usage", "/usage", ".table.usage"],
    ["compare", `/compare?a=${writer}&b=${fork}`, ".facts"],
    ["again", `/again?run=${writer}&v=${fork}`, ".variant-answer"],
    ["stopped", `/runs/${stopped}`, ".fault"],
    ["chart", `${run}/chart`, ".card"],
    ["chart-1", `/runs/${writer}/chart`, ".card"],
    ["timeline-1", `/runs/${writer}/timeline`, ".agent-lane"],
    ["rows", `${run}/chart?zoom=rows`, ".org-rows tr"],
    ["seats", `${run}/chart?zoom=seats`, ".team-box"],
    ["timeline", `${run}/timeline`, ".free"],
    ["conversation", `${run}/conversation`, ".message"],
    ["saw", `${run}/saw`, ".context-parts"],
    ["money", `${run}/money`, "tr.total"],
    ["events", `${run}/events`, ".event-row"],
    ["messages", `${run}/messages`, ".message-list li"],
  ];
}

async function send(path: string, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const { status } = await fetch(served.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (status >= 300) throw new Error(`POST ${path} answered ${status}`);
}

async function schedule(name: string, agent: string, input: string, cron: string): Promise<void> {
  await send("/api/schedules", { name, agent, input, cron, timeZone: "UTC" });
}

async function openNewRun(page: Page): Promise<void> {
  await page.keyboard.press("n");
  await page.getByRole("dialog").getByRole("button", { name: "Start" }).waitFor();
}

async function chooseToDelete(page: Page): Promise<void> {
  const rows = page.getByRole("row").getByRole("checkbox");
  for (let at = 1; at < 5; at++) await rows.nth(at).check();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: /^Delete \d+ runs?$/u }).waitFor();
}

async function until(page: Page, runId: string, word: string): Promise<void> {
  await page.goto(`${served.url}/runs/${runId}/conversation`);
  await page.getByText(word, { exact: true }).first().waitFor();
}

/** Takes the pictures of a workflow, an object, programs behind the gateway, and the page that asks for a token. */
async function takeShop(): Promise<void> {
  const server = new PageServer(() => [delivery, cart]);
  await server.start();
  const guarded = createServer(server.runtime, {
    tokens: storedTokens(server.store.records),
    page: pageFolder,
  });
  const listening = await listen(guarded, { port: 0 });
  const codex = await openProgram(server, "codex", { onBudget: "end" });
  // Opened last, because the server shows the figures of one gateway.
  const claude = await openProgram(server, "claude");
  for (const { ask } of [codex, claude]) await ask();
  // The second request of codex is refused, and that of claude waits for the answer of a person until its gateway closes.
  await codex.ask();
  const held = Promise.allSettled([claude.ask()]);
  try {
    await server.runtime.object(cart, "ada").add("The Art of Electronics");
    const order = await server.runtime.submit(delivery, { order: "8841" });
    const views: readonly View[] = [
      ["gateway", `${server.url}/gateway`, ".figure-cards tbody tr"],
      ["requests", `${server.url}/runs/${claude.run.runId}`, ".requests tbody tr"],
      ["steps", `${server.url}/runs/${order.runId}`, ".step-row"],
      ["objects", `${server.url}/objects?name=cart&key=ada`, ".state"],
      ["sign-in", `${listening.url}/schedules`, "form"],
    ];
    for (const [look, options] of looks) {
      const { page } = await openPage(browser, server.url, { ...options, reducedMotion: "reduce" });
      for (const [name, address, ready] of views) {
        await page.goto(address);
        await page.locator(ready).first().waitFor({ state: "attached" });
        // The held request waits for a person.
        if (name !== "sign-in")
          await page.locator(".badge:not(.vacant)").first().waitFor({ state: "attached" });
        await takePicture(page, `${name}-${look}`);
      }
      await page.context().close();
    }
  } finally {
    for (const { close } of [claude, codex]) await close();
    await held;
    await listening.close();
    await server.remove();
  }
}

/** Takes the pictures of a run with so many agents, whose calls are in flight. */
async function takeCrowd(agents: number, pictures: readonly CrowdPicture[]): Promise<void> {
  const company = crowd({
    agents,
    worker: (name, model) => new Agent({ name, model, tools: [convert] }),
    turn: oneTurn(agents),
  });
  const server = new PageServer(() => [company], { concurrency: 2 * agents });
  await server.start();
  try {
    const run = await server.runtime.submit(
      company,
      `Port ${agents.toLocaleString("en-US")} packages to the new module format`,
    );
    let hired = 1;
    for await (const event of run.events({ types: ["spawn_start"] }))
      if (event.type === "spawn_start" && ++hired === agents) break;
    for (const [look, options] of looks) {
      const { page } = await openPage(browser, `${server.url}/runs`, { ...options, reducedMotion: "reduce" });
      for (const [name, path, ready, wanted] of pictures) {
        if (!wanted.includes(look)) continue;
        await page.goto(`${server.url}/runs/${run.runId}/${path}`);
        await page.locator(ready).first().waitFor({ state: "attached" });
        await untilRead(page);
        await takePicture(page, `${name}-${agents}-${look}`);
      }
      await page.context().close();
    }
  } finally {
    await server.remove();
  }
}

/** Lets as many turns pass as there are agents. The turns after them are in flight. */
function oneTurn(agents: number): () => Promise<void> {
  let turns = 0;
  return () => (turns++ < agents ? Promise.resolve() : new Promise(() => undefined));
}

/** Waits until the page has read the whole log of a run. Only then the page shows the number of its steps. */
async function untilRead(page: Page): Promise<void> {
  await page.locator(".tabs a[href$='/timeline'] .count").waitFor({ state: "attached" });
}

/** Takes the pictures of all views in all themes at once, because a page mostly waits for the server. */
async function takeAll(views: readonly View[]): Promise<void> {
  await Promise.all(looks.map(([look, options]) => take(views, look, options)));
}

async function take(views: readonly View[], look: string, options: (typeof looks)[number][1]): Promise<void> {
  const { page } = await openPage(browser, `${served.url}/runs`, { ...options, reducedMotion: "reduce" });
  for (const [name, path, ready, act] of views) {
    await page.goto(served.url + path);
    await page.locator(ready).first().waitFor({ state: "attached" });
    if (path.startsWith("/runs/")) await untilRead(page);
    if (name !== "empty") await page.locator(".badge:not(.vacant)").first().waitFor({ state: "attached" });
    await act?.(page);
    await takePicture(page, `${name}-${look}`);
  }
  await page.context().close();
}
