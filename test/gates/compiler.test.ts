import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { relative } from "node:path/posix";
import { expect, test } from "vitest";
import { inCopy, type PlantedCopy } from "./planted-copy.ts";
import { repository } from "./run-node.ts";

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

/** The project of the type test alone. `npm run check` compiles all of the project `test`, beside the tests. */
const ofTypeTest = {
  file: "test/planted.json",
  source: JSON.stringify({
    extends: "./tsconfig.json",
    include: [],
    files: ["planted.test-d.ts"],
    references: [],
  }),
};

const { judgedTypes, testProject, planted } = await inCopy(
  async (copy) => {
    await copy.plant({ [typeTest.file]: typeTest.source, [ofTypeTest.file]: ofTypeTest.source });
    return {
      judgedTypes: await compile(copy, "-p", ofTypeTest.file),
      testProject: await copy.run("tsc", "-p", "test", "--showConfig"),
      planted: await copy
        .plant(Object.fromEntries([...plants, ...targets].map(({ file, source }) => [file, source])))
        .then(() => compile(copy, "-b", "src", "src/testing")),
    };
  },
  { isBuilt: true },
);

test("the project of the tests contains the type tests, which pass or fail as they should", async () => {
  const { references } = JSON.parse(await readFile(join(repository, "tsconfig.json"), "utf8")) as {
    references: object[];
  };
  expect(references).toContainEqual({ path: "test" });
  const { files } = JSON.parse(testProject.stdout) as { files: string[] };
  expect(files).toContain("./planted.test-d.ts");
  expect(judgedTypes.code).toBeGreaterThan(0);
  expect(judgedTypes.errors).toEqual([
    {
      file: typeTest.file,
      line: 4,
      code: "TS2322",
      message: "Type 'true' is not assignable to type 'false'.",
    },
  ]);
});

test.for(plants)("the compiler refuses a planted violation: $rule", ({ file, code, message }) => {
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

async function compile(copy: PlantedCopy, ...args: readonly string[]) {
  const { code, stdout } = await copy.run("tsc", ...args, "--pretty", "false");
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
