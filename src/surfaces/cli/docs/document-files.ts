import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../../kernel/index.ts";
import { readContents, type Door, type ListedPage } from "./contents.ts";
import { anchorMaker, plain } from "./document-html.ts";

/** The first page of the documents. It lists all other pages. */
export const startPage = "docs/README.md";

/** A part of a page that the search can find: a heading and the text up to the next heading. */
interface Section {
  readonly path: string;
  readonly page: string;
  readonly heading: string;
  readonly anchor: string;
  readonly text: string;
}

/** A result of a search. */
export interface Match {
  /** Address of the section, such as `/docs/guides/agents.md#tools`. */
  readonly address: string;
  readonly page: string;
  readonly heading: string;
  readonly excerpt: string;
}

/** The documents of the installed package: its guides, its examples and the pictures in them. */
export class DocumentFiles {
  readonly doors: readonly Door[];
  /** Paths relative to the folder of the package. Only these files are served. */
  readonly #paths: ReadonlySet<string>;
  readonly #root: string;
  #sections: readonly Section[] | undefined;

  constructor(root: string) {
    if (!existsSync(join(root, startPage)))
      throw new Fault("not_found", `the documents are missing: ${join(root, startPage)} does not exist`);
    this.#root = root;
    const folders = ["docs", "examples"].flatMap((folder) => filesBelow(root, folder));
    this.#paths = new Set(
      [...folders, "CHANGELOG.md", "README.md"].filter((path) => existsSync(join(root, path))),
    );
    this.doors = readContents(this.text(startPage));
  }

  has(path: string): boolean {
    return this.#paths.has(path);
  }

  bytes(path: string): Uint8Array<ArrayBuffer> {
    return readFileSync(join(this.#root, path));
  }

  text(path: string): string {
    return readFileSync(join(this.#root, path), "utf8");
  }

  /** Returns the pages in the order of the start page. */
  pages(): readonly ListedPage[] {
    return this.doors.flatMap(({ groups }) => groups.flatMap(({ pages }) => pages));
  }

  /** Finds a page by its path or by its last part, such as `guides/agents`, `docs/guides/agents.md` or `agents`. */
  find(name: string): string {
    const short = name.replace(/^(?:\.\/)?docs\//u, "").replace(/\.md$/u, "");
    const exact = [`docs/${short}.md`, `docs/${short}/README.md`].find((path) => this.#paths.has(path));
    if (exact !== undefined) return exact;
    const [found, ...others] = this.pages().filter(({ path }) => path.endsWith(`/${short}.md`));
    if (found === undefined)
      throw new Fault(
        "not_found",
        `page ${JSON.stringify(name)} not found; reeve docs --list shows the pages`,
      );
    if (others.length === 0) return `docs/${found.path}`;
    const names = [found, ...others].map(({ path }) => path.replace(/\.md$/u, ""));
    throw new Fault(
      "invalid_argument",
      `page ${JSON.stringify(name)} is ambiguous; use ${names.join(" or ")}`,
    );
  }

  /** Returns the sections that contain every word. Sections with the words in their headings come first. */
  search(query: string): readonly Match[] {
    const words = query
      .toLowerCase()
      .split(/\s+/u)
      .filter((word) => word !== "")
      .slice(0, 10);
    if (words.length === 0) return [];
    this.#sections ??= this.pages().flatMap((page) => sectionsOf(page, this.text(`docs/${page.path}`)));
    const scored = this.#sections.flatMap((section) => {
      const scores = words.map((word) => scoreOf(section, word));
      return scores.every((score) => score > 0) ? [{ section, score: Math.min(...scores) }] : [];
    });
    return scored
      .toSorted((one, other) => other.score - one.score)
      .slice(0, 30)
      .map(({ section: { path, anchor, page, heading, text } }) => ({
        address: `/docs/${path}${anchor === "" ? "" : `#${anchor}`}`,
        page,
        heading,
        excerpt: excerptOf(text, words[0] ?? ""),
      }));
  }
}

/** Returns the files below a folder, except packages and files whose names start with a dot. */
function filesBelow(root: string, folder: string): readonly string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => name !== "node_modules" && !name.startsWith("."))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(root, path) : [path];
    });
}

function sectionsOf({ path, title }: ListedPage, markdown: string): readonly Section[] {
  const anchorOf = anchorMaker();
  const sections: { heading: string; anchor: string; lines: string[] }[] = [];
  let isCode = false;
  for (const line of markdown.split(/\r?\n/u)) {
    if (/^\s*(?:`{3}|~{3})/u.test(line)) isCode = !isCode;
    const [, level, heading] = isCode ? [] : (/^(#{1,6}) (.+)$/u.exec(line) ?? []);
    if (heading === undefined) {
      sections.at(-1)?.lines.push(line);
      continue;
    }
    const text = plain(heading);
    const anchor = anchorOf(text);
    sections.push({ heading: text, anchor: level === "#" ? "" : anchor, lines: [] });
  }
  return sections.map(({ heading, anchor, lines }) => ({
    path,
    page: title,
    heading,
    anchor,
    text: plain(lines.join(" ").replaceAll(/[|`#\s]+/gu, " ")),
  }));
}

function scoreOf({ page, heading, text }: Section, word: string): number {
  const isIn = (where: string): boolean => where.toLowerCase().includes(word);
  const inText = Math.min(3, text.toLowerCase().split(word).length - 1);
  return (isIn(heading) ? 8 : 0) + (isIn(page) ? 4 : 0) + inText;
}

function excerptOf(text: string, word: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 60);
  const from = at === 0 ? 0 : text.indexOf(" ", at) + 1;
  return `${from === 0 ? "" : "… "}${text.slice(from, from + 200).trim()}${from + 200 < text.length ? " …" : ""}`;
}
