import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { deadLinks, wordlessPages } from "../../site/check.ts";

/** Writes a small site to a temporary folder. */
async function siteWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-site-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [file, html] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), html);
  }
  return folder;
}

const agents = '<h1 id="agents">Agents</h1><a href="/#start">Start</a><a href="#agents">Up</a>';
const rightLinks =
  '<a href="/guides/agents/">1</a><a href="guides/agents/#agents">2</a><a href="https://example.com/x">3</a><img src="/page/chart.svg">';

test("deadLinks() finds nothing in a site whose links, anchors and pictures exist", async () => {
  const site = await siteWith({
    "index.html": `<h1 id="start">Start</h1>${rightLinks}`,
    "guides/agents/index.html": agents,
    "page/chart.svg": "<svg/>",
  });
  expect(await deadLinks(site)).toEqual([]);
});

test("deadLinks() names a planted dead link, anchor, anchor of another page and picture, each with its page", async () => {
  const site = await siteWith({
    "index.html": `<h1 id="start">Start</h1>${rightLinks}<a href="/guides/agent/">a</a><a href="guides/agents/#agent">b</a>`,
    "guides/agents/index.html": `${agents}<a href="#agentz">c</a><img src="../../page/chart.png">`,
    "page/chart.svg": "<svg/>",
  });
  const dead = await deadLinks(site);
  expect(dead.toSorted()).toEqual([
    "/: /guides/agent/",
    "/: guides/agents/#agent",
    "/guides/agents/: #agentz",
    "/guides/agents/: ../../page/chart.png",
  ]);
});

test("wordlessPages() names an API page that has only its name, a mark and its signature", async () => {
  const subpath = "<p>Type Alias: Bill, exported by <code>reeve/testing</code>.</p>";
  const page = (words: string): string =>
    `<p>Search</p><div class="sl-markdown-content">${subpath}${words}<pre>type Bill = number</pre></div>`;
  const site = await siteWith({
    "index.html": "<h1>Start</h1>",
    "api/reeve/bill/index.html": page("<p>The price of\n a <b>call</b>.</p>"),
    "api/reeve/wordless/index.html": page(""),
    "api/reeve/marked/index.html": page("<p><strong><code>Advanced</code></strong></p>"),
  });
  expect(await wordlessPages(site)).toEqual(["/api/reeve/marked/", "/api/reeve/wordless/"]);
});
