import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import {
  installTree,
  licenceList,
  limits,
  runtimeFolders,
  sbomOf,
  sizeOf,
  treeProblems,
  type Sbom,
} from "../../build/installed-tree.ts";
import { goldenProblems, noticeProblems } from "../../build/package-check.ts";
import { writeRelease } from "../../build/release-check.ts";
import { repository, runNode } from "../gates/run-node.ts";

let [folder, tree] = ["", ""];
let sbom: Sbom;

beforeAll(async () => {
  // npm names the package of a tree after its folder.
  folder = await mkdtemp(join(tmpdir(), "reeve-footprint-"));
  tree = join(folder, "reeve");
  await installTree(repository, tree, inject("installed").file);
  sbom = await sbomOf(tree);
});

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));

/** Runs a program in the installed tree and returns what it prints. */
async function output(code: string): Promise<string> {
  const { stdout, stderr } = await runNode(["--input-type=module", "--eval", code], tree);
  return stderr === "" ? stdout : stderr;
}

describe("the installed package", () => {
  test("the installed package has at most 16 runtime packages and 15 MB", async () => {
    expect(limits).toEqual({ packages: 16, bytes: 15_000_000 });
    expect(sbom.components.length).toBeLessThanOrEqual(limits.packages);
    expect(await sizeOf(tree)).toBeLessThanOrEqual(limits.bytes);
    expect(treeProblems(sbom, await sizeOf(tree))).toEqual([]);
  });

  test("the SBOM names reeve and exactly the runtime packages of the lock file, each with its licence", async () => {
    expect(sbom).toMatchObject({ bomFormat: "CycloneDX", metadata: { component: { name: "reeve" } } });
    const locked = (await runtimeFolders(repository)).map((path) => path.split("node_modules/").at(-1) ?? "");
    expect(new Set(sbom.components.map(({ name }) => name))).toEqual(new Set(locked));
    expect(sbom.components).toHaveLength(locked.length);
    for (const line of licenceList(sbom)) expect(line).toMatch(/^\S+ \d\S*: [A-Z0-9][\w.-]+$/u);
  });

  test("the release check refuses a licence outside the list, too many packages and too many bytes", () => {
    const foreign = { name: "copyleft", version: "1.0.0", licenses: [{ license: { id: "AGPL-3.0-only" } }] };
    const unknown = { name: "unknown", version: "2.0.0" };
    const many = Array.from({ length: limits.packages + 1 }, (_, at) => ({
      name: `p${at}`,
      version: "1.0.0",
      licenses: [{ license: { id: "MIT" } }],
    }));
    expect(treeProblems({ ...sbom, components: [foreign, unknown] }, 0)).toEqual([
      "copyleft 1.0.0 has the licence AGPL-3.0-only",
      "unknown 2.0.0 has the licence none",
    ]);
    expect(treeProblems({ ...sbom, components: many }, limits.bytes + 1)).toEqual([
      "17 runtime packages are installed; the limit is 16",
      "15000001 bytes are installed; the limit is 15000000",
    ]);
  });

  test("the release check writes the SBOM and the licence list", async () => {
    const { figures, problems } = await writeRelease(tree, join(folder, "release"));
    expect(problems).toEqual([]);
    expect(figures).toMatch(/^ajv .*[^]* packages, \d+ of \d+ bytes; see /mu);
    const written = JSON.parse(await readFile(join(folder, "release/sbom.cdx.json"), "utf8")) as Sbom;
    expect(written.components).toHaveLength(sbom.components.length);
    expect(await readFile(join(folder, "release/licences.txt"), "utf8")).toContain("ajv ");
  });

  test("the package has the licences of its bundled code, and the release check refuses a wrong or missing licence", async () => {
    const notice = await readFile(join(tree, "dist/bundled-licences.txt"), "utf8");
    expect(noticeProblems(notice)).toEqual([]);
    expect(noticeProblems(notice.replace("## preact - ", "## other - "))).toEqual([
      "dist/bundled-licences.txt lacks preact",
    ]);
    expect(noticeProblems(notice.replace(/^(marked [\d.]+) \(MIT\)$/mu, "$1 (AGPL-3.0-only)"))).toEqual([
      "marked, which is bundled, has the licence AGPL-3.0-only",
    ]);
  });

  test("the release check opens every golden store with the installed command, and reports one that it cannot read", async () => {
    const stores = join(folder, "stores");
    await mkdir(stores);
    expect(await goldenProblems(tree, repository, stores)).toEqual([]);
    const planted = join(folder, "planted");
    const text = await readFile(new URL("../golden/format-32.sql", import.meta.url), "utf8");
    await mkdir(join(planted, "test/golden"), { recursive: true });
    await writeFile(
      join(planted, "test/golden/older.sql"),
      text.replace("user_version = 32", "user_version = 31"),
    );
    await writeFile(
      join(planted, "test/golden/edited.sql"),
      text.replace('["1","llm","main"', '["1","llm","mien"'),
    );
    const found = await goldenProblems(tree, planted, stores);
    expect(found).toContainEqual(expect.stringMatching(/^reeve store upgrade of older\.sql .+ format 31 /u));
    expect(found).toContainEqual(
      expect.stringMatching(/^reeve audit verify of edited\.sql ends with code 1/u),
    );
  });

  test("the published package contains no source map of a module", async () => {
    const files = await readdir(join(tree, "dist"), { recursive: true });
    expect(files).toContain("entries/index.js");
    expect(files.filter((file) => file.endsWith(".js.map"))).toEqual([]);
  });

  test("every export except reeve/react can be imported without an optional package, and all exports share their classes", async () => {
    const code = `
      const { exports } = JSON.parse((await import("node:fs")).readFileSync("package.json", "utf8"));
      const paths = Object.keys(exports).filter((path) => !path.endsWith(".json") && path !== "./react");
      const modules = {};
      for (const path of paths) modules[path] = await import("reeve" + path.slice(1));
      const { Agent, Fault } = modules["."];
      modules["./architectures"].registerArchitecture("echo", () => ({ name: "echo", requiresModel: false, declaredWorkers: () => ({}), async *run(session, deps, prompt) { session.output = prompt; } }));
      const { output } = await new Agent({ name: "e", architecture: "echo" }).invoke("heard");
      console.log(paths.length > 15, Fault === modules["./kernel"].Fault, output);
    `;
    expect(await output(code)).toBe("true true heard\n");
  });

  test("a program that checks the types of libraries compiles without the types of optional packages", async () => {
    const { exports } = JSON.parse(await readFile(join(tree, "package.json"), "utf8")) as {
      readonly exports: Readonly<Record<string, string>>;
    };
    // These have the types of packages that ship their own: playwright-core and @modelcontextprotocol.
    const withPackage = new Set([
      "./browser",
      "./mcp",
      "./server",
      "./workspace",
      "./react",
      "./package.json",
    ]);
    const paths = Object.keys(exports).filter((path) => !withPackage.has(path));
    expect(paths).toContain("./postgres");
    const lines = paths.map((path, at) => `export * as e${at} from "reeve${path.slice(1)}";`);
    const program = join(tree, "program.ts");
    await writeFile(program, lines.join("\n"));
    await mkdir(join(tree, "node_modules/@types"), { recursive: true });
    await symlink(join(repository, "node_modules/@types/node"), join(tree, "node_modules/@types/node"));
    const options = "--module nodenext --target es2024 --strict --skipLibCheck false --noEmit --types node";
    const tsc = join(repository, "node_modules/typescript/bin/tsc");
    const { stdout } = await runNode([tsc, ...options.split(" "), "--pretty", "false", program], tree);
    expect(stdout).toBe("");
  });

  test("a feature of Reeve names the package that it needs if that package is not installed", async () => {
    const code = `
      import { mcpServer, mcpServers } from "reeve/mcp";
      import { BrowserSession } from "reeve/browser";
      import { postgresStore } from "reeve/postgres";
      const uses = [
        () => mcpServers({ files: { command: "x" } }).tools(),
        () => mcpServer({ name: "own" }),
        () => new BrowserSession({ executablePath: "/x", allowPrivate: true }).open("http://127.0.0.1:1/"),
        () => postgresStore({ url: "postgres://127.0.0.1:1/reeve" }),
      ];
      for (const use of uses) await use().catch((error) => console.log(error.code + ": " + error.message));
    `;
    const missing = [
      ["MCP server files", "@modelcontextprotocol/client"],
      ["mcpServer", "@modelcontextprotocol/server"],
      ["a browser", "playwright-core"],
      ["a PostgreSQL store", "pg"],
    ];
    const expected = missing.map(
      ([user, name]) => `dependency_missing: ${user} needs the package ${name}: npm install ${name}\n`,
    );
    expect(await output(code)).toBe(expected.join(""));
  });

  test("reeve acp names the package @agentclientprotocol/sdk if it is not installed", async () => {
    const { code, stdout, stderr } = await runNode([join(tree, "dist/surfaces/cli/main.js"), "acp"], tree);
    expect({ code, stdout }).toEqual({ code: 7, stdout: "" });
    expect(stderr).toContain(
      "reeve acp needs the package @agentclientprotocol/sdk: npm install @agentclientprotocol/sdk",
    );
  });

  test.for([
    ["http/protobuf", "proto"],
    ["http/json", "http"],
  ])(
    "a variable that asks for an export over %s stops a command with the packages that are missing",
    async ([protocol, name]) => {
      const variables = {
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      };
      const lines = Object.entries(variables).map(([variable, value]) => `${variable}=${value}`);
      await writeFile(join(folder, "telemetry.env"), lines.join("\n"));
      const run = [join(tree, "dist/surfaces/cli/main.js"), "run", "Hi"];
      const { code, stdout, stderr } = await runNode(
        [`--env-file=${join(folder, "telemetry.env")}`, ...run],
        tree,
      );
      expect({ code, stdout }).toEqual({ code: 7, stdout: "" });
      const names = ["api", "resources", "sdk-trace", `exporter-trace-otlp-${name}`, "sdk-metrics"];
      const packages = [...names, `exporter-metrics-otlp-${name}`].map((each) => `@opentelemetry/${each}`);
      expect(stderr).toContain(
        `packages are missing: npm install ${packages.join(" ")}; set OTEL_SDK_DISABLED=true`,
      );
    },
  );

  test("mcpServers() and mcpServer() work once their packages are installed", async () => {
    for (const name of ["@modelcontextprotocol", "zod"])
      await symlink(join(repository, "node_modules", name), join(tree, "node_modules", name));
    const server = join(tree, "serve.mjs");
    await writeFile(
      server,
      `import { mcpServer } from "reeve/mcp";
         import { tool } from "reeve";
         const inputSchema = { type: "object", properties: {} };
         const hello = tool({ name: "hello", description: "Greets", inputSchema, execute: () => "hello" });
         const server = await mcpServer({ name: "own", tools: [hello] });
         await server.serveStdio().closed;
         await server.close();`,
    );
    const code = `
        import { mcpServers } from "reeve/mcp";
        const servers = mcpServers({ own: { command: process.execPath, args: [${JSON.stringify(server)}] } });
        console.log((await servers.tools()).map(({ name }) => name).join());
        await servers.close();
      `;
    expect(await output(code)).toBe("mcp__own__hello\n");
  });
});
