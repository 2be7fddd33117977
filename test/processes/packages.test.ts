import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { installedPackage } from "../../src/workspace/files/packages.ts";
import { openWorkspace } from "../../src/workspace/workspace.ts";
import { testFolders } from "../workspace/folders.ts";

const environment = { PATH: process.env["PATH"], HOME: process.env["HOME"] };

/** Creates a package whose scripts leave a trace, and returns its folder. A second module of it may import Reeve. */
async function makePackage(
  folder: string,
  { peer, code = "" }: { readonly peer?: string | undefined; readonly code?: string } = {},
): Promise<string> {
  const source = join(folder, "package");
  await mkdir(join(source, "skills/dim"), { recursive: true });
  const script = `node -e "require('fs').writeFileSync('${join(folder, "script-ran")}', '')"`;
  await writeFile(
    join(source, "package.json"),
    JSON.stringify({
      name: "lamp-pack",
      version: "1.0.0",
      type: "module",
      scripts: { preinstall: script, install: script, postinstall: script, prepare: script },
      reeve: { extensions: ["./lamp.js"], skills: ["./skills"] },
      ...(peer !== undefined && { peerDependencies: { reeve: peer } }),
    }),
  );
  await writeFile(join(source, "name.js"), code || 'export const name = "lamp";');
  await writeFile(
    join(source, "lamp.js"),
    'import { name } from "./name.js";\nexport default { name, setup() {} };',
  );
  await writeFile(
    join(source, "skills/dim/SKILL.md"),
    "---\nname: dim\ndescription: Dims lamps.\n---\nDim it.",
  );
  return source;
}

/** Serves a package as a registry does. */
async function registry(
  folder: string,
  options: { readonly peer?: string; readonly code?: string } = {},
): Promise<{ readonly url: string; readonly requests: string[]; readonly spoil: () => void }> {
  await makePackage(folder, options);
  const peers = options.peer !== undefined && { peerDependencies: { reeve: options.peer } };
  // What `npm pack` makes, in a tenth of its time.
  let tarball = execFileSync("tar", ["-cz", "package"], { cwd: folder });
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? "");
    if (request.url?.endsWith(".tgz") === true) return response.end(tarball);
    if (request.url !== "/lamp-pack") return response.writeHead(404).end("{}");
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    const dist = { tarball: `${url}/lamp-pack-1.0.0.tgz`, integrity };
    const versions = { "1.0.0": { name: "lamp-pack", version: "1.0.0", dist, ...peers } };
    return response.end(JSON.stringify({ name: "lamp-pack", "dist-tags": { latest: "1.0.0" }, versions }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    spoil() {
      tarball = Buffer.concat([tarball, Buffer.alloc(512)]);
    },
  };
}

describe("packages of a project", () => {
  test("a package of a project is installed once the project is trusted, runs no script, and brings skills and extensions", async () => {
    const { project, home, user, write } = await testFolders();
    const { url, requests, spoil } = await registry(user);
    const env = { ...environment, npm_config_registry: url, npm_config_cache: join(user, "cache") };
    await write({ ".reeve/settings.json": '{ "packages": ["npm:lamp-pack@1.0.0"] }' });
    const open = () => openWorkspace({ cwd: project, home, env });
    const workspace = await open();
    expect(workspace.skills).toEqual([]);
    expect(requests).toEqual([]);
    expect(await readdir(home)).toEqual([]);
    await workspace.trust();
    expect(workspace.notices).toEqual([]);
    expect(workspace.skills.map(({ name }) => name)).toEqual(["dim"]);
    expect(workspace.extensions).toEqual(["lamp"]);
    expect(await readdir(join(home, "packages"))).toEqual(["lamp-pack@1.0.0"]);
    expect(existsSync(join(user, "script-ran"))).toBe(false);
    const asked = requests.length;
    expect((await open()).extensions).toEqual(["lamp"]);
    expect(requests).toHaveLength(asked);
    // The registry now serves other bytes under the same version.
    spoil();
    await rm(join(home, "packages"), { recursive: true });
    await rm(join(user, "cache"), { recursive: true });
    await expect(open()).rejects.toMatchObject({
      code: "permission_denied",
      message: expect.stringContaining("the extension npm:lamp-pack@1.0.0 can limit the agents") as string,
    });
  });

  test("a project's package from git is installed at its commit without executing its scripts", async () => {
    const { home, user } = await testFolders();
    const source = await makePackage(user);
    const git = (...args: string[]): string =>
      execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
        cwd: source,
        encoding: "utf8",
      });
    git("init", "-q");
    git("add", ".");
    git("commit", "-qm", "first");
    const commit = git("rev-parse", "HEAD").trim();
    const env = { ...environment, npm_config_cache: join(user, "cache") };
    const installed = await installedPackage(`git:file://${source}#${commit}`, {
      home,
      env,
      canInstall: true,
      reeveVersion: "0.0.0",
    });
    expect(installed.identity).toContain(commit);
    expect(installed.extensions).toHaveLength(1);
    expect(existsSync(join(user, "script-ran"))).toBe(false);
  });

  test.for([
    "lamp-pack",
    "npm:lamp-pack",
    "npm:lamp-pack@latest",
    "npm:lamp-pack@^1.0.0",
    "npm:../../evil@1.0.0",
    "npm:--prefix=/x@1.0.0",
    "git:https://example.com/x.git",
    "git:https://example.com/x.git#main",
    "git:--upload-pack=x#0123456789012345678901234567890123456789",
  ])("the package %j of a project is refused, because it names no exact version", async (written) => {
    const { home } = await testFolders();
    const options = { home, env: environment, canInstall: false, reeveVersion: "0.0.0" };
    await expect(installedPackage(written, options)).rejects.toThrow("invalid package");
  });

  test("a package with Reeve as a peer is installed without Reeve from the registry, and shares the Reeve that loads it", async () => {
    const { project, home, user, write } = await testFolders();
    const code =
      'import { Agent } from "reeve";\nexport const name = import.meta.resolve("reeve") + Agent.name;';
    const { url, requests } = await registry(user, { peer: ">=0.0.0", code });
    const env = { ...environment, npm_config_registry: url, npm_config_cache: join(user, "cache") };
    await write({ "~/.reeve/settings.json": '{ "packages": ["npm:lamp-pack@1.0.0"] }' });
    const workspace = await openWorkspace({ cwd: project, home, env });
    expect(workspace.notices).toEqual([]);
    expect(workspace.extensions).toEqual([`${import.meta.resolve("../../dist/entries/index.js")}Agent`]);
    expect(requests.filter((path) => path.startsWith("/reeve"))).toEqual([]);
  });

  test("the notice of a package that cannot be installed quotes the cause that npm reports in one line", async () => {
    const { project, home, user, write } = await testFolders();
    const { url } = await registry(user, { peer: "^99.0.0" });
    const env = { ...environment, npm_config_registry: url, npm_config_cache: join(user, "cache") };
    await write({
      "~/.reeve/settings.json": '{ "packages": ["npm:lamp-pack@1.0.0", "npm:torch-pack@1.0.0"] }',
    });
    const { notices } = await openWorkspace({ cwd: project, home, env });
    expect(notices.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "skipped npm:lamp-pack@1.0.0",
      "skipped npm:torch-pack@1.0.0",
    ]);
    expect(notices[0]?.message).toMatch(/ could not be installed: ERESOLVE: .*reeve@"\^99\.0\.0"/u);
    expect(notices[1]?.message).toMatch(
      / could not be installed: E404: Not Found - GET http:\S+\/torch-pack/u,
    );
    for (const { message } of notices) expect(message).not.toMatch(/\n|complete log/u);
    expect(await readdir(join(home, "packages"))).toEqual([]);
  });

  test("an ephemeral workspace installs no packages", async () => {
    const { project, home, write } = await testFolders();
    await write({ "~/.reeve/settings.json": '{ "packages": ["npm:lamp-pack@1.0.0"] }' });
    const workspace = await openWorkspace({ cwd: project, home, env: environment, ephemeral: true });
    expect(workspace.notices).toMatchObject([{ kind: "skipped", path: "npm:lamp-pack@1.0.0" }]);
    expect(await readdir(home)).toEqual(["settings.json"]);
  });
});
