import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium as playwright, type Browser } from "playwright-core";

const unpacked = mkdtempSync(join(tmpdir(), "reeve-chromium-"));

/** Starts Chromium, which unpacks itself into a folder of its own. */
export async function startBrowser(): Promise<Browser> {
  process.env["TMPDIR"] = unpacked;
  const { default: chromium } = await import("@sparticuz/chromium");
  const executablePath = await chromium.executablePath();
  return playwright.launch({ executablePath, args: ["--headless=new", "--disable-gpu", "--no-sandbox"] });
}

export function removeBrowser(): void {
  rmSync(unpacked, { recursive: true, force: true });
}
