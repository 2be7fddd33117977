import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { DocumentFiles } from "../../src/surfaces/cli/docs/document-files.ts";
import { documentServer } from "../../src/surfaces/cli/docs/document-server.ts";
import { listen } from "../../src/surfaces/server/index.ts";
import { isFull } from "../effort.ts";
import { repository, run, runNode } from "../gates/run-node.ts";
import { axeIssuesHere } from "./axe-issues.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  removeBrowser();
});

/** Serves what `fetch` answers until the test ends. */
async function served(handle: (request: Request) => Promise<Response>): Promise<string> {
  const listening = await listen(
    { needsToken: false, fetch: handle, drain: async () => undefined },
    { port: 0 },
  );
  onTestFinished(() => listening.close());
  return listening.url;
}

/** Lists what is wrong with the headings and the width of a page. */
async function layoutIssues(page: Page): Promise<readonly string[]> {
  const { levels, width } = await page.evaluate<{
    readonly levels: readonly number[];
    readonly width: number;
  }>(`({
    levels: [...document.querySelectorAll("main :is(h1, h2, h3, h4, h5, h6)")].map(({ tagName }) => Number(tagName[1])),
    width: document.documentElement.scrollWidth - innerWidth,
  })`);
  const titles = levels.filter((level) => level === 1).length;
  const skipped = levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1);
  return [
    ...(titles === 1 ? [] : [`${titles} titles`]),
    ...(skipped.length === 0 ? [] : [`${skipped.length} headings skip a level`]),
    ...(width > 0 ? [`scrolls sideways by ${width} px`] : []),
  ];
}

/** Reads pages with a width of 390 px. Lists the issues of layout, and of contrast and names in both themes. */
async function issuesOf(origin: string, paths: readonly string[]): Promise<readonly string[]> {
  const page = await browser.newPage({ viewport: { width: 390, height: 844 }, colorScheme: "light" });
  onTestFinished(() => page.close());
  const found: string[] = [];
  for (const path of paths) {
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(`${origin}${path}`);
    const issues = [...(await layoutIssues(page)), ...(await axeIssuesHere(page))];
    found.push(...issues.map((issue) => `${path}: ${issue}`));
  }
  return found;
}

test("the pages of reeve docs fit 390 px, skip no heading, and have no serious issue in axe in both themes", async () => {
  const { fetch: handle } = documentServer(new DocumentFiles(repository));
  const paths = ["docs/README.md", "docs/guides/agents.md", "docs/concepts/glossary.md", "search?q=budget"];
  const origin = await served(handle);
  expect(
    await issuesOf(
      origin,
      [...paths, "docs/nothing"].map((path) => `/${path}`),
    ),
  ).toEqual([]);
});

test("the list of pages in reeve docs is beside the text in a wide window and below it on a phone", async () => {
  const origin = await served(documentServer(new DocumentFiles(repository)).fetch);
  const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  onTestFinished(() => page.close());
  await page.goto(`${origin}/docs/guides/agents.md`);
  const [list, text] = [page.getByRole("navigation", { name: "Pages" }), page.getByRole("main")];
  expect((await list.boundingBox())?.x).toBeLessThan((await text.boundingBox())?.x ?? 0);
  await page.setViewportSize({ width: 390, height: 844 });
  expect((await list.boundingBox())?.y).toBeGreaterThan((await text.boundingBox())?.y ?? 0);
  await page.getByRole("link", { name: "Pages" }).click();
  await list.getByRole("link", { name: "Workflows" }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.getByRole("searchbox").fill("exit codes");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Command line: Exit codes" }).waitFor();
});

// `npm run docs` builds it, which takes a minute, so that only `npm run test:full` does so.
const site = join(repository, "site/dist");

describe.skipIf(!isFull)("the site of npm run docs", () => {
  beforeAll(async () => {
    const { code, stdout, stderr } = await run(
      "npm",
      ["run", "docs", "--", "--check"],
      repository,
      1_200_000,
    );
    if (code !== 0) throw new Error(`npm run docs failed: ${stdout}${stderr}`);
  });

  test("the sources of the site, whose types the build writes, have no error of the compiler", async () => {
    const tsc = join(repository, "node_modules/typescript/bin/tsc");
    const { code, stdout } = await runNode([tsc, "-p", "site"], repository);
    expect(stdout).toBe("");
    expect(code).toBe(0);
  });

  test("the pages of the documentation site fit 390 px, skip no heading, and have no serious issue in axe in both themes", async () => {
    const origin = await served(file);
    const pages = [
      "",
      "guides/agents/",
      "concepts/glossary/",
      "examples/patterns/",
      "api/reeve/",
      "api/reeve/classes/agent/",
      "api/reeve/functions/tool/",
    ];
    expect(
      await issuesOf(
        origin,
        pages.map((path) => `/${path}`),
      ),
    ).toEqual([]);
  });

  test("the search of the documentation site finds a guide and a name of the API without a network", async () => {
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    await page.goto(`${await served(file)}/`);
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("textbox", { name: "Search" }).fill("RetryPolicy");
    const found = page.getByRole("link", { name: "RetryPolicy", exact: true }).first();
    await found.waitFor();
    expect(await found.getAttribute("href")).toContain("/api/reeve/classes/retrypolicy/");
  });
});

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
};

async function file(request: Request): Promise<Response> {
  const path = join(site, decodeURIComponent(new URL(request.url).pathname));
  const found = existsSync(path) && (await stat(path)).isDirectory() ? join(path, "index.html") : path;
  if (!existsSync(found)) return new Response("not found", { status: 404 });
  const type = types[extname(found)] ?? "application/octet-stream";
  return new Response(await readFile(found), { headers: { "content-type": type } });
}
