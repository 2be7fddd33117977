import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { repository } from "../gates/run-node.ts";

/** The declaration of a public name. */
interface Declaration {
  readonly file: string;
  /** The JSDoc comment directly before the declaration, without its marks. */
  readonly comment: string;
}

type Names = ReadonlyMap<string, Declaration>;

const keyword = "(?:declare |abstract |async )*(?:class|function\\*?|const|interface|type|enum)";

/** Finds a comment that begins a line, and the exported declaration that follows it. */
const declared = new RegExp(
  String.raw`(?:^/\*\*((?:(?!\*/)[\s\S])*)\*/\n)?^export ${keyword} ([\w$]+)`,
  "gmu",
);

/** Reads the names that a module declares for others. */
function declaredNames(file: string, source: string): Names {
  const names = new Map<string, Declaration>();
  for (const [, text = "", name = ""] of source.matchAll(declared)) {
    const comment = text.replaceAll(/^\s*\* ?/gmu, "").trim();
    // A constant and its type may share a name and a comment, and the first of several signatures has the comment.
    names.set(name, { file, comment: names.get(name)?.comment || comment });
  }
  return names;
}

/** Reads the names that a module exports, including those that it exports from other modules. */
function namesOf(file: string): Names {
  const source = readFileSync(join(repository, file), "utf8");
  const names = new Map(declaredNames(file, source));
  for (const [, path = ""] of source.matchAll(/^export (?:type )?\* from "(\.[^"]+)";/gmu))
    for (const [name, declaration] of namesOf(join(dirname(file), path))) names.set(name, declaration);
  for (const [, list = "", path = ""] of source.matchAll(
    /^export (?:type )?\{([^}]*)\} from "(\.[^"]+)";/gmu,
  )) {
    const inner = namesOf(join(dirname(file), path));
    for (const [, name = "", outer = name] of list.matchAll(/(?:type )?([\w$]+)(?: as ([\w$]+))?/gu)) {
      const declaration = inner.get(name);
      if (declaration === undefined)
        throw new Error(`${file} exports ${name}, which ${path} does not declare`);
      names.set(outer, declaration);
    }
  }
  return names;
}

/** The subpaths of the package with their names, such as those of `reeve/tools`. */
function publicNames(): ReadonlyMap<string, Names> {
  const { exports } = JSON.parse(readFileSync(join(repository, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string>>;
  };
  const modules = Object.entries(exports).filter(([, file]) => file.endsWith(".js"));
  return new Map(
    modules.map(([subpath, file]) => [
      join("reeve", subpath),
      namesOf(file.replace(/^\.\/dist\/(.*)\.js$/u, "src/$1.ts")),
    ]),
  );
}

/** The names in the rows of a page's tables, in which the last cell has a link, by the subpaths in the heading above. */
function listedNames(page: string, whole?: string): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const section of page.split(/^## /mu)) {
    const [heading = ""] = section.split("\n");
    const rows = [...section.matchAll(/^\| (`[^|]+) \|[^|]+\| \[.+\]\(.+\) \|$/gmu)];
    const names = rows.flatMap(([, cell = ""]) => cell.match(/[\w$]+/gu) ?? []);
    const subpaths = whole === undefined ? (heading.match(/reeve\/[\w/]+/gu) ?? []) : [whole];
    for (const subpath of subpaths) found.set(subpath, new Set([...(found.get(subpath) ?? []), ...names]));
  }
  return found;
}

const isAdvanced = ({ comment }: Declaration): boolean => /@advanced\b/u.test(comment);

/** What is missing of the documentation of a name of a subpath, and what to do about it. */
function problemOf(
  name: string,
  declaration: Declaration,
  listed: ReadonlySet<string>,
  page: string,
): string | undefined {
  const place = `${name} in ${declaration.file}`;
  const [sentence = ""] = declaration.comment.split(/(?:^|\s)@\w+/u);
  if (!/\S \S+[^]*[.:]/u.test(sentence)) return `${place}: write a comment with a sentence before it`;
  if (isAdvanced(declaration) && listed.has(name))
    return `${place}: it is marked as @advanced and listed in ${page}; remove one of the two`;
  if (isAdvanced(declaration) || listed.has(name)) return undefined;
  return `${place}: add it to a row of ${page} with a link to the page that explains it, or mark it as @advanced if only authors of stores, engines or test harnesses need it`;
}

const subpaths = publicNames();
const pages = { own: "docs/reference/reference.md", others: "docs/reference/subpaths.md" };
const own = listedNames(
  readFileSync(join(repository, pages.own), "utf8").split("## Other subpaths")[0] ?? "",
  "reeve",
);
const others = listedNames(readFileSync(join(repository, pages.others), "utf8"));
const kernel = new Set([...(own.get("reeve") ?? []), ...(others.get("reeve/kernel") ?? [])]);

describe("public names of the package", () => {
  test.each([...subpaths.keys()])(
    "every public name of %s has a sentence, and a row with a link or the tag @advanced",
    (subpath) => {
      const page = subpath === "reeve" ? pages.own : pages.others;
      // Most names of reeve are declared in the kernel, which exports them as well.
      const listed =
        subpath === "reeve/kernel" ? kernel : (own.get(subpath) ?? others.get(subpath) ?? new Set());
      const problems = [...(subpaths.get(subpath) ?? [])].map(([name, declaration]) =>
        problemOf(name, declaration, listed, page),
      );
      expect(problems.length).toBeGreaterThan(0);
      expect(problems.filter((problem) => problem !== undefined)).toEqual([]);
    },
  );

  test("the pages of names list no name that its subpath does not export", () => {
    const known = (name: string, list: readonly string[]): boolean =>
      list.some((subpath) => subpaths.get(subpath)?.has(name));
    const page = readFileSync(join(repository, pages.others), "utf8");
    const stale = page.split(/^## /mu).flatMap((section) => {
      const list = [...listedNames(`## ${section}`)];
      const exporting = list.map(([subpath]) => subpath);
      return [...(list[0]?.[1] ?? [])].filter((name) => !known(name, exporting));
    });
    expect(stale).toEqual([]);
    expect([...(own.get("reeve") ?? [])].filter((name) => !known(name, ["reeve"]))).toEqual([]);
  });

  test("docs/reference/stability.md promises something for every subpath, and for each only once", () => {
    const page = readFileSync(join(repository, "docs/reference/stability.md"), "utf8");
    const [, section = ""] = page.split("## Subpaths\n");
    const rows = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| (`reeve[^|]*) \|/gmu)];
    const promised = rows.flatMap(([, cell = ""]) => cell.match(/reeve[\w/]*/gu) ?? []);
    expect(promised.toSorted()).toEqual([...subpaths.keys()].toSorted());
  });

  test("reeve/kernel exports at most 200 names, besides those of contracts that were added later", () => {
    const isolation = ["Isolation", "TaskFolder", "FolderWork"];
    const scores = ["RunScore", "ScoreDraft", "ScoreFilter", "Scores", "StoredScore"];
    const later = [...isolation, ...scores];
    const names = [...(subpaths.get("reeve/kernel")?.keys() ?? [])];
    const first = names.filter((name) => !later.includes(name));
    expect(names.length - first.length).toBe(later.length);
    expect(first.length).toBeGreaterThan(150);
    expect(first.length).toBeLessThanOrEqual(200);
  });

  test("the check names a planted name without a comment, without a sentence, without a page, and with two homes", () => {
    const source = [
      "export const bare = 1;",
      "/** Word */\nexport const short = 1;",
      "/** Counts the calls. */\nexport const unlisted = 1;",
      "/** Counts the calls. @advanced */\nexport const both = 1;",
      "/** Counts the calls. @advanced */\nexport const advanced = 1;",
      "/**\n * Counts the calls.\n */\nexport const listed = 1;",
    ].join("\n\n");
    const problems = [...declaredNames("src/planted.ts", source)].map(([name, declaration]) =>
      problemOf(name, declaration, new Set(["bare", "both", "listed"]), "page.md"),
    );
    expect(problems.filter((problem) => problem !== undefined)).toEqual([
      "bare in src/planted.ts: write a comment with a sentence before it",
      "short in src/planted.ts: write a comment with a sentence before it",
      expect.stringContaining("unlisted in src/planted.ts: add it to a row of page.md"),
      expect.stringContaining("both in src/planted.ts: it is marked as @advanced and listed in page.md"),
    ]);
  });
});
