import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { companyFiles } from "./company-files.ts";
import { Fault } from "../../../../kernel/index.ts";
import { isCommonJs, makeFolder } from "../../../../workspace/files/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

/** Path of the schema that an editor uses if Reeve is installed in the folder. */
const schema = "node_modules/reeve/settings.schema.json";

/**
 * Returns the text of the settings file. If the price of the model is unknown, the model is limited by tokens,
 * because its cost is unknown.
 */
function settings(folder: string): string {
  const hasSchema = existsSync(join(folder, schema));
  return `${JSON.stringify(
    {
      ...(hasSchema && { $schema: `../${schema}` }),
      tools: "read",
      budget: { maxCostUsd: 1, maxTokens: 1_000_000 },
      unknownPrice: "ignore",
      permissions: { deny: [] },
    },
    null,
    2,
  )}\n`;
}

const reviewer = `---
# An agent. Run it with: reeve run --agent reviewer "Review the last change"
description: Reviews code for errors
# model: anthropic/claude-sonnet-5   # default: the setting "model", or REEVE_MODEL
tools: [read, grep, find, ls]
maxTurns: 20
budget:
  maxCostUsd: 0.50
  maxTokens: 500000                  # limits a model without a known price
# subAgents: [other-agent]           # agents of this workspace that it may hire
---

You review code. Read the files before you judge them. Report errors first, each with file and line, and say what
would fix it.
`;

const prompt = `---
description: Explains a file
---

Explain what $1 does, for a reader who knows the language but not this project.
`;

const skill = `---
name: commit-message
description: Writes a commit message. Use it when the user asks to commit changes.
---

1. Read the change.
2. Write one line of at most 72 characters in the imperative, then a blank line, then why the change is made.
`;

const config = `// Agents and options in code. Reeve loads this file only after: reeve trust
import { defineConfig } from "reeve/workspace";

export default defineConfig({
  agents: [],
});
`;

const instructions = `# Instructions for agents

<!-- Every agent that works in this folder reads this file. Say how to build and test, and what to leave alone. -->
`;

/** Returns the files of a new workspace, by their path. */
function filesOf(folder: string): Readonly<Record<string, string>> {
  return {
    "AGENTS.md": instructions,
    // Every loader reads this ending as a module, whatever package.json says.
    [isCommonJs(join(folder, "reeve.config.ts")) ? "reeve.config.mts" : "reeve.config.ts"]: config,
    ".reeve/.gitignore": "# The store of runs\nreeve.db*\n",
    ".reeve/settings.json": settings(folder),
    ".reeve/agents/reviewer.md": reviewer,
    ".reeve/prompts/explain.md": prompt,
    ".reeve/skills/commit-message/SKILL.md": skill,
  };
}

/** Options of `reeve init`. */
export interface InitOptions {
  /** Whether a lead is also written, with the agent programs of this machine as employees. Default: `false`. */
  readonly company?: boolean;
}

/** Writes commented files as a starting point. Existing files are never changed. */
export async function initCommand(
  path: string | undefined,
  { company = false }: InitOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const folder = resolve(path ?? ".");
  const more = company ? companyFiles(terminal.env["PATH"]) : {};
  for (const [name, text] of Object.entries({ ...filesOf(folder), ...more })) {
    const target = join(folder, name);
    const isNew = await write(target, text);
    if (isNew) await terminal.out(target);
    else terminal.say(`reeve: ${printable(target)} exists and is unchanged`);
  }
  const [agent, input] = company
    ? ["lead", "Fix the failing test."]
    : ["reviewer", "What does this project do?"];
  terminal.say(
    `reeve: look at the files and run reeve trust, then reeve chat --agent ${agent} --model provider/id, or reeve run --agent ${agent} "${input}" --model provider/id`,
  );
  return "ok";
}

async function write(path: string, text: string): Promise<boolean> {
  try {
    await makeFolder(dirname(path));
  } catch (error) {
    throw unwritable(path, error);
  }
  try {
    await writeFile(path, text, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw unwritable(path, error);
  }
}

function unwritable(path: string, error: unknown): Fault {
  const { code, message } = error as NodeJS.ErrnoException;
  const isFile = code === "EEXIST" || code === "ENOTDIR";
  const problem = isFile ? "one of its folders is a file; move that file" : message;
  return new Fault("invalid_argument", `${path} cannot be written: ${problem}`, { cause: error });
}
