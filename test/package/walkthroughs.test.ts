import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "../gates/run-node.ts";
import { codeBlocks, fences } from "./code-blocks.ts";
import { readDocuments } from "./documents.ts";
import { withoutNetwork } from "./run-offline.ts";

/** Documents whose blocks are files (`title="..."`) and whose shell blocks run these files in order. */
const walkthroughs = Object.entries(await readDocuments()).flatMap(([document, markdown]) =>
  codeBlocks(markdown).some(({ title }) => title !== undefined) ? [{ document, markdown }] : [],
);

test("getting-started.md and testing.md are walkthroughs", () => {
  const names = walkthroughs.map(({ document }) => document);
  expect(names).toEqual(expect.arrayContaining(["docs/getting-started.md", "docs/testing.md"]));
});

test.for(walkthroughs)(
  "the commands of $document, run in order in one folder, print the output that follows each of them",
  { timeout: 240_000 },
  async ({ markdown }) => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-walkthrough-"));
    try {
      await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
      await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
      for (const { title, code } of codeBlocks(markdown))
        if (title !== undefined) await writeFile(join(folder, title), code);
      const blocks = fences(markdown);
      for (const [index, { language, code }] of blocks.entries()) {
        const args = language === "sh" ? nodeArguments(code) : undefined;
        if (args === undefined) continue;
        const { stdout, stderr, ending } = await runShown(args, folder);
        const output = blocks[index + 1];
        if (output?.language === "text") expect(`${stdout}${ending}`.trim() || stderr).toBe(output.code);
        else expect(ending === "" || stderr).toBe(true);
      }
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);

/** The arguments of Node for a shell block that is one command, `node FILE` or `npx reeve ...`. `undefined` for any other block. */
function nodeArguments(command: string): readonly string[] | undefined {
  const [program, ...args] = command.trim().split(/\s+/u);
  if (program === "node") return args;
  if (program === "npx" && args[0] === "reeve")
    return [join(repository, "dist/surfaces/cli/main.js"), ...args.slice(1)];
  return undefined;
}

interface Shown {
  readonly stdout: string;
  readonly stderr: string;
  /** What a shell prints about the end of the process: `Killed` after SIGKILL, nothing after exit code 0. */
  readonly ending: string;
}

function runShown(args: readonly string[], cwd: string): Promise<Shown> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...withoutNetwork, ...args],
      { cwd, timeout: 200_000 },
      (error, stdout, stderr) => {
        const ending =
          error === null ? "" : error.signal === "SIGKILL" ? "Killed" : `exit code ${error.code}`;
        resolve({ stdout, stderr, ending });
      },
    );
  });
}
