import { chmod, readFile, rm, symlink } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Agent, openRuntime } from "../../src/entries/index.ts";
import { Fault } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openWorkspace } from "../../src/workspace/workspace.ts";
import { testFolders, type TestFolders } from "./folders.ts";

type Files = Readonly<Record<string, string>>;

/** A list of MCP servers with one program. */
function server(command: string, args: readonly string[] = [], more: object = {}): string {
  return JSON.stringify({ mcpServers: { s: { command, args, ...more } } });
}

function open({ project, home }: TestFolders) {
  const env = { PATH: process.env["PATH"], REEVE_MODEL: "scripted/x" };
  return openWorkspace({ cwd: project, home, env, resolveModel: () => scriptedModel(["Done."]) });
}

/** Whether the trust in a project holds. A project with code that can limit its agents does not open without it. */
async function holds(folders: TestFolders): Promise<boolean> {
  try {
    return (await open(folders)).isTrusted;
  } catch (error) {
    if (Fault.is(error) && error.details?.["lostTrust"] === folders.project) return false;
    throw error;
  }
}

const start = "export default () => {};";

/** A server without tools and without packages, whose files trust would read. */
const plainServer = `
import { createInterface } from "node:readline";
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const serverInfo = { name: "plain", version: "1.0.0" };
  const hello = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo };
  const result = method === "initialize" ? hello : { tools: [] };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
});`;

/** Code that runs although its text is in none of the files that a workspace lists, and the change that an attacker makes. */
const attacks: readonly (readonly [name: string, files: Files, change: Files])[] = [
  [
    "a package without a lock file",
    { ".reeve/extensions/a.mjs": `import "left-pad"; ${start}`, "node_modules/left-pad/index.js": "1" },
    { "node_modules/left-pad/index.js": "2" },
  ],
  [
    "a package whose lock file stays the same",
    {
      ".reeve/extensions/a.mjs": `import "left-pad"; ${start}`,
      "node_modules/left-pad/index.js": "1",
      "package-lock.json": '{ "packages": { "node_modules/left-pad": { "integrity": "sha512-a" } } }',
    },
    { "node_modules/left-pad/index.js": "2" },
  ],
  [
    "a file of a package by its path",
    {
      ".reeve/extensions/a.mjs": `import "../../node_modules/p/deep/x.js"; ${start}`,
      "node_modules/p/deep/x.js": "1",
    },
    { "node_modules/p/deep/x.js": "2" },
  ],
  [
    "a package that another package needs",
    {
      ".reeve/extensions/a.mjs": `import "@s/one"; ${start}`,
      "node_modules/@s/one/package.json": '{ "dependencies": { "two": "1" } }',
      "node_modules/@s/one/index.js": "1",
      "node_modules/two/lib/x.js": "1",
    },
    { "node_modules/two/lib/x.js": "2" },
  ],
  [
    "a nearer package of the same name",
    { ".reeve/extensions/a.mjs": `import "p"; ${start}`, "node_modules/p/index.js": "1" },
    { ".reeve/node_modules/p/index.js": "2" },
  ],
  [
    "a file in .reeve/node_modules",
    {
      ".reeve/extensions/a.mjs": `import "../node_modules/x.mjs"; ${start}`,
      ".reeve/node_modules/x.mjs": "1",
    },
    { ".reeve/node_modules/x.mjs": "2" },
  ],
  [
    String.raw`a name with \x79`,
    { ".reeve/extensions/a.mjs": String.raw`import "../../lib/\x79.mjs"; ${start}`, "lib/y.mjs": "1" },
    { "lib/y.mjs": "2" },
  ],
  [
    String.raw`a name with \u0079 and \u{79}`,
    {
      ".reeve/extensions/a.mjs": String.raw`import "../../lib/\u0079\u{79}.mjs"; ${start}`,
      "lib/yy.mjs": "1",
    },
    { "lib/yy.mjs": "2" },
  ],
  [
    "a name with %79",
    { ".reeve/extensions/a.mjs": `import "../../lib/%79.mjs?x#y"; ${start}`, "lib/y.mjs": "1" },
    { "lib/y.mjs": "2" },
  ],
  [
    "a package whose name has an escape",
    { ".reeve/extensions/a.mjs": String.raw`import "p\x61d"; ${start}`, "node_modules/pad/index.js": "1" },
    { "node_modules/pad/index.js": "2" },
  ],
  [
    "a name behind a quotation mark in a comment",
    { ".reeve/extensions/a.mjs": `/* " ' */ import "../../lib/y.mjs"; ${start}`, "lib/y.mjs": "1" },
    { "lib/y.mjs": "2" },
  ],
  [
    "a target of imports in package.json",
    {
      ".reeve/extensions/a.mjs": `import "#y"; ${start}`,
      "package.json": '{ "imports": { "#y": "./lib/y.mjs" } }',
      "lib/y.mjs": "1",
    },
    { "lib/y.mjs": "2" },
  ],
  [
    "another target of imports in package.json",
    {
      ".reeve/extensions/a.mjs": `import "#y"; ${start}`,
      "package.json": '{ "imports": { "#y": "./lib/y.mjs" } }',
      "lib/y.mjs": "1",
    },
    { "package.json": '{ "imports": { "#y": "./lib/z.mjs" } }', "lib/z.mjs": "2" },
  ],
  [
    "a file outside the project",
    { ".reeve/extensions/a.mjs": `import "../../../user/shared.mjs"; ${start}`, "~/shared.mjs": "1" },
    { "~/shared.mjs": "2" },
  ],
  [
    "a file that takes the place of a folder",
    { ".reeve/extensions/a.mjs": `require("../../lib/x"); ${start}`, "lib/x/index.js": "1" },
    { "lib/x.js": "2" },
  ],
  [
    "a program that code starts by its path in the project",
    { ".reeve/extensions/a.mjs": `spawn("scripts/x.sh"); ${start}`, "scripts/x.sh": "1" },
    { "scripts/x.sh": "2" },
  ],
  [
    "a program in a command line of code",
    {
      ".reeve/extensions/a.mjs": `import { exec } from "node:child_process"; exec("node --x scripts/x.mjs 1"); ${start}`,
      "scripts/x.mjs": 'import "./y.mjs";',
      "scripts/y.mjs": "1",
    },
    { "scripts/y.mjs": "2" },
  ],
  [
    "a module of a thread",
    {
      ".reeve/extensions/a.mjs": `new Worker(new URL("./parts/w.mjs", import.meta.url)); ${start}`,
      ".reeve/extensions/parts/w.mjs": "1",
    },
    { ".reeve/extensions/parts/w.mjs": "2" },
  ],
  [
    "a program of .reeve/mcp.json, which is started in the project",
    { ".reeve/mcp.json": server("node", ["server.mjs"]), "server.mjs": "1" },
    { "server.mjs": "2" },
  ],
  ["a command of .mcp.json", { ".mcp.json": server("./run.sh"), "run.sh": "true" }, { "run.sh": "false" }],
  [
    "a file that a program imports",
    { ".mcp.json": server("node", ["server.mjs"]), "server.mjs": 'import "./lib/x.mjs";', "lib/x.mjs": "1" },
    { "lib/x.mjs": "2" },
  ],
  [
    "the main file of a folder",
    { ".mcp.json": server("node", ["./srv"]), "srv/package.json": '{ "main": "m.js" }', "srv/m.js": "1" },
    { "srv/m.js": "2" },
  ],
  [
    "a script without an ending",
    { ".mcp.json": server("python3", ["-u", "srv"]), srv: "print(1)" },
    { srv: "print(2)" },
  ],
  [
    "--require=./x",
    { ".mcp.json": server("node", ["--require=./x", "a.js"]), "x.js": "1", "a.js": "1" },
    { "x.js": "2" },
  ],
  [
    "-r ./x",
    { ".mcp.json": server("node", ["-r", "./x", "a.js"]), "x.cjs": "1", "a.js": "1" },
    { "x.cjs": "2" },
  ],
  [
    "a package of --import",
    { ".mcp.json": server("node", ["--import", "p", "a.js"]), "node_modules/p/index.js": "1", "a.js": "1" },
    { "node_modules/p/index.js": "2" },
  ],
  [
    "NODE_OPTIONS",
    {
      ".mcp.json": server("node", ["a.js"], { env: { NODE_OPTIONS: "--require ./x" } }),
      "x.js": "1",
      "a.js": "1",
    },
    { "x.js": "2" },
  ],
  [
    "PYTHONPATH",
    {
      ".mcp.json": server("python3", ["a.py"], { env: { PYTHONPATH: "./lib" } }),
      "lib/y.py": "1",
      "a.py": "1",
    },
    { "lib/y.py": "2" },
  ],
  ["node -e", { ".mcp.json": server("node", ["-e", 'import("./x.mjs")']), "x.mjs": "1" }, { "x.mjs": "2" }],
  [
    "sh -c",
    { ".mcp.json": server("sh", ["-c", "A=b exec node ./x.js && true"]), "x.js": "1" },
    { "x.js": "2" },
  ],
  [
    "env sh -c with a runtime option",
    { ".mcp.json": server("env", ["sh", "-c", "node --require=./x a.js"]), "x.js": "1", "a.js": "1" },
    { "x.js": "2" },
  ],
  [
    "a module that Python imports",
    { ".mcp.json": server("python3", ["a.py"]), "a.py": "from pkg import (one,\n two)\n", "pkg/two.py": "1" },
    { "pkg/two.py": "2" },
  ],
  [
    "python -m",
    { ".mcp.json": server("python3", ["-m", "pkg"]), "pkg/__main__.py": "1" },
    { "pkg/__main__.py": "2" },
  ],
  [
    "a file that hides a module of Python's library",
    { ".mcp.json": server("python3", ["a.py"]), "a.py": "import json\n" },
    { "json.py": "print(1)" },
  ],
  [
    "a package of the folder that npx runs",
    {
      ".mcp.json": server("npx", ["-y", "tool@1.0.0"]),
      "node_modules/tool/package.json": '{ "bin": "cli.js" }',
      "node_modules/tool/cli.js": "1",
    },
    { "node_modules/tool/cli.js": "2" },
  ],
  [
    "a program in a folder that an option names",
    { ".mcp.json": server("uv", ["--directory", "srv", "run", "main.py"]), "srv/main.py": "1" },
    { "srv/main.py": "2" },
  ],
  [
    "a file that bun loads before the script",
    {
      ".mcp.json": server("bun", ["run", "a.ts"]),
      "bunfig.toml": 'preload = ["./x.ts"]',
      "x.ts": "1",
      "a.ts": "1",
    },
    { "x.ts": "2" },
  ],
  [
    "the registry that npx asks",
    { ".mcp.json": server("npx", ["tool@1.0.0"]), ".npmrc": "" },
    { ".npmrc": "registry=http://evil.example" },
  ],
  [
    "a program in a working folder of its own",
    { ".mcp.json": server("node", ["a.js"], { cwd: "srv" }), "srv/a.js": "1" },
    { "srv/a.js": "2" },
  ],
  [
    "a program with a variable in its path",
    { ".mcp.json": server("node", ["${NOWHERE:-srv}/a.js"]), "srv/a.js": "1" },
    { "srv/a.js": "2" },
  ],
  [
    "the main folder of a folder",
    {
      ".mcp.json": server("node", ["a.js"]),
      "a.js": 'require("./lib")',
      "lib/package.json": '{ "main": "m" }',
      "lib/m/index.js": "1",
    },
    { "lib/m/index.js": "2" },
  ],
  [
    "a package whose main file is elsewhere",
    {
      ".mcp.json": server("node", ["a.mjs"]),
      "a.mjs": 'import "p";',
      "node_modules/p/package.json": '{ "main": "../../y.cjs" }',
      "y.cjs": "1",
    },
    { "y.cjs": "2" },
  ],
  ...["imports", "exports"].map((field): (typeof attacks)[number] => [
    `a pattern of ${field} for files in the root`,
    {
      ".mcp.json": server("node", ["a.mjs"]),
      "package.json": `{ "name": "own", "${field}": { "${field === "imports" ? "#" : "./"}*": "./*.mjs" } }`,
      "a.mjs": `import "${field === "imports" ? "#" : "own/"}y";`,
      "y.mjs": "1",
    },
    { "y.mjs": "2" },
  ]),
  // Node accepts every name of a folder, and a package may have the name of a module of Node or of Reeve.
  ...["p+q", "p\u00e9", "@a+b/c", "p/@s/x.js", "p/a b/x.js", "punycode/", "process/x.js", "reeve/x.js"].map(
    (name): (typeof attacks)[number] => {
      const file = `node_modules/${name}${name.endsWith(".js") ? "" : "/index.js"}`;
      const text = `require("${name}");`;
      return [
        `a program that loads ${name}`,
        { ".mcp.json": server("node", ["a.js"]), "a.js": text, [file]: "1" },
        { [file]: "2" },
      ];
    },
  ),
  [
    "the program of the browser",
    { ".reeve/settings.json": '{ "browser": { "executablePath": "./chrome" } }', chrome: "1" },
    { chrome: "2" },
  ],
];

describe("trust ends when the executed code changes", () => {
  test.for(attacks)("trust ends when the executed code changes through %s", async ([, files, change]) => {
    const folders = await testFolders();
    await folders.write(files);
    const workspace = await open(folders);
    await workspace.trust({ acceptUnresolved: true });
    expect(await holds(folders)).toBe(true);
    await folders.write(change);
    expect(await holds(folders)).toBe(false);
  });

  test("trust ends when the executed code changes because a link leads to another file", async () => {
    const folders = await testFolders();
    const { project, write, link } = folders;
    await write({
      ".reeve/extensions/a.mjs": `import "../../x.mjs"; ${start}`,
      ".reeve/extensions/b.mjs": `import "../../one.mjs"; import "../../two.mjs"; ${start}`,
      "one.mjs": "1",
      "two.mjs": "2",
    });
    await link("x.mjs", "one.mjs");
    await (await open(folders)).trust();
    expect(await holds(folders)).toBe(true);
    await rm(join(project, "x.mjs"));
    await symlink("two.mjs", join(project, "x.mjs"));
    expect(await holds(folders)).toBe(false);
  });

  test("trust ends when the project gets a program that the search path finds first", async () => {
    const folders = await testFolders();
    const { project, home, write } = folders;
    await write({ ".mcp.json": server("tool-of-the-folder"), "bin/tool-of-the-folder": "#!/bin/sh\ntrue\n" });
    await chmod(join(project, "bin/tool-of-the-folder"), 0o755);
    const env = { PATH: `${join(project, "bin")}:${process.env["PATH"]}` };
    await (await openWorkspace({ cwd: project, home, env })).trust({ acceptUnresolved: true });
    expect((await openWorkspace({ cwd: project, home, env })).isTrusted).toBe(true);
    await write({ "bin/tool-of-the-folder": "#!/bin/sh\nfalse\n" });
    expect((await openWorkspace({ cwd: project, home, env })).isTrusted).toBe(false);
  });

  test.for([
    [
      "data that a program uses",
      { ".mcp.json": server("node", ["a.js", "shop.db"]), "a.js": "1" },
      "shop.db",
    ],
    ["a folder that a program may read", { ".mcp.json": server("files-server", ["docs", "."]) }, "docs/a.md"],
    ["a package that nothing imports", { ".reeve/extensions/a.mjs": start }, "node_modules/p/index.js"],
  ] as const)("a decision of trust survives a change of %s", async ([, files, path]) => {
    const folders = await testFolders();
    await folders.write({ ...files, [path]: "1" });
    await (await open(folders)).trust({ acceptUnresolved: true });
    await folders.write({ [path]: "2" });
    expect((await open(folders)).isTrusted).toBe(true);
  });
});

describe("code that a decision of trust cannot cover", () => {
  test.for([
    ["npx", ["-y", "tool@1.0.0"], "npx -y tool@1.0.0"],
    ["uvx", ["tool"], "uvx tool"],
    ["docker", ["run", "-i", "image"], "docker run -i image"],
    ["env", ["A=b", "npx", "tool"], "npx tool"],
  ] as const)(
    "the question of trust names the code that %s %j fetches, and its literal arguments count",
    async ([command, args, shown]) => {
      const folders = await testFolders();
      await folders.write({ ".mcp.json": server(command, args) });
      const workspace = await open(folders);
      expect((await workspace.trustScope()).fetched).toEqual([
        `the code that ${JSON.stringify(shown)} fetches or mounts is not covered`,
      ]);
      await workspace.trust();
      await folders.write({ ".mcp.json": server(command, [...args, "--evil"]) });
      expect((await open(folders)).isTrusted).toBe(false);
    },
  );

  const computing = "await import(process.argv[2]);";
  test.for([
    ["make", { ".mcp.json": server("make", ["serve"]) }],
    ["npm run", { ".mcp.json": server("npm", ["run", "serve"]) }],
    ["bun run", { ".mcp.json": server("bun", ["run", "serve"]) }],
    ["a shell text with an expansion", { ".mcp.json": server("sh", ["-c", "node $HOME/x.js"]) }],
    ["a shell text with another folder", { ".mcp.json": server("sh", ["-c", "cd srv && node x.js"]) }],
    [
      "a shell script with a substitution",
      { ".mcp.json": server("./a.sh"), "a.sh": 'node "$(dirname $0)/x.js"' },
    ],
    ["a computed import", { ".mcp.json": server("node", ["a.mjs"]), "a.mjs": computing }],
    ["a joined name", { ".mcp.json": server("node", ["a.mjs"]), "a.mjs": 'await import("./" + x + ".js");' }],
    ["a template", { ".mcp.json": server("node", ["a.mjs"]), "a.mjs": "await import(`./${x}.js`);" }],
    [
      "createRequire of another folder in an extension",
      { ".reeve/extensions/a.mjs": `createRequire(process.cwd() + "/")(name); ${start}` },
    ],
    ["eval in an extension", { ".reeve/extensions/a.mjs": `eval(text); ${start}` }],
    [
      "a computed import in a thread of an extension",
      {
        ".reeve/extensions/a.mjs": `new Worker(new URL("../../w.mjs", import.meta.url)); ${start}`,
        "w.mjs": computing,
      },
    ],
    ["createRequire", { ".mcp.json": server("node", ["a.mjs"]), "a.mjs": "createRequire(x)(y);" }],
    [
      "a computed import of an imported file",
      { ".mcp.json": server("node", ["a.mjs"]), "a.mjs": 'import "./b.mjs";', "b.mjs": computing },
    ],
    ["importlib", { ".mcp.json": server("python3", ["a.py"]), "a.py": "import importlib\n" }],
    ["another language", { ".mcp.json": server("./a.rb"), "a.rb": "require_relative 'b'" }],
    [
      "a virtual environment",
      { ".mcp.json": server(".venv/bin/python", ["a.py"]), ".venv/bin/python": "", ".venv/pyvenv.cfg": "" },
    ],
  ] as const)("%s needs a person to be trusted, and is refused without one", async ([, files]) => {
    const folders = await testFolders();
    await folders.write(files);
    const workspace = await open(folders);
    const { unresolved } = await workspace.trustScope();
    expect(unresolved).not.toEqual([]);
    await expect(workspace.trust()).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining(unresolved[0] ?? "absent"),
    });
    expect(existsSync(join(folders.home, "trust.json"))).toBe(false);
    await workspace.trust({ acceptUnresolved: true });
    expect((await open(folders)).isTrusted).toBe(true);
  });

  test.for([
    'import x from "./b.mjs"; await import("./b.mjs"); require("./c.js"); import(/* why */ `./b.mjs`);',
    "const required = (x) => x; export default { import: 1 };",
  ])("the check of trust finds the file of the code %j", async (text) => {
    const folders = await testFolders();
    await folders.write({ ".mcp.json": server("node", ["a.mjs"]), "a.mjs": text });
    expect((await (await open(folders)).trustScope()).unresolved).toEqual([]);
  });
});

test("an extension may compute the names of files that it loads, because each file is checked when it is loaded", async () => {
  const folders = await testFolders();
  await folders.write({
    ".reeve/extensions/a.mjs": `const load = createRequire(import.meta.url); load(name); import(name); ${start}`,
  });
  expect((await (await open(folders)).trustScope()).unresolved).toEqual([]);
});

describe("the programs of a trusted project are checked when they are started", () => {
  const ran = (path: string, word = "ran"): string =>
    `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(path)}, "${word}");`;

  test("a server of the project that changes after the files were read is not started, and starts in the project's root", async () => {
    const folders = await testFolders();
    const mark = join(folders.user, "mark");
    await folders.write({
      ".reeve/mcp.json": server(process.execPath, ["server.mjs"]),
      "server.mjs": `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(mark)}, process.cwd()); ${plainServer}`,
      "sub/x": "",
    });
    const below = { ...folders, project: join(folders.project, "sub") };
    await using workspace = await open(below);
    await workspace.trust();
    await using late = await open(below);
    expect(late.isTrusted).toBe(true);
    await using runtime = await openRuntime();
    await ((await workspace.agent()) as Agent).invoke("Hi", { runtime });
    expect(await readFile(mark, "utf8")).toBe(folders.project);
    await rm(mark);
    await folders.write({ "server.mjs": ran(mark) });
    await expect(late.agent()).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("its code has changed since you trusted it; run reeve trust"),
    });
    expect(existsSync(mark)).toBe(false);
  });
});
