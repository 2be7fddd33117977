import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { codeBlocks, fences } from "./code-blocks.ts";
import { readDocuments } from "./documents.ts";
import { withoutNetwork } from "./run-offline.ts";

const { project, command: reeve } = inject("installed");

/** Documents whose blocks are files (`title="..."`) and whose shell blocks run these files in order. */
const walkthroughs = Object.entries(await readDocuments()).flatMap(([document, markdown]) =>
  codeBlocks(markdown).some(({ title }) => title !== undefined) ? [{ document, markdown }] : [],
);

test.for([
  { document: "docs/guides/channels.md", count: 1 },
  { document: "docs/coming-from/ai-sdk.md", count: 1 },
  { document: "docs/coming-from/claude-agent-sdk.md", count: 1 },
  { document: "docs/coming-from/dbos.md", count: 1 },
  { document: "docs/coming-from/eve.md", count: 1 },
  { document: "docs/coming-from/inngest.md", count: 1 },
  { document: "docs/coming-from/langgraph.md", count: 2 },
  { document: "docs/coming-from/mastra.md", count: 1 },
  { document: "docs/coming-from/openai-agents.md", count: 1 },
  { document: "docs/coming-from/paperclip.md", count: 1 },
  { document: "docs/coming-from/pi.md", count: 1 },
  { document: "docs/coming-from/restate.md", count: 2 },
  { document: "docs/coming-from/temporal.md", count: 1 },
  { document: "docs/coming-from/workflow-sdk.md", count: 1 },
  { document: "docs/guides/experiments.md", count: 1 },
  { document: "docs/start/getting-started.md", count: 9 },
  { document: "docs/guides/sessions.md", count: 1 },
  { document: "docs/guides/streaming.md", count: 2 },
  { document: "docs/guides/testing.md", count: 1 },
  { document: "docs/guides/workflows.md", count: 1 },
])("the document $document has at least $count commands that are executed", ({ document, count }) => {
  const markdown = walkthroughs.find((page) => page.document === document)?.markdown ?? "";
  expect(commands(markdown).length).toBeGreaterThanOrEqual(count);
});

test.for(walkthroughs)(
  "the commands of $document, executed in order in one folder, print the output that follows each of them",
  { timeout: 240_000 },
  async ({ markdown }) => {
    const folder = await mkdtemp(join(project, "walkthrough-"));
    try {
      for (const { title, code } of codeBlocks(markdown))
        if (title !== undefined) await writeFile(join(folder, title), code);
      const printed: string[] = [];
      for (const { args, output } of commands(markdown)) {
        const { stdout, stderr, ending } = await runShown(args, folder);
        const shown = `${stdout}${ending}`.trim() || stderr;
        printed.push(output === undefined && ending === "" ? "" : shown);
      }
      expect(printed).toEqual(commands(markdown).map(({ output = "" }) => output));
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    }
  },
);

interface ShownCommand {
  readonly args: readonly string[];
  /** Text of the block after the command, if it is marked `text`. If absent, the command may print anything and must succeed. */
  readonly output: string | undefined;
}

function commands(markdown: string): readonly ShownCommand[] {
  const blocks = fences(markdown);
  return blocks.flatMap(({ language, title, code }, index) => {
    // A block with a title belongs to a terminal of its own, whose command stays open.
    const args = language === "sh" && title === undefined ? nodeArguments(code) : undefined;
    const next = blocks[index + 1];
    return args === undefined ? [] : [{ args, output: next?.language === "text" ? next.code : undefined }];
  });
}

/** The arguments of Node for a shell block that is one command, `node FILE` or `npx reeve ...`. `undefined` for any other block. */
function nodeArguments(command: string): readonly string[] | undefined {
  const [program, ...args] = command.trim().split(/\s+/u);
  if (program === "node") return args;
  if (program === "npx" && args[0] === "reeve") return [reeve, ...args.slice(1)];
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
