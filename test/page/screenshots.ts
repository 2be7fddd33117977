// Takes pictures of every view in light, in dark and on a narrow screen: with a company of 13 agents whose worker was killed
// once, with one agent, and with 1,200 and 5,000 agents. The argument is the folder of the pictures. Default: docs/page. With
// --all also at 1024 px and in dark on a narrow screen.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { buildPage } from "../../build/page.ts";
import { repository } from "../gates/run-node.ts";
import { Agent, tool } from "../../src/entries/index.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { releaseTask } from "./company.ts";
import { crowd } from "./crowd.ts";
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

/** Name of a picture, its path, and what must be visible before it is taken. */
type View = readonly [name: string, path: string, ready: string];

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
  await served.submit("triage", "Answer today's support mail");
  const stopped = await served.submit("nightly", "Nightly dependency updates");
  await page.goto(`${served.url}/runs/${stopped}/conversation`);
  await page.getByRole("region", { name: "Stopped at its allowance" }).waitFor();
  const chat = await served.submit("chatter", "Is 0.9 ready to ship?");
  await page.goto(`${served.url}/runs/${chat}`);
  const session = await page.getByRole("link", { name: "Session", exact: true }).getAttribute("href");
  await page.context().close();
  const run = `/runs/${lead}`;
  return [
    ["runs", "/runs", ".c-allowance .purse"],
    ["inbox", "/inbox", ".before"],
    ["find", "/find?text=publish", ".found-line"],
    ["sessions", "/sessions", ".session-line"],
    ["session", session ?? "/sessions", ".thread .caret"],
    ["agents", "/agents", "main h1"],
    ["schedules", "/schedules", "main h1"],
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

async function until(page: Page, runId: string, word: string): Promise<void> {
  await page.goto(`${served.url}/runs/${runId}/conversation`);
  await page.getByText(word, { exact: true }).first().waitFor();
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

/** Waits until the page has read the whole log of a run. Its steps are counted then. */
async function untilRead(page: Page): Promise<void> {
  await page.locator(".tabs a[href$='/timeline'] .count").waitFor({ state: "attached" });
}

/** Takes the pictures of views in all looks at once, because a page mostly waits for the server. */
async function takeAll(views: readonly View[]): Promise<void> {
  await Promise.all(looks.map(([look, options]) => take(views, look, options)));
}

async function take(views: readonly View[], look: string, options: (typeof looks)[number][1]): Promise<void> {
  const { page } = await openPage(browser, `${served.url}/runs`, { ...options, reducedMotion: "reduce" });
  for (const [name, path, ready] of views) {
    await page.goto(served.url + path);
    await page.locator(ready).first().waitFor({ state: "attached" });
    if (path.startsWith("/runs/")) await untilRead(page);
    if (name !== "empty") await page.locator(".badge:not(.vacant)").first().waitFor({ state: "attached" });
    await takePicture(page, `${name}-${look}`);
  }
  await page.context().close();
}
