import { statusWords } from "../view/status-words.ts";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { packageRoot } from "../../assembly/package-root.ts";
import { Fault, type RunSummary, escapeMarkup } from "../../kernel/index.ts";
import { pagePolicy, styleHashes } from "../http/response.ts";

/**
 * Folder of Reeve's built page, for the option `page` of `createServer()`. In a clone of the repository it exists
 * after `npm run build:page`.
 *
 * @example
 * ```ts
 * import { openRuntime } from "reeve";
 * import { createServer, listen, pageFolder } from "reeve/server";
 *
 * const runtime = await openRuntime();
 * const listening = await listen(createServer(runtime, { tokens: null, page: pageFolder }));
 * console.log(listening.url);
 * ```
 */
export const pageFolder = join(packageRoot, "dist/page");

/** The HTML element that the script of the page fills. */
const emptyPage = '<div id="page"></div>';

/**
 * Adds the header of a run to the page: its title, id and status as elements, which the browser paints before it
 * has loaded the script, and its summary as JSON, with which the script starts.
 */
function withRunHead(html: string, run: RunSummary): string {
  const { runId, title, agentId, status } = run;
  // The elements and classes are those that the script draws, so that nothing moves when it does.
  const head = `<div id="page"><header class="top"><a class="brand" href="/runs">reeve</a></header>
<main class="run" id="main"><header class="run-head">
<nav class="crumbs"><a href="/runs">Runs</a><span>/</span><code>${escapeMarkup(runId)}</code></nav>
<div class="run-title"><h1 class="cut">${escapeMarkup(title ?? agentId)}</h1></div>
<div class="facts-line"><span class="status">${statusWords[status]}</span></div>
</header></main></div>
<script type="application/json" id="run-summary">${scriptJson(run)}</script>`;
  return html.replace(emptyPage, () => head);
}

/** A script that loads the script of the page after the first paint. A page may also be built without it. */
const lateScript = "/after-paint.js";

const pageScript = /<script type="module"[^>]* src="(?<path>[^"]+)"><\/script>/u;

/** Returns the page so that its script is loaded only after the browser has painted. */
function withLateScript(html: string): string {
  return html.replace(
    pageScript,
    (_, path: string) => `<script type="module" src="${lateScript}" data-page="${path}"></script>`,
  );
}

/** Formats JSON for an inline script, so that it can neither end the element nor start a comment. */
function scriptJson(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", String.raw`\u003c`);
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
};

interface PageFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
}

/**
 * The files of a page. They are read once. Only a path that names one of them is served, so that no request can
 * reach a file outside of the folder.
 */
export class PageFiles {
  /** The Content-Security-Policy of the page. It allows the styles in `index.html` by their hashes. */
  readonly policy: string;
  /**
   * The CSS rules of `index.html` that load its fonts, for pages outside of its build. Empty if it has no such
   * rules.
   */
  readonly fonts: string;
  readonly #files = new Map<string, PageFile>();
  /** The text of `index.html` for the view of a run. */
  readonly #runHtml: string;

  constructor(folder: string) {
    if (!existsSync(join(folder, "index.html")))
      throw new Fault(
        "invalid_argument",
        `invalid page ${folder}: the folder has no index.html; use pageFolder of reeve/server, and in a clone run npm run build:page first`,
      );
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = join(entry.parentPath, entry.name);
      const path = `/${file.slice(join(folder, "/").length).split("\\").join("/")}`;
      const bytes = new Uint8Array(readFileSync(file));
      this.#files.set(path, { bytes, type: types[extname(file)] ?? "application/octet-stream" });
    }
    const html = new TextDecoder().decode(this.#files.get("/index.html")?.bytes);
    this.policy = pagePolicy(styleHashes(html));
    this.fonts = [...html.matchAll(/@font-face\s*\{[^}<]*\}/gu)].join("\n");
    this.#runHtml = this.#files.has(lateScript) ? withLateScript(html) : html;
  }

  /** Whether a path belongs to a view of the page, and not to a file. */
  isView(path: string): boolean {
    return extname(path) === "" && !path.startsWith("/api/") && !this.#files.has(path);
  }

  /**
   * Returns the response to a path. Paths without an extension are views of the page: the response is `index.html`,
   * with the header of the run that the view shows.
   */
  find(path: string, run?: RunSummary): Response | undefined {
    const index = this.#files.get("/index.html");
    const file = this.#files.get(path) ?? (this.isView(path) ? index : undefined);
    if (file === undefined) return undefined;
    const headers = { "content-type": file.type, "cache-control": cacheOf(path) };
    if (file !== index || run === undefined) return new Response(file.bytes, { headers });
    return new Response(withRunHead(this.#runHtml, run), {
      headers: { ...headers, "cache-control": "no-store" },
    });
  }
}

/**
 * Returns the cache header for a file. Names of assets contain a hash of their content, so they can be cached
 * forever.
 */
function cacheOf(path: string): string {
  return path.startsWith("/assets/") ? "public, max-age=31536000, immutable" : "no-cache";
}
