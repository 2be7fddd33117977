import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium as playwright, type Browser } from "playwright-core";
import { chromiumPath } from "../chromium.ts";

const profiles = mkdtempSync(join(tmpdir(), "reeve-chromium-"));

/** Starts Chromium, whose profiles are in a folder of their own. */
export async function startBrowser(): Promise<Browser> {
  process.env["TMPDIR"] = profiles;
  const executablePath = await chromiumPath();
  return playwright.launch({ executablePath, args: ["--headless=new", "--disable-gpu", "--no-sandbox"] });
}

export function removeBrowser(): void {
  rmSync(profiles, { recursive: true, force: true });
}
