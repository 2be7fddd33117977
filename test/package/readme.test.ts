import { beforeAll, expect, test } from "vitest";
import { codeBlocks, complaints } from "./code-blocks.ts";
import { readDocuments } from "./documents.ts";
import { runModules, type RunModule } from "./run-offline.ts";

const right = 'import { Priority } from "reeve/kernel";\n\nexport const most: Priority = Priority.CRITICAL;';
const wrong = 'import { nothing } from "reeve";\n\nconst port: number = "80";\nconsole.log(port, nothing);';

const documents = await readDocuments();

test("every ts block and tsx block in README.md and docs compiles", async () => {
  expect(await complaints(documents)).toEqual([]);
});

/** Blocks that are files of a walkthrough are run by walkthroughs.test.ts. */
const offline = Object.entries(documents).flatMap(([document, markdown]) =>
  codeBlocks(markdown)
    .filter(({ code, title }) => /\b(?:scriptedModel|simulate)\(/u.test(code) && title === undefined)
    .map(({ line, code }) => ({ place: `${document}:${line}`, code })),
);

test("README.md and docs have more than ten blocks that run without a key", () => {
  expect(offline.length).toBeGreaterThan(10);
});

const ran = new Map<string, RunModule>();
beforeAll(async () => {
  const results = await runModules(offline);
  for (const [index, { place }] of offline.entries()) ran.set(place, results[index] ?? { stdout: "" });
});

test.for(offline)(
  "the program $place runs to its end and prints the text that its comments promise",
  ({ place, code }) => {
    const { stdout = "", error } = ran.get(place) ?? {};
    expect(error).toBeUndefined();
    for (const [, text] of code.matchAll(/\bprints (.+)$/gmu)) expect(stdout).toContain(`${text}\n`);
  },
);

test("complaints() reports a block that does not compile with its document and line, and no block that does", async () => {
  const markdown = {
    "right.md": `# Right\n\n\`\`\`ts\n${right}\n\`\`\`\n`,
    "wrong.md": `# Wrong\n\n\`\`\`ts\n${right}\n\`\`\`\n\n\`\`\`typescript\n${wrong}\n\`\`\`\n`,
  };
  expect(await complaints(markdown)).toEqual([
    expect.stringMatching(/^wrong\.md:10: error TS2305: /u),
    expect.stringMatching(/^wrong\.md:12: error TS2322: /u),
  ]);
});

test("complaints() reports a tsx block that reads a property that a hook does not return", async () => {
  const list = (property: string): string =>
    `\`\`\`tsx\nimport { useRuns } from "reeve/react";\n\nexport const List = () => <p>{useRuns().${property}.length}</p>;\n\`\`\`\n`;
  expect(await complaints({ "right.md": list("runs"), "wrong.md": list("nothing") })).toEqual([
    expect.stringMatching(/^wrong\.md:4: error TS2339: /u),
  ]);
});

test("complaints() is empty for a document without a ts block", async () => {
  expect(await complaints({ "empty.md": "", "shell.md": "```sh\nnpm install reeve\n```\n" })).toEqual([]);
});

test("complaints() lets a block import a titled block of the same document only", async () => {
  const model = '```ts title="model.ts"\nexport const name: string = "m";\n```\n';
  const use = '```ts\nimport { name } from "./model.ts";\nconsole.log(name);\n```\n';
  expect(await complaints({ "both.md": model + use, "alone.md": use })).toEqual([
    expect.stringMatching(/^alone\.md:2: error TS2307: /u),
  ]);
});

test("codeBlocks() finds a block in a list and after a block in another language, and none inside a longer fence", () => {
  const markdown = [
    "```sh\nls\n```",
    "- one\n\n  ```ts\n  one();\n  ```",
    "````md\n```ts\ntwo();\n```\n````",
    "~~~ts\nthree();\n~~~",
  ];
  expect(codeBlocks(markdown.join("\n"))).toEqual([
    { line: 6, language: "ts", code: "  one();" },
    { line: 14, language: "ts", code: "three();" },
  ]);
});
