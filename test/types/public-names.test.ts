import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { repository } from "../gates/run-node.ts";

/** The declaration of a public name. */
interface Declaration {
  readonly file: string;
  /** Whether a JSDoc comment stands directly before the declaration. */
  readonly hasComment: boolean;
}

type Names = ReadonlyMap<string, Declaration>;

const keyword = "(?:declare |abstract |async )*(?:class|function\\*?|const|interface|type|enum)";

/** Reads the names that a module exports, including those that it exports from other modules. */
function namesOf(file: string): Names {
  const source = readFileSync(join(repository, file), "utf8");
  const names = new Map<string, Declaration>();
  for (const [, comment, name = ""] of source.matchAll(
    new RegExp(String.raw`(\*/\n)?^export ${keyword} ([\w$]+)`, "gmu"),
  )) {
    // A constant and its type may share a name and a comment.
    const isCommented = comment !== undefined || names.get(name)?.hasComment === true;
    names.set(name, { file, hasComment: isCommented });
  }
  for (const [, path = ""] of source.matchAll(/^export (?:type )?\* from "(\.[^"]+)";/gmu))
    for (const [name, declaration] of namesOf(join(dirname(file), path))) names.set(name, declaration);
  for (const [, list = "", path = ""] of source.matchAll(
    /^export (?:type )?\{([^}]*)\} from "(\.[^"]+)";/gmu,
  )) {
    const declared = namesOf(join(dirname(file), path));
    for (const [, inner = "", outer = inner] of list.matchAll(/(?:type )?([\w$]+)(?: as ([\w$]+))?/gu)) {
      const declaration = declared.get(inner);
      if (declaration === undefined)
        throw new Error(`${file} exports ${inner}, which ${path} does not declare`);
      names.set(outer, declaration);
    }
  }
  return names;
}

function uncommented(names: Names): readonly string[] {
  return [...names]
    .filter(([, { hasComment }]) => !hasComment)
    .map(([name, { file }]) => `${name} in ${file}`);
}

/** The words in code font and in programs of the documentation pages. */
function documentedWords(): ReadonlySet<string> {
  const pages = globSync("docs/*/*.md", { cwd: repository, exclude: ["docs/notes/**"] });
  const words = pages.flatMap((page) => {
    const text = readFileSync(join(repository, page), "utf8");
    return [...text.matchAll(/```[\s\S]*?```|`[^`\n]+`/gu)].flatMap(([code]) => code.match(/[\w$]+/gu) ?? []);
  });
  return new Set(words);
}

describe("public names of reeve", () => {
  const names = namesOf("src/entries/index.ts");

  test("every public name of reeve is in code font or in a program of a documentation page", () => {
    const words = documentedWords();
    expect(names.size).toBeGreaterThan(150);
    expect([...names.keys()].filter((name) => !words.has(name))).toEqual([]);
  });

  test("docs/reference/reference.md lists every public name of reeve in a row with a link", () => {
    const reference =
      readFileSync(join(repository, "docs/reference/reference.md"), "utf8").split("## Other subpaths")[0] ??
      "";
    const rows = [...reference.matchAll(/^\| (`[^|]+) \|[^|]+\| \[.+\]\(.+\) \|$/gmu)].map(
      ([, cell = ""]) => cell,
    );
    const listed = rows.flatMap((cell) => cell.match(/[\w$]+/gu) ?? []);
    expect(listed.toSorted()).toEqual([...names.keys()].toSorted());
  });

  test("every public name of reeve has a comment at its declaration", () => {
    expect(uncommented(names)).toEqual([]);
  });
});

describe("public names of reeve/kernel", () => {
  const names = namesOf("src/entries/kernel.ts");

  test("reeve/kernel exports at most 200 names, besides those of contracts that were added later", () => {
    const isolation = ["Isolation", "TaskFolder", "FolderWork"];
    const scores = ["RunScore", "ScoreDraft", "ScoreFilter", "Scores", "StoredScore"];
    const later = [...isolation, ...scores];
    const first = [...names.keys()].filter((name) => !later.includes(name));
    expect(names.size - first.length).toBe(later.length);
    expect(first.length).toBeGreaterThan(150);
    expect(first.length).toBeLessThanOrEqual(200);
  });

  test("every public name of reeve/kernel has a comment at its declaration", () => {
    expect(uncommented(names)).toEqual([]);
  });
});
