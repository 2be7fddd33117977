import { readFile, stat } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { commandLine } from "../../src/surfaces/cli/program.ts";
import { readContents } from "../../src/surfaces/cli/docs/contents.ts";
import { processTerminal } from "../../src/surfaces/cli/terminal/process-terminal.ts";
import { fences } from "../package/code-blocks.ts";
import { filesMatching, readDocuments } from "../package/documents.ts";
import { entriesIn, missingCommands, pathExists, pathsIn, scriptsIn } from "./document-names.ts";
import { repository } from "./run-node.ts";

const documents = await readDocuments();
const guides: Readonly<Record<string, string>> = {
  ...documents,
  "AGENTS.md": await readFile(join(repository, "AGENTS.md"), "utf8"),
  "CONTRIBUTING.md": await readFile(join(repository, "CONTRIBUTING.md"), "utf8"),
};
const manifest = JSON.parse(await readFile(join(repository, "package.json"), "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
};
const program = commandLine(processTerminal(), () => undefined);

/** Lists the names in the pages that do not exist, each with its page. */
function missingIn(find: (markdown: string) => readonly string[]): readonly string[] {
  return Object.entries(guides).flatMap(([page, markdown]) =>
    find(markdown).map((name) => `${page}: ${name}`),
  );
}

test("every command and option of reeve that a document names is declared", () => {
  // The changelog also names what was replaced.
  const current = Object.entries(guides).filter(([page]) => page !== "CHANGELOG.md");
  const missing = current.flatMap(([page, markdown]) =>
    missingCommands(markdown, program).map(({ line, problem }) => `${page}:${line}: ${problem}`),
  );
  expect(missing).toEqual([]);
});

test("the examples in the help of every command use only commands and options that are declared", () => {
  const helps = allCommands(program).map((command) => {
    let help = "";
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    return help;
  });
  const examples = helps.flatMap((help) => help.match(/^ +\$ .+$/gmu) ?? []);
  expect(examples.length).toBeGreaterThan(40);
  const missing = missingCommands(["```sh", ...examples, "```"].join("\n"), program);
  expect(missing.map(({ problem }) => problem)).toEqual([]);
});

test("docs/reference/command-line.md names every command", () => {
  const page = guides["docs/reference/command-line.md"] ?? "";
  const headings = [...page.matchAll(/^## (.+)$/gmu)].map(([, heading]) => heading).join(" ");
  const names = program.commands.map((command) => command.name());
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !new RegExp(`\\b${name}\\b`, "u").test(headings))).toEqual([]);
});

test("every path, npm script and entry of the package that a document names exists", () => {
  // A path with .. is an example of an attack.
  const isMissing = (path: string): boolean => !path.includes("..") && !pathExists(path);
  expect(missingIn((page) => pathsIn(page).filter(isMissing))).toEqual([]);
  expect(missingIn((page) => scriptsIn(page).filter((name) => !(name in manifest.scripts)))).toEqual([]);
  expect(missingIn((page) => entriesIn(page).filter((path) => !(path in manifest.exports)))).toEqual([]);
});

test("AGENTS.md and CONTRIBUTING.md name every npm script and every benchmark", async () => {
  const agents = guides["AGENTS.md"] ?? "";
  const named = new Set([...scriptsIn(agents), ...scriptsIn(guides["CONTRIBUTING.md"] ?? "")]);
  // npm calls these two itself.
  const scripts = Object.keys(manifest.scripts).filter((name) => name !== "prepack" && name !== "postpack");
  expect(scripts.filter((name) => !named.has(name))).toEqual([]);
  const benchmarks = (await readFile(join(repository, "bench/main.ts"), "utf8")).matchAll(
    /^ {2}(\w+): \(\) =>/gmu,
  );
  const listed = /`npm run bench -- ([^`]+)`/u.exec(agents)?.[1]?.replaceAll("\\|", "|").split("|");
  expect(listed?.toSorted()).toEqual([...benchmarks].map(([, name = ""]) => name).toSorted());
});

test("the gate for documents finds commands, options, paths, scripts and entries that do not exist", () => {
  const page = [
    "Start `reeve serve --port 1 --heads x` or `npx reeve talk`, never `reeve token make`.",
    "",
    "## Options",
    "",
    "```sh",
    'npx reeve run "Do --it" --max-turns 3 --loud -c   # not --this',
    "git log | reeve run - --store=x && reeve audit verify|log --outside",
    "```",
    "",
    "| Option | Meaning |",
    "| --- | --- |",
    "| `--port <n>` | As in `reeve serve` |",
    "| `--profile` | As in `reeve run` |",
    "",
    "`--scope` of `reeve token create` is good, and `-wal` is no option.",
    "",
    "See `src/kernel/` and [x](docs/x.md), web/*.py, `reeve/nothing`.",
  ].join("\n");
  expect(missingCommands(page, program)).toEqual([
    { line: 1, problem: "reeve serve --port 1 --heads x: --heads is no option of serve" },
    { line: 1, problem: "reeve talk: there is no command talk" },
    { line: 1, problem: "reeve token make: there is no command make" },
    expect.objectContaining({
      line: 6,
      problem: expect.stringContaining("--loud is no option of run") as unknown,
    }),
    { line: 12, problem: "--port is no option of run, verify, log" },
  ]);
  expect(pathsIn(page)).toEqual(["src/kernel/", "docs/x.md", "web/*.py"]);
  expect(pathsIn(page).map(pathExists)).toEqual([true, false, false]);
  expect(scriptsIn("`npm run lint`, `npm run test:unit\\|gates`, `npm test`, npm run -s x:y")).toEqual([
    "lint",
    "test:unit",
    "test:gates",
    "test",
    "x:y",
  ]);
  expect(entriesIn(page)).toEqual(["./nothing"]);
  expect(missingCommands("A page about another program has `--its-own` options.", program)).toEqual([]);
});

test("README.md starts with what Reeve is and for whom, the two commands for a clone, a program of 15 lines, and the page", () => {
  const readme = guides["README.md"] ?? "";
  const [commands, example] = fences(readme);
  const lines = readme.split("\n");
  const before = (from: number, to: number): string => lines.slice(from, to).join(" ");
  const [start = 0, end = 0] = [commands?.line, example?.line];
  expect(before(1, start - 1)).toMatch(
    /^ Reeve is .+ \*\*For whom:\*\* .+ \*\*What to type first:\*\* clone this repository/u,
  );
  expect(commands?.code.split("\n").map((line) => line.split("  ")[0])).toEqual([
    "npm ci && npm start",
    "npm ci && npm test",
  ]);
  const code = example?.code.split("\n") ?? [];
  expect(code.filter((line) => line !== "")).toHaveLength(15);
  // The first screen of a terminal with 40 lines shows the commands and the program. The page follows.
  expect(end + code.length).toBeLessThan(40);
  expect(before(end + code.length, end + code.length + 8)).toContain("](docs/page/");
  expect(lines.length).toBeLessThan(120);
});

test("every relative link in a document leads to a file, and its anchor to a heading", async () => {
  expect(await brokenLinks(guides)).toEqual([]);
});

test("every relative link in README.md, CHANGELOG.md and docs leads to a file that the package contains", () => {
  const shipped =
    /^(?:README|CHANGELOG)\.md$|^LICENSE$|^docs\/(?!notes\/)|^examples\/(?:[\w-]+\/)*[\w-]+\.(?:ts|py|md)$/u;
  const packed = Object.entries(documents).filter(([document]) => shipped.test(document));
  const targets = packed.flatMap(([document, markdown]) =>
    links(markdown).map((target) => fileOf(document, target)),
  );
  expect(targets.length).toBeGreaterThan(100);
  expect(targets.filter((file) => !shipped.test(file))).toEqual([]);
});

test("every note that a file names exists and has the heading that the file names", async () => {
  const sources = ["{build,bench,examples,src,test,web}/**/*.{ts,tsx}", "*.md", "docs/**/*.md"];
  const files = (await filesMatching(sources)).filter((file) => file !== "test/gates/documents.test.ts");
  const missing: string[] = [];
  for (const file of files) {
    const text = await readFile(join(repository, file), "utf8");
    missing.push(...missingNotes(text).map((note) => `${file}: ${note}`));
  }
  expect(missing).toEqual([]);
  const planted = "docs/notes/money.md#caps, docs/notes/money.md#coins, docs/notes/none.md, decision 75";
  expect(missingNotes(planted)).toEqual(["docs/notes/money.md#coins", "docs/notes/none.md", "decision 75"]);
});

test("docs/README.md lists every page of docs once, except itself and the design notes, under a heading that the package has", () => {
  const listed = readContents(guides["docs/README.md"] ?? "").flatMap(({ groups }) =>
    groups.flatMap(({ pages }) => pages.map(({ path }) => `docs/${path}`)),
  );
  const pages = Object.keys(documents).filter(
    (name) => /^docs\/(?!notes\/)/u.test(name) && name !== "docs/README.md",
  );
  expect(pages.length).toBeGreaterThan(45);
  expect(listed.toSorted()).toEqual(pages);
});

test("brokenLinks() names the document and the link that leads nowhere", async () => {
  const page =
    "[a](docs/guides/agents.md) [b](docs/nowhere.md) [c](#here) [d](#there)\n\n## Here\n\n```md\n[e](nowhere.md)\n```\n";
  expect(await brokenLinks({ "page.md": page })).toEqual(["page.md: docs/nowhere.md", "page.md: #there"]);
});

/** Returns the design notes that a text names and that do not exist, or lack the heading, and records of decisions by number. */
function missingNotes(text: string): readonly string[] {
  return [...text.matchAll(/docs\/notes\/[\w-]+\.md(?:#[\w-]+)?|\bdecision \d+/giu)].flatMap(([named]) => {
    const [path = "", anchor] = named.split("#", 2);
    const page = documents[path];
    const isThere = page !== undefined && (anchor === undefined || anchors(page).has(anchor));
    return isThere ? [] : [named];
  });
}

function allCommands(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

async function brokenLinks(pages: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const [document, markdown] of Object.entries(pages))
    for (const target of links(markdown)) {
      const [, anchor] = target.split("#", 2);
      const file = fileOf(document, target);
      const text = pages[file] ?? guides[file];
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
