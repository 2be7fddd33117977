import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { missingChromium } from "../chromium.ts";
import { run } from "../gates/run-node.ts";
import { removeBrowser, startBrowser } from "../page/chromium.ts";
import { goTo, openPage } from "../page/page-server.ts";
import { env, setUp, type Script } from "../surfaces/cli/model-server.ts";
import { main, reeveProcess } from "../surfaces/cli/reeve-process.ts";
import { serve } from "../surfaces/cli/serve-process.ts";
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
