import { cp, readdir, readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { PostgresServer } from "../postgres/server.ts";
import { RestateServer } from "../restate/server.ts";
import { runModules, runOffline } from "./run-offline.ts";

// The servers that some examples need. Their processes inherit the addresses.
const servers: { readonly stop: () => Promise<void> }[] = [];
beforeAll(async () => {
  const postgres = await PostgresServer.start();
  servers.push(postgres);
  const restate = await RestateServer.start();
  servers.push(restate);
  vi.stubEnv("POSTGRES_URL", postgres.url);
  vi.stubEnv("RESTATE_INGRESS_URL", restate.ingressUrl);
  vi.stubEnv("RESTATE_ADMIN_URL", restate.adminUrl);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  for (const server of servers) await server.stop();
});

// Node runs no TypeScript below node_modules, so a user copies the examples.
const { project } = inject("installed");
const folder = join(project, "examples");
await cp(join(project, "node_modules/reeve/examples"), folder, { recursive: true });
const files = await readdir(folder, { recursive: true });
const examples = files.filter((file) => /^[^/]+\/[^/]+\.(?:ts|py)$/u.test(file)).toSorted();
const programs = examples.filter((file) => file.endsWith(".ts"));

/** Examples that start, kill or configure processes are executed in a separate process each. */
const sources = await Promise.all(programs.map((example) => readFile(join(folder, example), "utf8")));
const hasProcess = (_: string, index: number): boolean => /\bprocess\b/u.test(sources[index] ?? "");
const alone = programs.filter(hasProcess);
const together = programs.filter((example) => !alone.includes(example));

test("the package contains examples", () => {
  expect(together).toContain("first-steps/hello.ts");
  expect(alone).toContain("first-steps/resume.ts");
});

test("the README of each folder of examples lists every program of the folder", async () => {
  const missing: string[] = [];
  for (const example of examples) {
    const readme = await readFile(join(folder, dirname(example), "README.md"), "utf8");
    if (!readme.includes(`](${basename(example)})`)) missing.push(example);
  }
  expect(missing).toEqual([]);
});

test("every example that starts no process runs to its end without a network", async () => {
  const results = await runModules(together.map((example) => ({ file: join(folder, example) })));
  const failed = results.flatMap(({ error }, index) =>
    error === undefined ? [] : [`${together[index]}: ${error}`],
  );
  expect(failed).toEqual([]);
});

test.for(alone)("the example %s runs to its end without a network", async (example) => {
  const { code, stderr } = await runOffline([join(folder, example)]);
  expect(code === 0 || stderr).toBe(true);
});

test("a program that uses the network by fetch, https or a socket fails in the test without a network", async () => {
  const ways = `
    const ways = [
      () => fetch("http://192.0.2.1/"),
      async () => (await import("node:https")).get("https://192.0.2.1/"),
      async () => (await import("node:net")).connect(80, "192.0.2.1"),
    ];
    for (const use of ways) await use().catch((error) => console.log((error.cause ?? error).message));
  `;
  const { stdout } = await runOffline(["--input-type=module", "--eval", ways]);
  expect(stdout).toBe("no network here: 192.0.2.1\n".repeat(3));
});
