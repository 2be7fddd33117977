import { relative } from "node:path/posix";
import { expect, test } from "vitest";
import { inCopy, type PlantedCopy } from "./planted-copy.ts";

interface Plant {
  readonly rule: string;
  readonly file: string;
  readonly source: string;
  readonly code: string;
  readonly message: string;
}

const plants: readonly Plant[] = [
  {
    rule: "the kernel sees no Node module",
    file: "src/kernel/planted-node-module.ts",
    source: `import { readFileSync } from "node:fs";\n\nexport const planted = readFileSync;\n`,
    code: "TS2591",
    message: "Cannot find name 'node:fs'",
  },
  ...["setTimeout", "fetch", "performance", "crypto", "AbortController"].map((name) => ({
    rule: `the kernel sees no ${name}`,
    file: `src/kernel/planted-${name.toLowerCase()}.ts`,
    source: `export const planted = (): unknown => ${name};\n`,
    code: "TS2304",
    message: `Cannot find name '${name}'`,
  })),
  ...["process", "Buffer"].map((name) => ({
    rule: `the kernel sees no ${name}`,
    file: `src/kernel/planted-${name.toLowerCase()}.ts`,
    source: `export const planted = (): unknown => ${name};\n`,
    code: "TS2591",
    message: `Cannot find name '${name}'`,
  })),
  arrow("kernel", "runtime"),
  arrow("runtime", "agents"),
  arrow("agents", "capabilities"),
  arrow("capabilities", "runtime"),
  arrow("workspace/files", "agents"),
  arrow("assembly", "surfaces"),
  arrow("assembly", "experiments"),
  arrow("experiments", "surfaces"),
  arrow("testing", "runtime"),
];

/** Targets of the forbidden imports: one file per layer that imports nothing. */
const targets = ["runtime", "agents", "capabilities", "experiments", "surfaces"].map((layer) => ({
  file: `src/${layer}/planted-target.ts`,
  source: "export const target = 1;\n",
}));

const typeTest = {
  file: "test/planted.test-d.ts",
  source: `type Equal<Left, Right> = [Left, Right] extends [Right, Left] ? true : false;

export const right: Equal<1, 1> = true;
export const wrong: Equal<1, 2> = true;
`,
};

const { judgedTypes, planted } = await inCopy(
  async (copy) => {
    await copy.plant({ [typeTest.file]: typeTest.source });
    return {
      judgedTypes: await copy.runScript("lint", "--type-check", "--format=json", typeTest.file),
      planted: await copy
        .plant(Object.fromEntries([...plants, ...targets].map(({ file, source }) => [file, source])))
        .then(() => compile(copy, "src", "src/testing")),
    };
  },
  { isBuilt: true },
);

// Outside `src`, the linter reports the errors of the compiler.
test("type tests compile or fail to compile as declared", () => {
  expect(judgedTypes.code).toBeGreaterThan(0);
  const { diagnostics } = JSON.parse(judgedTypes.stdout) as { readonly diagnostics: readonly object[] };
  expect(diagnostics).toEqual([
    expect.objectContaining({
      code: "typescript(TS2322)",
      filename: typeTest.file,
      message: "Type 'true' is not assignable to type 'false'.",
      labels: [expect.objectContaining({ span: expect.objectContaining({ line: 4 }) })],
    }),
  ]);
});

test.for(plants)("the compiler refuses a planted violation of the rule: $rule", ({ file, code, message }) => {
  expect(planted.code).toBeGreaterThan(0);
  expect(planted.errors).toContainEqual(
    expect.objectContaining({ file, code, message: expect.stringContaining(message) }),
  );
});

function arrow(from: string, to: string): Plant {
  return {
    rule: `${from} does not import ${to}`,
    file: `src/${from}/planted-arrow.ts`,
    source: `export { target as planted } from "${relative(from, to)}/planted-target.ts";\n`,
    code: "TS6307",
    message: `src/${from}/tsconfig.json`,
  };
}

async function compile(copy: PlantedCopy, ...projects: readonly string[]) {
  const { code, stdout } = await copy.run("tsc", "-b", ...projects, "--pretty", "false");
  const errors = stdout.matchAll(
    /^(?<file>\S+)\((?<line>\d+),\d+\): error (?<code>TS\d+): (?<message>.*)$/gm,
  );
  return {
    code,
    errors: [...errors].map(({ groups }) => ({
      file: groups?.["file"],
      line: Number(groups?.["line"]),
      code: groups?.["code"],
      message: groups?.["message"],
    })),
  };
}
