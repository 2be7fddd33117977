import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";
import { testFolders, type TestFolders } from "../workspace/folders.ts";

describe("the code of a trusted project is checked when it is loaded", () => {
  const ran = (path: string, word = "ran"): string =>
    `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(path)}, "${word}");`;

  /** Loads modules of a project in a process of its own, because Vitest loads modules itself. Returns what each one said. */
  async function loaded(
    { project }: TestFolders,
    files: readonly string[],
    then = "",
  ): Promise<readonly string[]> {
    const source = join(repository, "src/workspace/files");
    const program = `
      import { writeFileSync } from "node:fs";
      import { join } from "node:path";
      import { Coverage } from ${JSON.stringify(join(source, "trust/coverage.ts"))};
      import { loadModule } from ${JSON.stringify(join(source, "modules.ts"))};
      const root = ${JSON.stringify(project)};
      const said = [];
      for (const name of ${JSON.stringify(files)}) {
        const path = join(root, name);
        const coverage = new Coverage(root);
        await coverage.addFile(path);
        ${then}
        const loading = loadModule({ path, root, covered: coverage.files }, 60_000);
        said.push(await loading.then(() => "loaded", ({ code, message }) => code + " " + message));
      }
      console.log(JSON.stringify(said));`;
    const { stdout, stderr } = await runNode(["--input-type=module", "-e", program], project);
    if (stdout === "") throw new Error(stderr);
    return JSON.parse(stdout) as readonly string[];
  }

  const refused = (path: string): unknown =>
    expect.stringContaining(
      `permission_denied ${path} is not loaded, because your trust does not cover it as it is`,
    );

  test("a module of a project cannot load a file under a computed name if the trust decision does not cover the file", async () => {
    const folders = await testFolders();
    const { project, user, write } = folders;
    const mark = join(user, "mark");
    const marking = `require("node:fs").writeFileSync(${JSON.stringify(mark)}, "");`;
    await write({
      "import.mjs": 'const parts = ["./hidden", "x.mjs"]; await import(parts.join("/"));',
      "typed.ts": 'const parts: string[] = ["./hidden", "x.mjs"]; await import(parts.join("/"));',
      "require.mjs": 'import load from "loader"; load("hidden");',
      "created.mjs":
        'import { createRequire } from "node:module"; const name = "hidden"; createRequire(import.meta.url)(`./${name}/y.cjs`);',
      "package.mjs": 'import load from "loader"; load.phantom();',
      "common.mjs": 'import "./lib/computing.cjs";',
      "lib/computing.cjs": 'require("./deeper.cjs");',
      "lib/deeper.cjs": 'require("../hid" + "den/y.cjs");',
      "lib/typed.cts": 'require("../hid" + "den/y.cjs");',
      "commonTyped.mjs": 'import "./lib/typed.cts";',
      "good.mjs":
        'import value from "./lib/value.json" with { type: "json" }; import "loader"; import "./lib/c.cjs"; import "reeve/workspace"; if (value !== 1) throw value;',
      "lib/value.json": "1",
      "lib/c.cjs": 'require("loader").inner("inner");',
      "node_modules/loader/package.json": '{ "main": "index.cjs" }',
      "node_modules/loader/index.cjs": `
        module.exports = (name) => require(process.cwd() + "/" + name + "/y.cjs");
        module.exports.inner = (name) => require("./" + name + ".js");
        module.exports.phantom = () => require("phan" + "tom");`,
      "node_modules/loader/inner.js": "module.exports = 1;",
      "node_modules/phantom/index.js": marking,
      "hidden/x.mjs": ran(mark),
      "hidden/y.cjs": marking,
    });
    const hidden = {
      "import.mjs": "hidden/x.mjs",
      "typed.ts": "hidden/x.mjs",
      "require.mjs": "hidden/y.cjs",
      "created.mjs": "hidden/y.cjs",
      "common.mjs": "hidden/y.cjs",
      "commonTyped.mjs": "hidden/y.cjs",
      "package.mjs": "node_modules/phantom/index.js",
    };
    expect(await loaded(folders, ["good.mjs", ...Object.keys(hidden)])).toEqual([
      "loaded",
      ...Object.values(hidden).map((path) => refused(join(project, path))),
    ]);
    expect(existsSync(mark)).toBe(false);
  });

  test("a module cannot hide that it loads a project file that the trust decision does not cover", async () => {
    const folders = await testFolders();
    const { project, user, write } = folders;
    const mark = join(user, "mark");
    const marking = `require("node:fs").writeFileSync(${JSON.stringify(mark)}, "");`;
    await write({
      "created.mjs": 'import p from "p"; p.created("./hid" + "den/y.cjs");',
      "asPackage.mjs": 'import p from "p"; p.created("phan" + "tom");',
      "internal.mjs": 'import p from "p"; p.internal("/hid" + "den/y.cjs");',
      "internalPackage.mjs": 'import p from "p"; p.internal("/node_modules/phan" + "tom/index.js");',
      "script.mjs": 'import p from "p"; await p.script("hid" + "den/x.mjs");',
      "named.mjs": 'import p from "p"; await p.script("hid" + "den/x.mjs?reeve=free-1");',
      "addon.mjs": 'import p from "p"; p.created("./hid" + "den/z.node");',
      "own.mjs": 'import p from "p"; p.own("/hid" + "den/z.node");',
      "good.mjs": 'import p from "p"; import "./lib/known.cjs"; p.created("./lib/kno" + "wn.cjs");',
      "lib/known.cjs": "",
      "node_modules/p/index.cjs": `
        const { createRequire } = require("node:module");
        const vm = require("node:vm");
        const importModuleDynamically = vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
        exports.created = (name) => createRequire(process.cwd() + "/")(name);
        exports.internal = (name) => module.constructor._load(process.cwd() + name);
        exports.own = (name) => require(process.cwd() + name);
        exports.script = (name) => new vm.Script("import('./" + name + "')", {
          filename: process.cwd() + "/absent.js", importModuleDynamically }).runInThisContext();`,
      "node_modules/p/package.json": '{ "main": "index.cjs" }',
      "node_modules/phantom/index.js": marking,
      "hidden/x.mjs": ran(mark),
      "hidden/y.cjs": marking,
      "hidden/z.node": "",
    });
    const hidden = {
      "created.mjs": "hidden/y.cjs",
      "asPackage.mjs": "node_modules/phantom/index.js",
      "internal.mjs": "hidden/y.cjs",
      "internalPackage.mjs": "node_modules/phantom/index.js",
      "script.mjs": "hidden/x.mjs",
      "named.mjs": "hidden/x.mjs",
      "addon.mjs": "hidden/z.node",
      "own.mjs": "hidden/z.node",
    };
    expect(await loaded(folders, ["good.mjs", ...Object.keys(hidden)])).toEqual([
      "loaded",
      ...Object.values(hidden).map((path) => refused(join(project, path))),
    ]);
    expect(existsSync(mark)).toBe(false);
  });

  test("a package in the project that Reeve needs for itself is loaded, also if Node finds it twice", async () => {
    const folders = await testFolders();
    await folders.write({
      "a.mjs": "",
      "b.mjs": "",
      "node_modules/host/package.json": '{ "main": "index.cjs" }',
      "node_modules/host/index.cjs": `
        exports.load = async () => {
          const { default: first } = await import("needed");
          const path = require.resolve("needed");
          delete require.cache[path];
          return [first, module.constructor._load(path)];
        };`,
      "node_modules/needed/index.js": 'module.exports = require("./lib/deep.js");',
      "node_modules/needed/lib/deep.js": 'module.exports = "deep";',
    });
    const then = `globalThis.host ??= (await import(root + "/node_modules/host/index.cjs")).default;
      if (said.length > 0) said.push(...(await host.load()));`;
    expect(await loaded(folders, ["a.mjs", "b.mjs"], then)).toEqual(["loaded", "deep", "deep", "loaded"]);
  });

  test("a project file that changes between the trust check and its import is not loaded", async () => {
    const folders = await testFolders();
    const { project, user, write } = folders;
    const mark = join(user, "mark");
    await write({
      "a.mjs": 'import "./lib/x.mjs";',
      "b.mjs": 'import "p";',
      "lib/x.mjs": "",
      "node_modules/p/index.js": "",
    });
    const changed = ["lib/x.mjs", "node_modules/p/index.js"].map((path) => join(project, path));
    const then = `for (const file of ${JSON.stringify(changed)})
      writeFileSync(file, 'process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(mark)}, "")');`;
    const [first] = await loaded(folders, ["a.mjs"], then);
    expect(first).toEqual(refused(join(project, "lib/x.mjs")));
    await write({ "node_modules/p/index.js": "" });
    const [second] = await loaded(folders, ["b.mjs"], then);
    expect(second).toEqual(refused(join(project, "node_modules/p/index.js")));
    expect(existsSync(mark)).toBe(false);
  });
});
