import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import type * as Playwright from "playwright-core";
import { Fault } from "../../kernel/index.ts";
import { needingPackage } from "../optional-package.ts";

/** How to start the browser. */
export interface LaunchOptions {
  /**
   * Path of Chromium or Chrome. Default: the path in `REEVE_CHROMIUM`, or the first of the usual places that exists.
   */
  readonly executablePath?: string;
  /** Whether the browser runs without a window. Default: `true`. */
  readonly headless?: boolean;
  /** Further command line arguments of the browser. */
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

/**
 * Arguments that stop the browser's own network traffic, so that it connects only to the pages that it opens. They
 * also stop traffic that does not go through a proxy: lookups of host names, and UDP of WebRTC and QUIC.
 */
const quiet = [
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-quic",
  // The headless shell knows the first name, a complete Chromium or Chrome the second.
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** Starts the browser with a proxy for all its traffic. The driver playwright-core is loaded here, not when this package is imported. */
export async function launchChromium(options: LaunchOptions, proxy: string): Promise<Playwright.Browser> {
  const { headless = true, args = [] } = options;
  const executablePath = options.executablePath ?? findChromium();
  const { chromium } = await needingPackage(
    "playwright-core",
    "a browser",
    (): Promise<typeof Playwright> => import("playwright-core"),
  );
  try {
    // Chromium cannot set up its own sandbox when it runs as root.
    const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    return await chromium.launch({
      executablePath,
      headless,
      // The driver sends requests to this machine through the proxy, too.
      proxy: { server: proxy },
      args: [...asRoot, ...args, ...quiet],
    });
  } catch (cause) {
    const [why = ""] = Fault.from(cause).message.split("\n");
    throw new Fault("dependency_missing", `the browser ${executablePath} could not be started: ${why}`, {
      cause,
    });
  }
}

/**
 * Returns why no browser can be started on this machine, and how to change that: the driver or the program is
 * missing. `undefined` if both exist. It loads and starts neither.
 */
export async function browserProblem({ executablePath }: LaunchOptions): Promise<string | undefined> {
  try {
    if (executablePath === undefined) findChromium();
    else if (!isExecutable(executablePath))
      return `the browser ${executablePath} is not an executable file: set executablePath to the path of Chromium or Chrome`;
    const { resolve } = createRequire(import.meta.url);
    await needingPackage("playwright-core", "a browser", async () => resolve("playwright-core"));
    return undefined;
  } catch (error) {
    if (Fault.is(error) && error.code === "dependency_missing") return error.message;
    throw error;
  }
}

function findChromium(): string {
  const named = process.env["REEVE_CHROMIUM"];
  for (const path of named === undefined ? usualPlaces : [named]) if (isExecutable(path)) return path;
  throw new Fault(
    "dependency_missing",
    named === undefined
      ? "there is no Chromium or Chrome in the usual places: install one (on Debian: apt-get install chromium), or set executablePath or REEVE_CHROMIUM"
      : `REEVE_CHROMIUM is ${named}, which is not an executable file: set it to the path of Chromium or Chrome`,
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
