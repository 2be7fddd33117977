// Needs `npm ci` with development packages: it opens the page in the Chromium of the tests.
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { buildPage } from "../build/page.ts";
import { removeBrowser, startBrowser } from "../test/page/chromium.ts";
import { PageCompany } from "./page-company.ts";
import { median, type Row } from "./row.ts";

const agents = 5_000;
const eventsPerSecond = 1_000;
const paintRounds = 7;
const frameRounds = 3;
const frameMs = 4_000;
const tabs = ["chart", "timeline", "conversation", "events"] as const;
const folder = fileURLToPath(new URL("../dist/page", import.meta.url));

export async function* rows(): AsyncIterable<Row> {
  await buildPage();
  yield bundle();
  const company = new PageCompany(agents);
  const empty = await emptyPage();
  const browser = await startBrowser();
  try {
    const run = await company.start();
    const pages = new Pages(browser, new URL(run).origin);
    yield* firstPaint(pages, empty.url, run);
    company.work(eventsPerSecond);
    for (const tab of tabs) yield* frames(pages, empty.url, `${run}/${tab}`, tab);
    yield await heap(pages, `${run}/chart`);
    yield {
      name: "requests to other hosts",
      value: pages.foreign,
      unit: "requests",
      against: null,
      goal: { atMost: 0 },
    };
    yield {
      name: "load of the machine, for the rows above",
      value: loadavg()[0] ?? 0,
      unit: "",
      against: null,
      goal: null,
    };
  } finally {
    await browser.close();
    removeBrowser();
    empty.close();
    await company.stop();
  }
}

/** All that the page loads before it draws. */
function bundle(): Row {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const bytes = files.reduce(
    (sum, { parentPath, name }) => sum + gzipSync(readFileSync(join(parentPath, name))).byteLength,
    0,
  );
  return {
    name: "files of the page, gzip",
    value: bytes / 1_024,
    unit: "KB",
    against: null,
    goal: { atMost: 90 },
  };
}

/** A page without content but one line, for comparison. */
async function emptyPage(): Promise<{ readonly url: string; close(): void }> {
  const http = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>Empty</title><p id=painted>Empty</p>");
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`, close: () => void http.close() };
}

/** Notes when an element is first painted, and the time between frames. */
function probe(selector: string): string {
  return `(() => {
    const probe = { painted: null, frames: [] };
    window.probe = probe;
    let last = null;
    const frame = (at) => {
      if (last !== null) probe.frames.push(at - last);
      last = at;
      if (probe.painted === null && document.querySelector(${JSON.stringify(selector)}) !== null)
        requestAnimationFrame(() => { probe.painted ??= performance.now(); });
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  })()`;
}

/** Opens pages, each in a context of its own, without a cache. */
class Pages {
  /** Number of requests that left the server of the page. */
  foreign = 0;
  readonly #browser: Browser;
  readonly #origin: string;

  constructor(browser: Browser, origin: string) {
    this.#browser = browser;
    this.#origin = origin;
  }

  async open<Value>(url: string, selector: string, use: (page: Page) => Promise<Value>): Promise<Value> {
    const context = await this.#browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    page.on("request", (request) => {
      if (!request.url().startsWith(this.#origin) && !request.url().startsWith(new URL(url).origin))
        this.foreign++;
    });
    await page.addInitScript(probe(selector));
    await page.goto(url);
    await page.locator(selector).first().waitFor();
    const value = await use(page);
    await context.close();
    return value;
  }
}

async function paintedAt(page: Page): Promise<number> {
  for (;;) {
    const at = (await page.evaluate("window.probe.painted")) as number | null;
    if (at !== null) return at;
    await page.waitForTimeout(20);
  }
}

const title = ".run-title h1";

/** From the start of the navigation to the frame that shows the run: its title, and the chart of all its agents. */
async function* firstPaint(pages: Pages, empty: string, run: string): AsyncIterable<Row> {
  const [blank, named, drawn]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round <= paintRounds; round++) {
    const times = [
      await pages.open(empty, "#painted", paintedAt),
      await pages.open(`${run}/chart`, title, paintedAt),
      await pages.open(`${run}/chart`, ".team-box", paintedAt),
    ] as const;
    // The first round waits for the server's first read of the run.
    if (round === 0) continue;
    blank.push(times[0]);
    named.push(times[1]);
    drawn.push(times[2]);
  }
  const against = median(blank);
  yield {
    name: "first paint of a run of 5,000 agents: its title",
    value: median(named),
    unit: "ms",
    against,
    goal: { atMost: 3 },
  };
  yield {
    name: "first paint of a run of 5,000 agents: its whole chart",
    value: median(drawn),
    unit: "ms",
    against,
    goal: null,
  };
}

async function frameTimes(page: Page): Promise<number> {
  await page.evaluate("window.probe.frames.length = 0");
  await page.waitForTimeout(frameMs);
  const times = (await page.evaluate("window.probe.frames")) as readonly number[];
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.95)] ?? Infinity;
}

async function* frames(pages: Pages, empty: string, url: string, tab: string): AsyncIterable<Row> {
  const [blank, ours, arrived]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < frameRounds; round++) {
    blank.push(await pages.open(empty, "#painted", frameTimes));
    await pages.open(url, ".position b", async (page) => {
      await settled(page);
      const [from, began] = [await position(page), performance.now()];
      ours.push(await frameTimes(page));
      arrived.push((1_000 * ((await position(page)) - from)) / (performance.now() - began));
    });
  }
  yield {
    name: `${tab}: p95 of frames, 1,000 events/s at 5,000 tasks`,
    value: median(ours),
    unit: "ms",
    against: median(blank),
    goal: { atMost: 1.5 },
  };
  yield {
    name: `${tab}: events that arrive meanwhile`,
    value: median(arrived),
    unit: "events/s",
    against: null,
    goal: { atLeast: 0.9 * eventsPerSecond },
  };
}

/** Resolves when the page has read the past of the run. */
async function settled(page: Page): Promise<void> {
  await page.waitForTimeout(5_000);
}

/** Number of the event that the page shows. */
async function position(page: Page): Promise<number> {
  return Number(await page.locator(".position b").textContent());
}

async function heap(pages: Pages, url: string): Promise<Row> {
  return pages.open(url, ".team-box", async (page) => {
    const debug = await page.context().newCDPSession(page);
    const used = async (): Promise<number> => {
      await debug.send("HeapProfiler.collectGarbage");
      return (await debug.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
    };
    await page.waitForTimeout(10_000);
    const early = await used();
    await page.waitForTimeout(50_000);
    return {
      name: "JavaScript heap after 60 s, against 10 s",
      value: await used(),
      unit: "MB",
      against: early,
      goal: { atMost: 1.1 },
    };
  });
}
