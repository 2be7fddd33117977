import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";

/** What the check of a built site needs to know about a page. */
interface BuiltPage {
  readonly anchors: ReadonlySet<string>;
  readonly targets: readonly string[];
}

/** Lists the links, anchors and pictures of a built site that lead nowhere, each with its page. */
export async function deadLinks(site: string): Promise<readonly string[]> {
  const pages = new Map<string, BuiltPage>();
  const files = new Set<string>();
  for await (const file of glob("**/*", { cwd: site })) {
    files.add(`/${file}`);
    if (!file.endsWith(".html")) continue;
    pages.set(`/${file.replace(/index\.html$/u, "")}`, readPage(await readFile(join(site, file), "utf8")));
  }
  const dead: string[] = [];
  for (const [page, { targets }] of pages)
    for (const target of targets) {
      const { pathname, hash } = new URL(target, `http://site${page}`);
      const there = pages.get(decodeURIComponent(pathname));
      const anchor = decodeURIComponent(hash.slice(1));
      const isFile = files.has(decodeURIComponent(pathname));
      const isRight =
        there === undefined ? isFile && anchor === "" : anchor === "" || there.anchors.has(anchor);
      if (!isRight) dead.push(`${page}: ${target}`);
    }
  return [...new Set(dead)];
}

/** Lists the API pages of a built site that say nothing about their name in words: no paragraph besides the mark and the subpath. */
export async function wordlessPages(site: string): Promise<readonly string[]> {
  const wordless: string[] = [];
  for await (const file of glob("api/*/**/*.html", { cwd: site })) {
    const [, content = ""] = (await readFile(join(site, file), "utf8")).split('class="sl-markdown-content"');
    const paragraphs = [...content.matchAll(/<p>(.*?)<\/p>/gsu)].map(([, html = ""]) =>
      html.replaceAll(/<[^>]*>/gu, "").trim(),
    );
    const isWordless = paragraphs.every(
      (text) => text === "" || text === "Advanced" || text.includes(", exported by "),
    );
    if (isWordless) wordless.push(`/${file.replace(/index\.html$/u, "")}`);
  }
  return wordless.toSorted();
}

function readPage(html: string): BuiltPage {
  const values = (attribute: string): readonly string[] =>
    [...html.matchAll(new RegExp(`\\s${attribute}="([^"]*)"`, "gu"))].map(([, value = ""]) =>
      value.replaceAll("&amp;", "&").replaceAll("&#38;", "&"),
    );
  const targets = [...values("href"), ...values("src")];
  return {
    anchors: new Set([...values("id"), ...values("name"), "_top"]),
    targets: [...new Set(targets)].filter(
      (target) => target !== "" && !/^[a-z][a-z+.-]*:|^\/\//u.test(target),
    ),
  };
}
