import { extname, posix } from "node:path";
import { escapeMarkup } from "../../../kernel/index.ts";
import { pagePolicy, secured } from "../../http/response.ts";
import type { DocumentFiles } from "./document-files.ts";
import { startPage } from "./document-files.ts";
import { showDocument, type Heading } from "./document-html.ts";
import { documentStyle } from "./document-style.ts";

const pictures: Readonly<Record<string, string>> = { ".png": "image/png", ".svg": "image/svg+xml" };

/**
 * Serves the documents as pages without scripts: each document under the path of its file, a search in all
 * documents, and a list of them. For any other path the answer is "not found".
 */
export function documentServer(files: DocumentFiles): {
  readonly needsToken: false;
  readonly fetch: (request: Request) => Promise<Response>;
  readonly drain: () => Promise<void>;
} {
  return {
    needsToken: false,
    fetch: async (request) => secured(respond(request, files), pagePolicy([])),
    drain: async () => undefined,
  };
}

function respond({ method, url }: Request, files: DocumentFiles): Response {
  if (method !== "GET" && method !== "HEAD") return new Response("use GET", { status: 405 });
  const { pathname, searchParams } = new URL(url);
  if (pathname === "/") return new Response(null, { status: 302, headers: { location: `/${startPage}` } });
  if (pathname === "/style.css") return answer(documentStyle, "text/css");
  if (pathname === "/search") return found(searchParams.get("q") ?? "", files);
  const path = fileOf(pathname, files);
  if (path === undefined) return missing(pathname, files);
  const type = pictures[extname(path)];
  if (type !== undefined) return new Response(files.bytes(path), { headers: { "content-type": type } });
  return extname(path) === ".md" ? document(path, files) : program(path, files);
}

/** Returns the file that an address names. For a folder this is its README.md. */
function fileOf(pathname: string, files: DocumentFiles): string | undefined {
  const path = readable(pathname).slice(1).replace(/\/$/u, "");
  return [path, `${path}/README.md`].find((each) => files.has(each));
}

function readable(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch (error) {
    if (error instanceof URIError) return pathname;
    throw error;
  }
}

function document(path: string, files: DocumentFiles): Response {
  const hasPicture = (href: string): boolean => files.has(posix.join(posix.dirname(path), href));
  const { title, html, headings } = showDocument(files.text(path), hasPicture);
  return page({ title, path, main: html, headings, files });
}

function program(path: string, files: DocumentFiles): Response {
  const code = `<pre tabindex="0"><code>${escapeMarkup(files.text(path))}</code></pre>`;
  return page({ title: path, path, main: `<h1>${escapeMarkup(path)}</h1>${code}`, headings: [], files });
}

function found(query: string, files: DocumentFiles): Response {
  const matches = files.search(query);
  const entries = matches.map(
    ({ address, page: name, heading, excerpt }) =>
      `<li><a href="${escapeMarkup(address)}">${escapeMarkup(name === heading ? name : `${name}: ${heading}`)}</a><p>${escapeMarkup(excerpt)}</p></li>`,
  );
  const words = escapeMarkup(query);
  const none = `<p>No section contains every word. Use fewer words, or <a href="/${startPage}">the list of pages</a>.</p>`;
  const main = `<h1>Search: ${words}</h1>${matches.length === 0 ? none : `<ol class="found">${entries.join("\n")}</ol>`}`;
  return page({ title: `Search: ${query}`, path: "", main, headings: [], files, query });
}

function missing(pathname: string, files: DocumentFiles): Response {
  const main = `<h1>Page not found</h1><p><code>${escapeMarkup(pathname)}</code> is no page of these documents. See <a href="/${startPage}">the list of pages</a>.</p>`;
  return page({ title: "Page not found", path: "", main, headings: [], files }, 404);
}

interface Page {
  readonly title: string;
  /** Path of the file. Empty if the page shows no file. */
  readonly path: string;
  readonly main: string;
  readonly headings: readonly Heading[];
  readonly files: DocumentFiles;
  readonly query?: string;
}

/**
 * Builds a page. The list of pages stands after the text in the HTML, so that a phone shows the text first. In a
 * wide window the list is shown at the left.
 */
function page({ title, path, main, headings, files, query = "" }: Page, status = 200): Response {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === "Reeve" ? "" : `${escapeMarkup(title)} · `}Reeve</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
<header>
<a class="brand" href="/${startPage}">Reeve</a>
<form role="search" action="/search"><input type="search" name="q" value="${escapeMarkup(query)}" placeholder="Search" aria-label="Search the documents" required></form>
<a class="to-pages" href="#pages">Pages</a>
</header>
<div class="columns">
<main id="text" tabindex="-1">${sectionsOf(headings)}${main}</main>
<nav id="pages" aria-label="Pages">${doorsOf(path, files)}</nav>
</div>
</body>
</html>
`;
  return answer(html, "text/html", status);
}

/** The sections of a long page, folded. */
function sectionsOf(headings: readonly Heading[]): string {
  const sections = headings.filter(({ level }) => level === 2);
  if (sections.length < 4) return "";
  const links = sections.map(
    ({ anchor, text }) => `<li><a href="#${escapeMarkup(anchor)}">${escapeMarkup(text)}</a></li>`,
  );
  return `<details class="sections"><summary>On this page</summary><ul>${links.join("")}</ul></details>`;
}

function doorsOf(path: string, files: DocumentFiles): string {
  return files.doors
    .map(({ title, groups }) => {
      const lists = groups.map((group) => {
        const heading = group.title === undefined ? "" : `<h3>${escapeMarkup(group.title)}</h3>`;
        const links = group.pages.map((each) => {
          const address = `docs/${each.path}`;
          const here = address === path ? ' aria-current="page"' : "";
          return `<li><a href="/${escapeMarkup(address)}"${here}>${escapeMarkup(each.title)}</a></li>`;
        });
        return `${heading}<ul>${links.join("")}</ul>`;
      });
      return `<section><h2>${escapeMarkup(title)}</h2>${lists.join("")}</section>`;
    })
    .join("\n");
}

function answer(text: string, type: string, status = 200): Response {
  return new Response(text, { status, headers: { "content-type": `${type}; charset=utf-8` } });
}
