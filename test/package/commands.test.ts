import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { missingChromium } from "../chromium.ts";
import { run } from "../gates/run-node.ts";
import { removeBrowser, startBrowser } from "../page/chromium.ts";
import { goTo, openPage } from "../page/page-server.ts";
import { env, setUp, type Script } from "../surfaces/cli/model-server.ts";
import { main, reeveProcess } from "../surfaces/cli/reeve-process.ts";
import { serve, startServing } from "../surfaces/cli/serve-process.ts";
import { startWorker } from "../surfaces/cli/worker-process.ts";

const { project, command } = inject("installed");

/** An empty folder of a user who has installed the package. */
async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(project, "empty-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

test("the command of the installed package is an executable program that prints its help", async () => {
  expect((await readFile(command, "utf8")).split("\n")[0]).toBe("#!/usr/bin/env node");
  const { code, stdout } = await run(command, ["--help"], project);
  expect({ code, usage: stdout.split("\n")[0] }).toEqual({
    code: 0,
    usage: "Usage: reeve [options] [command]",
  });
});

test("reeve init writes a project into an empty folder, and reeve run answers there", async () => {
  const cwd = await emptyFolder();
  const { url, requests } = await setUp(() => ({ text: "It is empty." }));
  const made = await reeveProcess(["init"], { cwd });
  expect(made.code).toBe(0);
  expect(made.out).toContain(join(cwd, ".reeve/settings.json"));
  const { code, out } = await reeveProcess(["run", "What is here?"], { cwd, env: env(url) });
  expect({ code, out }).toEqual({ code: 0, out: ["It is empty."] });
  expect(JSON.stringify(requests[0])).toContain("What is here?");
});

/** Sends a path as it is written, which `fetch` would normalize. */
async function statusOf(origin: string, path: string): Promise<number | undefined> {
  const { hostname, port } = new URL(origin);
  const asked = get({ hostname, port, path });
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

test("reeve docs serves the guides and their search, no other file of the package, and ends with code 0 at an interrupt", async () => {
  const cwd = await emptyFolder();
  const docs = await startServing(cwd, undefined, "docs", "--no-open", "--port", "0");
  const { origin, port, hostname } = docs.link;
  expect(hostname).toBe("127.0.0.1");
  const textOf = async (path: string): Promise<string> => (await fetch(`${origin}${path}`)).text();
  expect(await textOf("/")).toContain("<h1");
  expect(await textOf("/docs/reference/subpaths.md")).toContain("<code>reeve/workflow</code>");
  expect(await textOf("/search?q=budget")).toContain('href="/docs/concepts/budget.md"');
  const absent = ["/docs/nothing.md", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/package.json"];
  for (const path of [...absent, "/docs/../dist/entries/index.js", "/docs/..%2fpackage.json"])
    expect([path, await statusOf(origin, path)]).toEqual([path, 404]);
  const second = await reeveProcess(["docs", "--no-open", "--port", port], { cwd });
  expect([second.code, second.talk]).toEqual([2, expect.stringContaining("the port is in use")]);
  expect(await docs.stop("SIGINT")).toBe(0);
});

test.skipIf(missingChromium() !== undefined)(
  "the page of reeve serve shows runs, a run, the inbox and a chat whose runs reeve worker executes (skipped without Chromium)",
  async () => {
    const script: Script = (request) =>
      request === 2 ? { tool: "write", input: { path: "plan.txt", content: "1. Rest" } } : { text: "Done." };
    const { url } = await setUp(script);
    const cwd = await emptyFolder();
    await mkdir(join(cwd, ".reeve"));
    const server = await serve(cwd, url, "--no-worker", "--tools", "all", "--sandbox", "off");
    await startWorker({ main, cwd, env: env(url), args: ["--tools", "all", "--sandbox", "off"] });
    const browser = await startBrowser();
    onTestFinished(async () => {
      await browser.close();
      removeBrowser();
    });
    const { origin } = server.link;
    const { page, problems } = await openPage(browser, server.link.href);
    await page.getByRole("heading", { name: "No runs yet" }).waitFor();
    // A chat.
    await goTo(page, `${origin}/sessions?new=1`);
    await page.getByLabel("Message").fill("Are you there?");
    await page.keyboard.press("Enter");
    await page.getByText("Done.").first().waitFor();
    await page.getByRole("button", { name: /^Stop/u }).waitFor({ state: "hidden" });
    await page.getByPlaceholder("Write to assistant.").fill("Write a plan.");
    await page.getByRole("button", { name: "Send" }).click();
    // The inbox.
    await page.getByRole("link", { name: "Inbox 1" }).click();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("Approved by you").waitFor();
    // The runs, and a run.
    await goTo(page, `${origin}/runs`);
    await page.getByRole("link", { name: "Write a plan." }).click();
    await page.getByRole("heading", { name: "Write a plan." }).waitFor();
    await page.getByText("Done", { exact: true }).waitFor();
    expect(await readFile(join(cwd, "plan.txt"), "utf8")).toBe("1. Rest");
    expect(problems).toEqual([]);
    expect(await server.stop("SIGTERM")).toBe(0);
  },
);
