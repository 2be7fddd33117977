import { join } from "node:path";
import { expect, test } from "vitest";
import { trustCommand } from "../../../src/surfaces/cli/commands/workspace/trust-command.ts";
import { askTrust } from "../../../src/surfaces/cli/setup/ask-trust.ts";
import { openAskedWorkspace } from "../../../src/surfaces/cli/setup/run-workspace.ts";
import type { Terminal } from "../../../src/surfaces/cli/terminal/terminal.ts";
import { openWorkspace } from "../../../src/workspace/workspace.ts";
import { Fault } from "../../../src/kernel/index.ts";
import { testFolders } from "../../workspace/folders.ts";

/** A terminal at which a person gives this answer. `undefined` stands for no terminal. */
function terminalOf(answer: string | null | undefined) {
  const said: string[] = [];
  const terminal: Partial<Terminal> = {
    canAsk: answer !== undefined,
    say: (line) => void said.push(line),
    ask: async (question) => {
      said.push(question);
      return answer;
    },
  };
  return { said, terminal: terminal as Terminal };
}

test.for([
  ["y", true],
  ["YES", true],
  ["n", false],
  ["", false],
  [null, false],
  [undefined, false],
] as const)("the answer %j to the question of reeve trust means %s", async ([answer, isTrusted]) => {
  const { project, home, write } = await testFolders();
  await write({ ".reeve/SYSTEM.md": "x\u{1b}[2J" });
  const workspace = await openWorkspace({ cwd: project, home, env: {} });
  const { said, terminal } = terminalOf(answer);
  await askTrust(workspace, terminal);
  expect(workspace.isTrusted).toBe(isTrusted);
  const shown = `${join(project, ".reeve/SYSTEM.md")}: a system prompt needs trust`;
  const asked = [expect.stringContaining(shown), expect.stringContaining("Trust them as they are now?")];
  expect(said).toEqual(answer === undefined ? [] : asked);
});

test("reeve trust asks no question if nothing needs trust", async () => {
  const { project, home, write } = await testFolders();
  await write({ "AGENTS.md": "x", ".reeve/prompts/a.md": "x" });
  const { said, terminal } = terminalOf("y");
  await askTrust(await openWorkspace({ cwd: project, home, env: {} }), terminal);
  expect(said).toEqual([]);
});

test("the question of reeve trust names code that is fetched, and what cannot be checked, which only a person can accept", async () => {
  const { project, home, write } = await testFolders();
  const mcpServers = { a: { command: "npx", args: ["tool"] }, b: { command: "make", args: ["serve"] } };
  await write({ ".mcp.json": JSON.stringify({ mcpServers }) });
  const open = () => openWorkspace({ cwd: project, home, env: {} });
  const { said, terminal } = terminalOf("y");
  await askTrust(await open(), terminal);
  expect(said.slice(1, 3)).toEqual([
    '  not covered: the code that "npx tool" fetches or mounts is not covered',
    '  cannot be checked: "make serve" may run files that Reeve cannot find',
  ]);
  expect((await open()).isTrusted).toBe(true);
  await (await open()).distrust();
  const options = { yes: true };
  const out: string[] = [];
  const unattended = { ...terminalOf(undefined).terminal, out: async (line: string) => void out.push(line) };
  await atHome(home, () =>
    expect(trustCommand(project, options, unattended)).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("or run reeve trust at a terminal"),
    }),
  );
  expect(out.join("\n")).toContain("cannot be checked");
  expect((await open()).isTrusted).toBe(false);
});

test.for([
  ["y", true],
  ["n", false],
  [undefined, false],
] as const)(
  "a person who answers %j to the question of trust about a changed guardrail lets the project run: %s",
  async ([answer, runs]) => {
    const { project, home, write } = await testFolders();
    await write({ ".reeve/guardrails/g.mjs": 'export default { name: "g" };' });
    await (await openWorkspace({ cwd: project, home, env: {} })).trust();
    await write({ ".reeve/guardrails/g.mjs": 'export default { name: "g", changed: true };' });
    const { said, terminal } = terminalOf(answer);
    let outcome: unknown;
    await atHome(home, async () => {
      const opening = openAskedWorkspace({ root: project }, terminal);
      outcome = await opening.then(
        ({ isTrusted }) => isTrusted,
        (error: unknown) => Fault.from(error).code,
      );
    });
    expect(outcome).toBe(runs ? true : "permission_denied");
    expect(said.length).toBe(answer === undefined ? 0 : 3);
  },
);

/** Calls a function while the given folder is the home of the user. */
async function atHome(home: string, call: () => Promise<void>): Promise<void> {
  const before = process.env["REEVE_HOME"];
  process.env["REEVE_HOME"] = home;
  try {
    await call();
  } finally {
    process.env["REEVE_HOME"] = before;
  }
}
