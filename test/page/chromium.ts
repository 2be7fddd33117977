import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium as playwright, type Browser, type LaunchOptions } from "playwright-core";
import { chromiumPath } from "../chromium.ts";

/** The variable with the address of the browser that the files of a test run share. */
const shared = "REEVE_TEST_BROWSER";

let profiles: string | undefined;

/** How Chromium is started. Its profiles are in a folder of their own. */
async function launchOptions(): Promise<LaunchOptions> {
  profiles ??= mkdtempSync(join(tmpdir(), "reeve-chromium-"));
  const executablePath = await chromiumPath();
  const env = { ...process.env, TMPDIR: profiles };
  return { executablePath, env, args: ["--headless=new", "--disable-gpu", "--no-sandbox"] };
}

/** Starts one Chromium for all files of the page's tests. Returns a function that ends it. */
export async function setup(): Promise<() => Promise<void>> {
  const server = await playwright.launchServer(await launchOptions());
  process.env[shared] = server.wsEndpoint();
  return async () => {
    delete process.env[shared];
    await server.close();
    removeBrowser();
  };
}

/** Returns the browser that the test files share, or starts one if this program runs alone. */
export async function startBrowser(): Promise<Browser> {
  const address = process.env[shared];
  return address === undefined ? playwright.launch(await launchOptions()) : playwright.connect(address);
}

/** Removes the profiles of a browser that this program has started. */
export function removeBrowser(): void {
  if (profiles !== undefined) rmSync(profiles, { recursive: true, force: true, maxRetries: 10 });
}
