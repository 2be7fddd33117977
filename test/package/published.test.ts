import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";

const root = inject("builtPackage");

async function run(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runNode(args, root);
  expect(code === 0 || `${stdout}${stderr}`).toBe(true);
  return stdout;
}

describe("the published package", () => {
  test.for([
    {
      path: "reeve",
      program: `
        import { Agent, classifyError, composeGate, CostTracker, fallback, inMemoryApprovals, memoryStore, namedModel, openRuntime, permissions, sha256, slidingWindow, tool, toolHooks } from "reeve";
        export const rules = [permissions({}), toolHooks(), composeGate({}), inMemoryApprovals(), slidingWindow({})];
        export const clock = tool({ name: "clock", description: "d", inputSchema: { type: "object" } as const, execute: async (_, ctx) => ctx });
        export const models = [namedModel("anthropic/x"), fallback([namedModel("anthropic/x")])];
        export const store = memoryStore({ hash: sha256 });
        export const agent = new Agent({ name: "a", model: "anthropic/x", tools: [clock] });
        export const [asked, streamed, asTool] = [() => agent.invoke("x"), () => agent.stream("x"), agent.asTool()];
        export const runtime = await openRuntime();
        export const run = await runtime.submit(agent, "x");
        export const [snapshot, runs, approvals] = [() => run.snapshot(), () => runtime.list(), () => runtime.approvals()];
        export const [usage, schedules] = [() => runtime.usage({ by: "day" }), () => runtime.schedules.list()];
        export const [tree, entries] = [() => runtime.sessions.tree("s"), () => runtime.sessions.entries("s")];
        export const [cost, error] = [new CostTracker().total, classifyError(new Error("x"))];
      `,
    },
    {
      path: "reeve/tools",
      program: `
        import { bashTool, fetchTool, fileTools, readTool } from "reeve/tools";
        export const tools = [readTool({ root: "." }), bashTool({ root: "." }), fetchTool({})];
        export const files = fileTools({ root: "." });
      `,
    },
    {
      path: "reeve/testing",
      program: `
        import { scriptedModel, sequentialIds } from "reeve/testing";
        export const [model, ids] = [scriptedModel([]), sequentialIds()];
        export const calls = model.calls;
      `,
    },
  ])(
    "TypeScript can declare what functions of $path return in a program that imports nothing else",
    async ({ program }) => {
      const folder = await mkdtemp(join(inject("installed").project, "declared-"));
      onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
      await mkdir(join(folder, "node_modules/@types"), { recursive: true });
      await symlink(root, join(folder, "node_modules/reeve"));
      await symlink(join(repository, "node_modules/@types/node"), join(folder, "node_modules/@types/node"));
      await writeFile(join(folder, "package.json"), `{"type":"module"}`);
      await writeFile(join(folder, "program.ts"), program);
      const options = {
        module: "nodenext",
        target: "es2024",
        strict: true,
        skipLibCheck: true,
        types: ["node"],
      };
      const compilerOptions = { ...options, declaration: true, emitDeclarationOnly: true };
      await writeFile(
        join(folder, "tsconfig.json"),
        JSON.stringify({ compilerOptions, include: ["program.ts"] }),
      );
      const tsc = join(repository, "node_modules/typescript/bin/tsc");
      const { stdout } = await runNode([tsc, "-p", folder, "--pretty", "false"], folder);
      expect(stdout).toBe("");
    },
  );

  test("importing the published package loads fewer than 60 files", async () => {
    const code = `
      import { registerHooks } from "node:module";
      const seen = new Set();
      registerHooks({ resolve(specifier, context, next) { const found = next(specifier, context); seen.add(found.url); return found; } });
      await import("reeve");
      console.log([...seen].filter((url) => url.startsWith("file:")).length);
    `;
    expect(Number(await run("--input-type=module", "--eval", code))).toBeLessThan(60);
  });

  test("the published package contains the terminal library with its licences, which reeve --help does not load", async () => {
    const notice = await readFile(join(root, "dist/bundled-licences.txt"), "utf8");
    for (const part of [
      "pi-tui 0.87.1 (MIT)",
      "Mario Zechner",
      "get-east-asian-width",
      "Sindre Sorhus",
      "marked",
      "Christopher Jeffrey",
    ])
      expect(notice).toContain(part);
    const loaded = `import { registerHooks } from "node:module";
      registerHooks({ load: (url, context, next) => (process.stderr.write(url + "\\n"), next(url, context)) });`;
    const hooks = `data:text/javascript,${encodeURIComponent(loaded)}`;
    const command = join(root, "dist/surfaces/cli/main.js");
    const { code, stdout, stderr } = await runNode(["--import", hooks, command, "--help"], root);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}chat /mu);
    expect(stderr).toContain("surfaces/cli/main.js");
    expect(stderr).not.toMatch(/pi-screen|pi-tui|chunks\/server-/u);
    expect(stderr).not.toContain("chat-command");
  });

  test("the search tools of the published package work, also in a program passed with --eval", async () => {
    const code = `
      const { findTool, grepTool } = await import("reeve/tools");
      const context = { signal: new AbortController().signal };
      const said = [];
      for (const [tool, input] of [[findTool, { pattern: "LIC*" }], [grepTool, { pattern: "MIT License", glob: "LIC*" }]])
        said.push((await tool({ root: "." }).execute(input, context)).output.text);
      console.log(said.join(" "));
    `;
    expect(await run("--input-type=module", "--eval", code)).toBe("LICENSE LICENSE:1: MIT License\n");
  });

  test("the checkpoint thread of the published package starts and writes the SQLite log back into its file", async () => {
    const code = `
      import { Checkpointer } from "./dist/runtime/stores/sqlite/db/checkpointer.js";
      import { DatabaseSync } from "node:sqlite";
      const path = process.argv[1];
      const database = new DatabaseSync(path);
      database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (b); INSERT INTO t VALUES (zeroblob(100000))");
      const before = database.prepare("PRAGMA page_count").get().page_count * 4096;
      const checkpointer = new Checkpointer(path);
      checkpointer.note(2 ** 30);
      await checkpointer.close();
      const { statSync } = await import("node:fs");
      console.log(statSync(path).size >= before);
    `;
    const place = await mkdtemp(join(tmpdir(), "reeve-log-"));
    onTestFinished(() => rm(place, { recursive: true, force: true, maxRetries: 10 }));
    expect(await run("--input-type=module", "--eval", code, "--", join(place, "log.db"))).toBe("true\n");
  });

  test("the published command loads provider packages from where Reeve is installed, and says how to install a missing one", async () => {
    const place = await mkdtemp(join(tmpdir(), "reeve-project-"));
    onTestFinished(() => rm(place, { recursive: true, force: true, maxRetries: 10 }));
    const [project, home] = [join(place, "project"), join(place, "global/node_modules/reeve")];
    await mkdir(join(home, "node_modules"), { recursive: true });
    await mkdir(project);
    const isLoaded = (path: string): boolean => !path.endsWith(".d.ts");
    for (const part of ["dist", "package.json"])
      await cp(join(root, part), join(home, part), { recursive: true, filter: isLoaded });
    for (const name of ["commander", "ajv", "tinyglobby", "diff", "yaml"])
      await symlink(join(repository, "node_modules", name), join(home, "node_modules", name));
    const command = join(home, "dist/surfaces/cli/main.js");
    const ask = () =>
      runNode(
        [command, "run", "hello", "--model", "openai-compatible/m", "--base-url", "http://127.0.0.1:1"],
        project,
      );
    expect((await ask()).stderr).toContain("npm install @ai-sdk/openai-compatible");
    const provide = async (folder: string): Promise<void> => {
      const own = join(folder, "node_modules/@ai-sdk/openai-compatible");
      await mkdir(own, { recursive: true });
      await writeFile(
        join(own, "package.json"),
        `{"type":"module","exports":{"import":"./index.js","default":"./index.js"}}`,
      );
      await writeFile(join(own, "index.js"), "export {};");
    };
    await provide(project);
    expect((await ask()).stderr).toContain("is not loaded, because the project is not trusted");
    await provide(join(place, "global"));
    expect((await ask()).stderr).toContain("does not export createOpenAICompatible");
  });
});
