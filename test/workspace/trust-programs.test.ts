import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readMcpFiles } from "../../src/workspace/files/mcp-file.ts";
import type { SourceFile } from "../../src/workspace/files/source-file.ts";
import { Coverage } from "../../src/workspace/files/trust/coverage.ts";
import { addProgram } from "../../src/workspace/files/trust/programs.ts";
import { testFolders } from "./folders.ts";

type Files = Readonly<Record<string, string>>;

interface Line {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Files;
  /** Folder of the project in which the program works. */
  readonly cwd?: string;
}

type Row = readonly [name: string, line: Line, files: Files, change: Files];

async function covered(root: string, { command, args, env = {}, cwd = "" }: Line): Promise<Coverage> {
  const coverage = new Coverage(root);
  await addProgram(coverage, { command, args, env, cwd: join(root, cwd) }, process.env["PATH"] ?? "");
  return coverage;
}

/** Lines of programs that hide what they run. Without a person they are refused, or the change ends the trust. */
const hiddenPrograms: readonly Row[] = [
  ...(
    [
      [
        "a module of Python's library that Python loads itself",
        "python3",
        ["tools/server.py"],
        "tools/traceback.py",
      ],
      [
        "a package of Python that no text imports",
        "python3",
        ["tools/server.py"],
        "tools/encodings/__init__.py",
      ],
      ["a compiled module of Python", "python3", ["tools/server.py"], "tools/json.pyc"],
      ["the cache of Python", "python3", ["tools/server.py"], "tools/__pycache__/json.cpython-312.pyc"],
      ["python -um", "python3", ["-um", "pkg"], "pkg/__main__.py"],
      ["python -mpkg", "python3", ["-mpkg"], "pkg/__main__.py"],
      ["python -cimport", "python3", ["-cimport x"], "x.py"],
      ["python -I and a folder", "python3", ["-I", "srv"], "srv/__main__.py"],
      ["npx .", "npx", ["."], "cli.js"],
      ["npx -c", "npx", ["-c", "tool"], "node_modules/.bin/tool"],
      ["npx -p", "npx", ["-p", "./pkg", "tool"], "pkg/cli.js"],
      ["npx with a runner", "npx", ["-y", "tsx", "server.ts"], "server.ts"],
      [
        "npx with a program for a package",
        "npx",
        ["-y", "@s/gateway", "--stdio", "node srv"],
        "srv/index.js",
      ],
      ["npx with a new local program", "npx", ["-y", "tool"], "node_modules/.bin/tool"],
      ["npx with a new local package", "npx", ["-y", "@s/tool"], "node_modules/@s/tool/index.js"],
      ["npx in a folder below", "npx", ["-y", "tool"], "node_modules/tool/index.js", { cwd: "a/b" }],
      [
        "npx with a variable of npm",
        "npx",
        ["-y", "tool"],
        "x.js",
        { env: { npm_config_node_options: "-r./x" } },
      ],
      ["yarn", "yarn", ["serve"], "package.json"],
      ["pnpm", "pnpm", ["serve"], "package.json"],
      ["pnpm exec", "pnpm", ["exec", "tool"], "node_modules/.bin/tool"],
      ["npm exec", "npm", ["exec", "--", "tool"], "node_modules/.bin/tool"],
      ["uv run", "uv", ["run", "server"], "src/server/__init__.py"],
      ["uvx --from", "uvx", ["--from", ".", "server"], "src/server/__init__.py"],
      ["uvx python", "uvx", ["python", "-m", "pkg"], "pkg/__main__.py"],
      ["docker compose", "docker", ["compose", "run", "srv"], "compose.yaml"],
      ["docker -v", "docker", ["run", "-v", ".:/app", "node", "node", "/app/x"], "x"],
      ["docker build", "docker", ["build", "."], "Dockerfile"],
      ["direnv", "direnv", ["exec", ".", "tool"], ".envrc"],
      ["nix", "nix", ["run"], "flake.nix"],
      ["mise", "mise", ["run", "serve"], "mise.toml"],
      ["timeout", "timeout", ["9", "make"], "Makefile"],
      ["env -S", "env", ["-S", "make serve"], "Makefile"],
      ["env with a loader", "env", ["NODE_OPTIONS=-r./x", "node", "a.js"], "x.js"],
      ["ruby", "ruby", ["srv/run"], "srv/run"],
      ["perl -I", "perl", ["-Ilib", "-MX", "-e1"], "lib/X.pm"],
      ["php", "php", ["-S", "x"], "index.php"],
      ["bash with a file", "bash", ["run"], "run"],
      ["bash -lc", "bash", ["-lc", "./run"], "run"],
      ["java", "java", ["-cp", "build", "Main"], "build/Main.class"],
      ["go run", "go", ["run", "."], "main.go"],
      ["node --run", "node", ["--run", "serve"], "package.json"],
      ["node --test", "node", ["--test"], "a.test.js"],
      ["node --env-file", "node", ["--env-file=.env", "a.js"], ".env"],
      ["node and a file without an ending", "node", ["srv/run"], "srv/run"],
      ["a program outside with a folder", "/opt/vendor/tool", ["--plugins", "plugins"], "plugins/x.lua"],
      ["a program outside with this folder", "/opt/vendor/tool", ["."], "tool.conf"],
      ["LD_PRELOAD", "/opt/vendor/tool", [], "x.so", { env: { LD_PRELOAD: "./x.so" } }],
      ["BASH_ENV", "node", ["a.js"], "x.sh", { env: { BASH_ENV: "./x.sh" } }],
    ] as const
  ).map(([name, command, args, path, more = {}]): Row => [
    name,
    { command, args, ...more },
    {
      "tools/server.py": "print(1)",
      "a.js": "1",
      "srv/index.js": "1",
      "plugins/x": "",
      "srv/run": "1",
    },
    { [path]: "2" },
  ]),
  ...[
    'const load = require; load("./hid" + "den.cjs");',
    '[require][0]("./hid" + "den.cjs");',
    'module.require("./hid" + "den.cjs");',
    'require.main.require("./hid" + "den.cjs");',
    String.raw`r\u0065quire("./hid" + "den.cjs");`,
    'process.getBuiltinModule("module").createRequire(__filename)("./hid" + "den.cjs");',
    "Function(\"return import('./hid' + 'den.cjs')\")();",
    'eval /* why */ (text + "den.cjs");',
    'new Worker("./hid" + "den.cjs");',
    'require("node:child_process").fork("./hid" + "den.cjs");',
    'const { exec: go } = require("child_process"); go("make");',
    'require("node:vm").runInThisContext(text);',
    String.raw`import(".\/hid\tden.cjs");`,
    String.raw`import("./lib\\..\\hidden.cjs");`,
    `require("${"./".repeat(600)}hidden.cjs");`,
    String.raw`import("\x2e/${"./".repeat(600)}hidden.cjs");`,
    `import "lib/${"./".repeat(600)}x.js";`,
    `import "data:text/javascript;base64,${btoa('import "./hidden.cjs"')}";`,
    'import { Session } from "node:inspector";',
    'import { run } from "node:test";',
    "database.loadExtension(process.cwd());",
    'require("./other.txt");',
    'require("./plain");',
  ].map((text): Row => [
    `the code ${text.slice(0, 80)}`,
    { command: "node", args: ["a.cjs"] },
    {
      "a.cjs": text,
      "hidden.cjs": "1",
      "lib/x": "",
      "other.txt": 'require("./hidden.cjs");',
      plain: 'require("./hidden.cjs");',
    },
    { "hidden.cjs": "2" },
  ]),
  ...[
    "import code\ncode.InteractiveInterpreter().runsource(text)",
    'import site\nsite.addpackage(".", "hidden", None)',
    'import pickle\npickle.load(open("hidden", "rb"))',
    'import logging.config\nlogging.config.fileConfig("hidden")',
  ].map((text): Row => [
    `the code ${text}`,
    { command: "python3", args: ["srv/a.py"] },
    { "srv/a.py": text, hidden: "1" },
    { hidden: "2" },
  ]),
  [
    "the settings of npm in the folder",
    { command: "npx", args: ["-y", "tool"] },
    { ".npmrc": "node-options=--require ./x.js", "x.js": "1" },
    { "x.js": "2" },
  ],
  [
    "the registry that npm finds above the working folder",
    { command: "npx", args: ["-y", "tool"], cwd: "a/b" },
    { ".npmrc": "registry=https://one.example" },
    { ".npmrc": "registry=https://two.example" },
  ],
  [
    "a folder that Node starts",
    { command: "node", args: ["srv"] },
    { "srv/package.json": '{ "main": "./m" }', "srv/m/index.js": "1" },
    { "srv/m.js": "2" },
  ],
];

async function seen(root: string, line: Line) {
  const coverage = await covered(root, line);
  return { hash: coverage.hash(), unresolved: coverage.unresolved };
}

describe("program lines of a project", () => {
  test.for(hiddenPrograms)(
    "%s in a command of a project is refused without a person, or its change ends the trust",
    async ([, line, files, change]) => {
      const { project, write } = await testFolders();
      await write(files);
      const before = await seen(project, line);
      await write(change);
      const isSeen = (await seen(project, line)).hash !== before.hash;
      expect(before.unresolved.length > 0 || isSeen).toBe(true);
    },
  );

  test.for([
    ["node", ["--no-warnings", "a.mjs", "--port", "1"], {}],
    ["env", ["A=b", "node", "./a.mjs"], { NODE_ENV: "production" }],
    ["python3", ["-u", "srv/a.py", "data.db"], {}],
    ["npx", ["-y", "@s/files@1.2.3", "."], {}],
    ["npx", ["-y", "memory"], { MEMORY_FILE_PATH: "./memory.json" }],
    ["uvx", ["tool==1.0", "--repository", "."], {}],
    ["docker", ["run", "-i", "--rm", "-e", "TOKEN", "ghcr.io/s/server:1", "stdio"], {}],
    ["/opt/vendor/server", ["--url", "https://example.test/x", "stdio"], { API_KEY: "k" }],
  ] as const)("the check of trust understands the command line %s %j", async ([command, args, env]) => {
    const { project, write } = await testFolders();
    await write({
      "a.mjs": "// The servers require a port.",
      "srv/a.py": 'import json, re\nre.compile("a")\n',
      "memory.json": "{}",
    });
    expect((await covered(project, { command, args, env })).unresolved).toEqual([]);
  });

  test.for([
    [
      "memory.json",
      { command: "npx", args: ["-y", "@s/memory"], env: { MEMORY_FILE_PATH: "./memory.json" } },
    ],
    ["memory.jsonl", { command: "npx", args: ["-y", "@s/memory", "memory.jsonl"] }],
    ["shop.duckdb", { command: "uvx", args: ["duck", "--db-path=shop.duckdb"] }],
    ["main.js", { command: "npx", args: ["-y", "@s/files", "."] }],
  ] as const)(
    "a change of %s, which is data of the program, does not end the trust",
    async ([path, line]) => {
      const { project, write } = await testFolders();
      await write({ "package.json": '{ "main": "main.js" }', [path]: "1" });
      const before = await seen(project, line);
      await write({ [path]: "2" });
      expect(await seen(project, line)).toEqual(before);
      expect(before.unresolved).toEqual([]);
    },
  );

  test("Python of a trusted project writes no compiled files, because these would end the trust", async () => {
    const { project, write } = await testFolders();
    const env = { A: "b" };
    await write({
      ".mcp.json": JSON.stringify({ mcpServers: { s: { command: "python3", args: [], env } } }),
    });
    const file: SourceFile = {
      name: "mcp",
      path: join(project, ".mcp.json"),
      origin: "project",
      root: project,
    };
    const { s } = await readMcpFiles([file], (text) => text);
    expect(s).toMatchObject({ env: { A: "b", PYTHONDONTWRITEBYTECODE: "1" } });
  });
});
