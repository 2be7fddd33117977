import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "../gates/run-node.ts";
import { codeBlocks, complaints } from "./code-blocks.ts";
import { runModule } from "./run-offline.ts";

const right = 'import { Priority } from "reeve/kernel";\n\nexport const most: Priority = Priority.CRITICAL;';
const wrong = 'import { nothing } from "reeve";\n\nconst port: number = "80";\nconsole.log(port, nothing);';

test("every ts block in README.md and docs compiles", async () => {
  expect(await complaints(await readDocuments())).toEqual([]);
});

const offline = Object.entries(await readDocuments()).flatMap(([document, markdown]) =>
  codeBlocks(markdown)
    .filter(({ code }) => code.includes("scriptedModel("))
    .map(({ line, code }) => ({ place: `${document}:${line}`, code })),
);

test("there are blocks that can be run without a key", () => {
  expect(offline.length).toBeGreaterThan(10);
});

test.for(offline)("$place runs to its end and prints what it says", async ({ code }) => {
  const { code: exit, stdout, stderr } = await runModule(code);
  expect(exit === 0 || stderr).toBe(true);
  for (const [, text] of code.matchAll(/\bprints (.+)$/gmu)) expect(stdout).toContain(`${text}\n`);
});

test("a wrong block is found, with its document and line, and a right one beside it is not", async () => {
  const documents = {
    "right.md": `# Right\n\n\`\`\`ts\n${right}\n\`\`\`\n`,
    "wrong.md": `# Wrong\n\n\`\`\`ts\n${right}\n\`\`\`\n\n\`\`\`typescript\n${wrong}\n\`\`\`\n`,
  };
  expect(await complaints(documents)).toEqual([
    expect.stringMatching(/^wrong\.md:10: error TS2305: /u),
    expect.stringMatching(/^wrong\.md:12: error TS2322: /u),
  ]);
});

test("a document without a ts block has nothing to complain about", async () => {
  expect(await complaints({ "empty.md": "", "shell.md": "```sh\nnpm install reeve\n```\n" })).toEqual([]);
});

test("a block is found in a list, after a block in another language, and not inside a longer fence", () => {
  const markdown = [
    "```sh\nls\n```",
    "- one\n\n  ```ts\n  one();\n  ```",
    "````md\n```ts\ntwo();\n```\n````",
    "~~~ts\nthree();\n~~~",
  ];
  expect(codeBlocks(markdown.join("\n"))).toEqual([
    { line: 6, code: "  one();" },
    { line: 14, code: "three();" },
  ]);
});

async function readDocuments(): Promise<Readonly<Record<string, string>>> {
  const documents: Record<string, string> = {};
  for await (const name of glob(["README.md", "docs/**/*.md"], { cwd: repository }))
    documents[name] = await readFile(join(repository, name), "utf8");
  return documents;
}
