import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPage } from "../../build/page.ts";
import { releaseTask } from "./company.ts";
import { openPage, removeBrowser, startBrowser } from "./page-server.ts";

const program = fileURLToPath(new URL("serve.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "reeve-killed-"));
let browser: Browser;
let child: ChildProcess;
let url = "";

/** Starts the server in a process of its own, at the port that it had before. */
async function start(): Promise<void> {
  const port = url === "" ? "0" : new URL(url).port;
  child = fork(program, [folder, port], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const [address] = (await once(child, "message")) as [string];
  url = address;
}

async function kill(): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

beforeAll(async () => {
  await buildPage();
  await start();
  browser = await startBrowser();
}, 240_000);

afterAll(async () => {
  await kill();
  await browser.close();
  removeBrowser();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

test("a page whose server is killed keeps what it shows, continues live, and draws the crash with its free steps", async () => {
  const response = await fetch(`${url}/api/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ agent: "lead", input: releaseTask }),
  });
  const { run } = (await response.json()) as { readonly run: { readonly runId: string } };
  const { page, problems } = await openPage(browser, `${url}/runs/${run.runId}/chart`);
  await page.getByRole("treeitem", { name: /^release.*waits for you: publish/u }).waitFor();
  await page.getByRole("treeitem", { name: /^build/u }).click();
  await kill();
  await page.getByText(/The server stopped answering/u).waitFor();
  await page.getByText(/You see the state of event \d+/u).waitFor();
  expect(await page.locator("[role=treeitem]:focus").textContent()).toMatch(/^build/u);
  await start();
  await page.getByText(/The server stopped answering/u).waitFor({ state: "hidden" });
  await page.getByText("1 crash survived").waitFor();
  await page.getByText(/steps? replayed free, \$[\d.]+ not paid again/u).waitFor();
  // Neither focus nor selection moved.
  expect(await page.locator("[role=treeitem]:focus").textContent()).toMatch(/^build/u);
  await page.getByRole("complementary", { name: "About build" }).waitFor();

  await page.keyboard.press("2");
  await page
    .getByText(/^\d+ free$/u)
    .first()
    .waitFor();
  await page.getByText(/another one continued after/u).waitFor({ state: "attached" });
  await page.keyboard.press("5");
  await page.locator(".event-row").first().waitFor();
  const numbers = await page.locator(".event-row .number").allTextContents();
  expect(new Set(numbers).size).toBe(numbers.length);
  await page.keyboard.press("3");
  await page
    .getByRole("navigation", { name: "Agents of the run" })
    .getByRole("link", { name: "release" })
    .click();
  await page.getByRole("button", { name: /^Approve/u }).click();
  await page.getByText(/approved publish/u).waitFor();
  const others = problems.filter((problem) => !problem.includes("ERR_"));
  expect(others).toEqual([]);
  await page.context().close();
}, 240_000);
