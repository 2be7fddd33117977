import { readFileSync } from "node:fs";
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

describe("public names of reeve/kernel", () => {
  const names = namesOf("src/entries/kernel.ts");

  test("reeve/kernel exports at most 200 names", () => {
    expect(names.size).toBeGreaterThan(150);
    expect(names.size).toBeLessThanOrEqual(200);
  });

  test("every name of reeve/kernel has a comment at its declaration", () => {
    expect(uncommented(names)).toEqual([]);
  });
});
