import { accessSync, constants } from "node:fs";
import type * as Playwright from "playwright-core";
import { Fault } from "../../kernel/index.ts";

export interface LaunchOptions {
  /** Of Chromium or Chrome; found among the usual places when absent, and in `REEVE_CHROMIUM`. */
  readonly executablePath?: string;
  /** True unless told. */
  readonly headless?: boolean;
  readonly args?: readonly string[];
}

const usualPlaces = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome-stable",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** Nothing of its own goes out: a browser an agent drives talks to the pages it opens. */
const quiet = [
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The driver is loaded here, not with the package. */
export async function launchChromium(options: LaunchOptions): Promise<Playwright.Browser> {
  const { headless = true, args = [] } = options;
  const executablePath = options.executablePath ?? findChromium();
  const { chromium } = await loadDriver();
  try {
    // Chromium's own sandbox cannot be set up by root.
    const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    return await chromium.launch({ executablePath, headless, args: [...quiet, ...asRoot, ...args] });
  } catch (cause) {
    const [why = ""] = Fault.from(cause).message.split("\n");
    throw new Fault("dependency_missing", `${executablePath} could not be started as a browser: ${why}`, {
      cause,
    });
  }
}

async function loadDriver(): Promise<typeof Playwright> {
  try {
    return await import("playwright-core");
  } catch (cause) {
    throw new Fault(
      "dependency_missing",
      "a browser needs the package playwright-core: npm install playwright-core",
      {
        cause,
      },
    );
  }
}

function findChromium(): string {
  const named = process.env["REEVE_CHROMIUM"];
  for (const path of named === undefined ? usualPlaces : [named]) if (isExecutable(path)) return path;
  throw new Fault(
    "dependency_missing",
    named === undefined
      ? "there is no Chromium or Chrome in the usual places: install one (on Debian: apt-get install chromium), or give executablePath or REEVE_CHROMIUM"
      : `REEVE_CHROMIUM is ${named}, which cannot be executed`,
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
