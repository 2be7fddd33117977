import { stat } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { repository } from "../gates/run-node.ts";
import { fences } from "./code-blocks.ts";
import { readDocuments } from "./documents.ts";

const documents = await readDocuments();

test("every relative link in README.md, CHANGELOG.md and docs leads to a file, and its anchor to a heading", async () => {
  expect(await brokenLinks(documents)).toEqual([]);
});

test("every relative link in README.md, CHANGELOG.md and docs leads to a file that the package contains", () => {
  const shipped = /^(?:README|CHANGELOG)\.md$|^LICENSE$|^docs\/|^examples\/[\w-]+\.ts$/u;
  const targets = Object.entries(documents).flatMap(([document, markdown]) =>
    links(markdown).map((target) => fileOf(document, target)),
  );
  expect(targets.length).toBeGreaterThan(100);
  expect(targets.filter((file) => !shipped.test(file))).toEqual([]);
});

test("every page of docs, except decisions, is linked from README.md or from another page", () => {
  const linked = new Set(
    Object.entries(documents).flatMap(([document, markdown]) =>
      links(markdown).map((target) => fileOf(document, target)),
    ),
  );
  const pages = Object.keys(documents).filter((name) => /^docs\/[^/]+\.md$/u.test(name));
  expect(pages.length).toBeGreaterThan(15);
  expect(pages.filter((page) => !linked.has(page))).toEqual([]);
});

test("brokenLinks() names the document and the link that leads nowhere", async () => {
  const page =
    "[a](docs/agents.md) [b](docs/nowhere.md) [c](#here) [d](#there)\n\n## Here\n\n```md\n[e](nowhere.md)\n```\n";
  expect(await brokenLinks({ "page.md": page })).toEqual(["page.md: docs/nowhere.md", "page.md: #there"]);
});

async function brokenLinks(pages: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const [document, markdown] of Object.entries(pages))
    for (const target of links(markdown)) {
      const [, anchor] = target.split("#", 2);
      const file = fileOf(document, target);
      const text = pages[file] ?? documents[file];
      const isThere = text !== undefined || (await exists(file));
      const isRight = isThere && (anchor === undefined || (text !== undefined && anchors(text).has(anchor)));
      if (!isRight) broken.push(`${document}: ${target}`);
    }
  return broken;
}

/** Path of the file that a link leads to, from the repository's root. */
function fileOf(document: string, target: string): string {
  const [path = ""] = target.split("#", 1);
  return path === "" ? document : normalize(join(dirname(document), path));
}

/** Targets of the links outside of code, except absolute addresses. */
function links(markdown: string): readonly string[] {
  const prose = withoutCode(markdown);
  return [...prose.matchAll(/\]\(([^()\s]+)\)/gu)].flatMap(([, target = ""]) =>
    /^[a-z]+:/u.test(target) ? [] : [target],
  );
}

/** Anchors of the headings, as GitHub makes them. */
function anchors(markdown: string): ReadonlySet<string> {
  const counts = new Map<string, number>();
  const found = new Set<string>();
  for (const [, heading = ""] of withoutFences(markdown).matchAll(/^#{1,6} (.+)$/gmu)) {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(/\s/gu, "-");
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    found.add(count === 0 ? slug : `${slug}-${count}`);
  }
  return found;
}

function withoutFences(markdown: string): string {
  const lines = markdown.split(/\r?\n/u);
  for (const { line, code } of fences(markdown)) lines.fill("", line - 1, line + code.split("\n").length + 1);
  return lines.join("\n");
}

function withoutCode(markdown: string): string {
  return withoutFences(markdown).replaceAll(/`[^`\n]+`/gu, "");
}

function exists(file: string): Promise<boolean> {
  return stat(join(repository, file)).then(
    () => true,
    () => false,
  );
}
