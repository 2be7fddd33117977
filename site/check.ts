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
