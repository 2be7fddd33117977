import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { DocumentFiles } from "../../../src/surfaces/cli/docs/document-files.ts";
import { documentServer } from "../../../src/surfaces/cli/docs/document-server.ts";
import { repository } from "../../gates/run-node.ts";
import { reeve } from "./reeve-process.ts";

const server = documentServer(new DocumentFiles(repository));

function get(path: string, init?: RequestInit): Promise<Response> {
  return server.fetch(new Request(new URL(path, "http://127.0.0.1"), init));
}

/** Values of an attribute in a page, without the marks of HTML. */
function valuesOf(html: string, attribute: string): readonly string[] {
  return [...html.matchAll(new RegExp(` ${attribute}="([^"]*)"`, "gu"))].map(([, value = ""]) =>
    value.replaceAll("&#39;", "'").replaceAll("&quot;", '"').replaceAll("&amp;", "&"),
  );
}

/** Follows every link from the start page. Returns the pages, and the links that lead nowhere. */
async function crawl() {
  const pages = new Map<string, string>();
  const dead: string[] = [];
  const waiting: { readonly from: string; readonly to: URL }[] = [
    { from: "", to: new URL("http://127.0.0.1/docs/README.md") },
  ];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { from, to } = next;
    if (to.hostname !== "127.0.0.1" || to.port !== "") continue;
    if (!pages.has(to.pathname)) {
      const response = await get(to.pathname);
      const isPage = response.headers.get("content-type")?.startsWith("text/html") === true;
      const html = isPage ? await response.text() : "";
      pages.set(to.pathname, html);
      if (response.status !== 200) dead.push(`${from}: ${to.pathname}`);
      const links = [...valuesOf(html, "href"), ...valuesOf(html, "src")];
      waiting.push(...links.map((link) => ({ from: to.pathname, to: new URL(link, to) })));
    }
    const anchor = decodeURIComponent(to.hash.slice(1));
    if (anchor !== "" && !valuesOf(pages.get(to.pathname) ?? "", "id").includes(anchor))
      dead.push(`${from}: ${to.pathname}${to.hash}`);
  }
  return { pages, dead };
}

test("every link, anchor and picture of the pages of reeve docs has an existing target", async () => {
  const { pages, dead } = await crawl();
  expect(dead).toEqual([]);
  expect([...pages.keys()].filter((path) => path.startsWith("/docs/guides/")).length).toBeGreaterThan(30);
  const titles = [...pages.values()].filter((html) => html !== "").map((html) => html.match(/<h1/gu)?.length);
  expect(new Set(titles)).toEqual(new Set([1]));
});

test("reeve docs serves the page from the first line on, and ends with code 0 at an interrupt", async () => {
  const printed = Promise.withResolvers<string>();
  let interrupt = (): void => undefined;
  const ended = reeve(["docs", "workflows", "--no-open"], {
    terminal: {
      out: async (line) => printed.resolve(line),
      onInterrupt: (callback) => {
        interrupt = callback;
        return () => undefined;
      },
    },
  });
  const address = await Promise.race([printed.promise, ended.then(({ talk }) => talk)]);
  expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/docs\/guides\/workflows\.md$/u);
  const response = await fetch(address);
  expect(await response.text()).toContain('<a href="/docs/guides/workflows.md" aria-current="page">');
  expect(response.headers.get("content-security-policy")).toContain("script-src 'self'");
  interrupt();
  expect((await ended).code).toBe(0);
});

test("reeve docs --list prints the pages in the order of the start page, and --print a page as Markdown", async () => {
  const list = await reeve(["docs", "--list"]);
  expect(list.out[0]).toMatch(/^start\/getting-started +Getting started +\S/u);
  expect(list.out.length).toBeGreaterThan(45);
  const page = await reeve(["docs", "guides/agents", "--print"]);
  expect(page.out[0]).toBe("# Agents");
});

test.each([
  [["nothing"], 3, 'page "nothing" not found; reeve docs --list shows the pages'],
  [["agents", "--list"], 2, "--list takes no page; use reeve docs agents --print"],
  [["--port", "70000"], 2, "invalid --port 70000: expected an integer from 0 to 65535"],
  [["--list", "--print"], 2, "option '--list' cannot be used with option '--print'"],
])("reeve docs %j ends with code %i and says what is wrong", async (args, code, talk) => {
  const said = await reeve(["docs", ...args]);
  expect(said.code).toBe(code);
  expect(said.talk).toContain(talk);
});

test("the search of reeve docs finds first the section whose heading has the words, and shows the query as text", async () => {
  const found = await (await get("/search?q=command+line+exit+codes")).text();
  const [first] = valuesOf(found.slice(found.indexOf('class="found"')), "href");
  expect(first).toBe("/docs/reference/command-line.md#exit-codes");
  const none = await (await get("/search?q=%3Cscript%3Ezzz")).text();
  expect(none).toContain("No section contains every word.");
  expect(none).toContain("Search: &lt;script&gt;zzz");
  expect(none).not.toContain("<script");
});

test("the server of reeve docs serves no other file of the package, and refuses other methods", async () => {
  const paths = [
    "/package.json",
    "/docs/%2e%2e/package.json",
    "/docs/..%2f..%2fetc/passwd",
    "/docs/%ZZ",
    "/src/",
  ];
  for (const path of paths) expect([path, (await get(path)).status]).toEqual([path, 404]);
  expect((await get("/docs/README.md", { method: "POST" })).status).toBe(405);
});

/** An empty folder for documents. */
async function emptyRoot(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "reeve-docs-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  return root;
}

test("reeve docs refuses two listed pages with one name, and a package without documents", async () => {
  const root = await emptyRoot();
  expect(() => new DocumentFiles(root)).toThrow("the documents are missing: ");
  await mkdir(join(root, "docs"));
  await writeFile(join(root, "docs/README.md"), "## A\n\n- [B](a/b.md): one\n- [B](c/b.md): other\n");
  expect(() => new DocumentFiles(root).find("b")).toThrow('page "b" is ambiguous; use a/b or c/b');
});

test("reeve docs shows a picture that the package lacks as its text", async () => {
  const root = await emptyRoot();
  await cp(join(repository, "docs/README.md"), join(root, "docs/README.md"));
  const page = await documentServer(new DocumentFiles(root)).fetch(
    new Request("http://127.0.0.1/docs/README.md"),
  );
  expect(await page.text()).toContain('<span class="picture">Picture: The org chart of a run');
});
