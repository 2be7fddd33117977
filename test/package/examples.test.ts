import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { PostgresServer } from "../postgres/server.ts";
import { RestateServer } from "../restate/server.ts";
import { runOffline } from "./run-offline.ts";

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

const folder = join(inject("builtPackage"), "examples");
const examples = (await readdir(folder)).filter((file) => file.endsWith(".ts"));

test("the repository has examples", () => {
  expect(examples).toContain("01-hello.ts");
});

test.for(examples)("the example %s runs to its end without a network", async (example) => {
  const { code, stderr } = await runOffline([join(folder, example)]);
  expect(code === 0 || stderr).toBe(true);
});

test.for([
  { way: "fetch", source: `await fetch("http://192.0.2.1/");` },
  { way: "https", source: `(await import("node:https")).get("https://192.0.2.1/");` },
  { way: "a socket", source: `(await import("node:net")).connect(80, "192.0.2.1");` },
])("a program that uses the network by $way fails in the offline runner", async ({ source }) => {
  const { code, stderr } = await runOffline(["--input-type=module", "--eval", source]);
  expect(code).toBe(1);
  expect(stderr).toContain("no network here: 192.0.2.1");
});
