import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EndlessProvider, inputUsd, outputUsd } from "./endless-provider.ts";
import { reeve, reeveProcess } from "./reeve-process.ts";
import { serve } from "./serve-process.ts";

/**
 * The programs that are installed from a lock file of their own. They need 1 GB and some minutes. REEVE_REAL_AGENTS_FOLDER
 * names a folder in which they are installed already. The lock file has no packages of other systems, so npm ci refuses it.
 */
const locked = new URL("real-agents/", import.meta.url);
const order = "Print the numbers one after another with the shell, and never stop.";

interface RealProgram {
  readonly name: string;
  readonly package: string;
  readonly args: readonly string[];
  readonly env: (home: string) => Readonly<Record<string, string>>;
}

const programs: readonly RealProgram[] = [
  {
    name: "claude",
    package: "@anthropic-ai/claude-code",
    args: ["-p", order, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"],
    env: () => ({ DISABLE_AUTOUPDATER: "1" }),
  },
  {
    name: "codex",
    package: "@openai/codex",
    args: [
      "exec",
      "--skip-git-repo-check",
      "--dangerously-bypass-approvals-and-sandbox",
      "-m",
      "gpt-5.2",
      order,
    ],
    env: (home) => ({ CODEX_HOME: join(home, "codex") }),
  },
  {
    name: "opencode",
    package: "opencode-ai",
    args: ["run", "-m", "anthropic/claude-sonnet-4-5", order],
    env: () => ({
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    }),
  },
];

const config = (url: string): string => `
const upstream = { baseUrl: ${JSON.stringify(url)}, apiKey: "provider-key" };
export default {
  gateway: { upstreams: { anthropic: upstream, openai: upstream } },
  runtime: { prices: { find: () => ({ inputUsd: ${inputUsd}, outputUsd: ${outputUsd} }) } },
};`;

/** The address of a proxy that does not exist, so that the programs reach only loopback addresses. */
const noProxy = "http://127.0.0.1:9";
const offline = Object.fromEntries(
  ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [
    [name, noProxy],
    [name.toLowerCase(), noProxy],
  ]),
);

describe.skipIf(process.env["REEVE_REAL_AGENTS"] !== "1")("programs behind the gateway", () => {
  let installed: string;

  beforeAll(async () => {
    installed = process.env["REEVE_REAL_AGENTS_FOLDER"] ?? (await mkdtemp(join(tmpdir(), "reeve-agents-")));
    if (process.env["REEVE_REAL_AGENTS_FOLDER"] !== undefined) return;
    await cp(locked, installed, { recursive: true });
    const env = { PATH: process.env["PATH"], HOME: join(installed, "home") };
    await mkdir(env.HOME, { recursive: true });
    await promisify(execFile)("npm", ["install", "--no-save", "--no-audit", "--no-fund"], {
      cwd: installed,
      env: { ...process.env, ...env },
    });
  }, 900_000);

  afterAll(async () => {
    if (process.env["REEVE_REAL_AGENTS_FOLDER"] === undefined)
      await rm(installed, { recursive: true, force: true, maxRetries: 10 });
  });

  test.each(programs)(
    "B1: $name in an endless loop behind the gateway is billed at most its budget, and is refused once",
    async ({ name, package: packageName, args, env }) => {
      const provider = await EndlessProvider.open();
      const folder = await mkdtemp(join(tmpdir(), "reeve-real-"));
      const work = join(folder, "work");
      const home = join(folder, "home");
      for (const each of [work, home, join(home, "codex")]) await mkdir(each, { recursive: true });
      const run = (...words: string[]) => reeve(words, { cwd: folder });
      try {
        await writeFile(join(folder, "reeve.config.ts"), config(provider.url));
        expect(await run("trust", "--yes")).toMatchObject({ code: 0 });
        const created = await run("gateway", "token", "--max-budget-usd", "0.5", "--name", name);
        expect(created).toMatchObject({ code: 0 });
        const server = await serve(folder, {});
        await server.saying("Gateway: ");
        const start = () =>
          reeveProcess(
            [
              "gateway",
              "env",
              name,
              "--store",
              `sqlite:${join(folder, ".reeve/reeve.db")}`,
              "--",
              join(installed, "node_modules/.bin", name),
              ...args,
            ],
            { cwd: work, env: { HOME: home, ...offline, ...env(home) } },
          );
        const shown = async () =>
          JSON.parse((await run("gateway", "show", name, "--json")).out[0] ?? "") as {
            readonly runId: string;
            readonly status: string;
            readonly costUsd: number;
            readonly refused: number;
          };
        const first = await start();
        const stopped = await shown();
        const { billedUsd, requests } = provider;
        expect(stopped, `${first.out.join("\n")}\n${first.talk}`).toMatchObject({
          status: "budget_exhausted",
          refused: 1,
        });
        expect(requests).toBeGreaterThan(1);
        expect(billedUsd).toBeLessThanOrEqual(0.5);
        expect(stopped.costUsd).toBeGreaterThanOrEqual(billedUsd - 1e-9);
        expect(await run("top-up", stopped.runId, "--usd", "0.5")).toMatchObject({ code: 0 });
        while ((await shown()).status === "budget_exhausted");
        await start();
        expect(await shown()).toMatchObject({ status: "budget_exhausted", refused: 2 });
        expect(provider.billedUsd).toBeGreaterThan(billedUsd);
        expect(provider.billedUsd).toBeLessThanOrEqual(1);
        const { version } = JSON.parse(
          await readFile(join(installed, "node_modules", packageName, "package.json"), "utf8"),
        ) as { version: string };
        process.stdout.write(
          `${packageName} ${version}: ${billedUsd.toFixed(4)} of 0.50 USD in ${requests} requests, then ${provider.billedUsd.toFixed(4)} of 1.00 in ${provider.requests}\n`,
        );
        await server.stop("SIGTERM");
      } finally {
        await provider.close();
        await rm(folder, { recursive: true, force: true, maxRetries: 10 });
      }
    },
    300_000,
  );
});
