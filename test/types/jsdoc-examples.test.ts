import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { readdirSync } from "node:fs";
import { join, posix } from "node:path";
import { expect, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";
import { codeBlocks } from "../package/code-blocks.ts";

interface Example {
  /** Path of the source file, relative to the repository. */
  readonly file: string;
  /** Number of the example's first line of code in its source file, from 1. */
  readonly line: number;
  readonly code: string;
}

interface Collected {
  readonly examples: readonly Example[];
  /** Places of `@example` tags that are followed by no `ts` block, as `file:line`. */
  readonly withoutCode: readonly string[];
}

/** The compiler options of `examples/`, except that an example may declare a name without using it. */
const config = {
  extends: "../tsconfig.base.json",
  compilerOptions: {
    noEmit: true,
    noUnusedLocals: false,
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: false,
    skipLibCheck: true,
    types: ["node"],
  },
  include: ["./*.ts"],
  references: [
    "src/entries",
    "src/assembly",
    "src/agents",
    "src/capabilities",
    "src/kernel",
    "src/testing",
  ].map((path) => ({
    path: `../${path}`,
  })),
};

/** Finds the code blocks after the `@example` tags of all JSDoc comments of a source file. */
function examplesIn(file: string, source: string): Collected {
  const examples: Example[] = [];
  const withoutCode: string[] = [];
  for (const { 0: comment, index } of source.matchAll(/\/\*\*[\s\S]*?\*\//gu)) {
    const firstLine = source.slice(0, index).split("\n").length;
    const lines = comment.split("\n").map((line) => line.replace(/^\s*\* ?/u, ""));
    const tags = lines.flatMap((line, place) => (/^@\w/u.test(line) ? [place] : []));
    for (const [position, start] of tags.entries()) {
      if (!/^@example\b/u.test(lines[start] ?? "")) continue;
      const section = lines.slice(start, tags[position + 1] ?? lines.length).join("\n");
      const blocks = codeBlocks(section);
      if (blocks.length === 0) withoutCode.push(`${file}:${firstLine + start}`);
      for (const { line, code } of blocks) examples.push({ file, line: firstLine + start + line, code });
    }
  }
  return { examples, withoutCode };
}

/** Compiles each example as a module that imports `reeve` like `examples/` does. Returns one line per compiler error. */
async function compile(examples: readonly Example[]): Promise<readonly string[]> {
  const folder = await mkdtemp(join(repository, ".jsdoc-examples-"));
  try {
    // The folder needs a package of its own: inside the package reeve, the name "reeve" would resolve to the package itself.
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
    for (const [index, { line, code }] of examples.entries())
      await writeFile(join(folder, `${index}.ts`), `${"\n".repeat(line - 1)}${code}\nexport {};\n`);
    const tsc = join(repository, "node_modules/typescript/bin/tsc");
    const { code, stdout } = await runNode([tsc, "-b", folder, "--pretty", "false"], folder);
    const errors = stdout
      .split("\n")
      .filter((text) => text.includes("error TS"))
      .map((text) =>
        text.replace(/^(\d+)\.ts\((\d+),\d+\)/u, (_, index, line) => `${examples[index]?.file}:${line}`),
      );
    if (code !== 0 && errors.length === 0) throw new Error(`the compiler failed: ${stdout}`);
    return errors;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const planted = `
/**
 * Adds one.
 *
 * @example
 * \`\`\`ts
 * import { Priority } from "reeve";
 *
 * const text: string = Priority.HIGH + 1;
 * \`\`\`
 */
export const addOne = 1;

/**
 * Has a tag without code.
 *
 * @example addOne
 */
export const withoutCode = 2;
`;

test("every @example block in src type-checks, and the check reports a broken block that a test adds", async () => {
  const files = readdirSync(join(repository, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => posix.join("src", file));
  const collected = await Promise.all(
    files.map(async (file) => examplesIn(file, await readFile(join(repository, file), "utf8"))),
  );
  const examples = collected.flatMap((each) => each.examples);
  expect(examples.length).toBeGreaterThan(0);
  expect(collected.flatMap((each) => each.withoutCode)).toEqual([]);

  const broken = examplesIn("src/planted.ts", planted);
  expect(broken.withoutCode).toEqual(["src/planted.ts:17"]);
  expect(await compile([...examples, ...broken.examples])).toEqual([
    expect.stringMatching(/^src\/planted\.ts:9: error TS2322: /u),
  ]);
});
