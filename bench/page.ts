// Needs `npm ci` with development packages: it opens the page in the Chromium of the tests.
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser, Page, Request } from "playwright-core";
import { buildPage } from "../build/page.ts";
import { removeBrowser, startBrowser } from "../test/page/chromium.ts";
import { PageCompany } from "./page-company.ts";
import { median, type Row } from "./row.ts";

const agents = 5_000;
const eventsPerSecond = 1_000;
const paintRounds = 6;
/** The benchmark takes about five minutes. Each of its waits ends after so many milliseconds with an error. */
const longestWaitMs = 30_000;
const earlyMs = 10_000;
const lateMs = 60_000;
const emptyMs = 4_000;
const tabMs = 6_000;
/**
 * The minutes that the page is open, by its own clock. Each is shortened: its events arrive as fast as the machine writes
 * them, and then the clock of the page jumps to its end.
 */
const minutes = Number(process.env["REEVE_BENCH_MINUTES"] ?? 60);
const eventsPerMinute = 3_600;
const hurriedPerSecond = 2_000;
const otherTabs = ["timeline", "conversation", "events"] as const;
const folder = fileURLToPath(new URL("../dist/page", import.meta.url));

export async function* rows(): AsyncIterable<Row> {
  progress("builds the page");
  await buildPage();
  yield* bundle();
  const company = new PageCompany(agents);
  const empty = await emptyPage();
  const browser = await startBrowser();
  try {
    progress(`hires ${agents} agents`);
    const run = await company.start();
    const pages = new Pages(browser, new URL(run).origin);
    yield* firstPaint(pages, empty.url, run);
    company.work(eventsPerSecond);
    yield* longWatch(pages, empty.url, `${run}/chart`);
    for (const tab of otherTabs) yield* shortWatch(pages, empty.url, `${run}/${tab}`, tab);
    yield await hourWatch(pages, company, `${run}/chart`);
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
    progress("stops");
    await browser.close();
    removeBrowser();
    empty.close();
    await company.stop();
  }
}

const startedAt = performance.now();

/** Says on stderr what the benchmark does now. */
function progress(text: string): void {
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.error(`${String(seconds).padStart(4)} s  ${text}`);
}

/** The files of the page: those that it loads before it draws, its fonts, which it does not wait for, and all of them. */
function bundle(): readonly Row[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const fonts = files.filter(({ name }) => name.endsWith(".woff2"));
  if (fonts.length === 0) throw new Error("the page has no font");
  const first = files.filter(
    ({ name }) => !name.startsWith("later-views") && !name.endsWith(".woff2") && !name.endsWith(".txt"),
  );
  if (first.length === files.length - fonts.length) throw new Error("the page has no file later-views");
  const size = (counted: typeof files): number =>
    counted.reduce(
      (sum, { parentPath, name }) => sum + gzipSync(readFileSync(join(parentPath, name))).byteLength,
      0,
    ) / 1_024;
  const row = { unit: "KB", against: null };
  return [
    {
      ...row,
      name: "files that the page loads before it draws, gzip",
      value: size(first),
      goal: { atMost: 90 },
    },
    { ...row, name: "fonts of the page", value: size(fonts), goal: { atMost: 40 } },
    { ...row, name: "all files of the page, gzip", value: size(files), goal: null },
  ];
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

/** Notes the frame in which an element with a text is first in the document, and the time between frames. */
function probe(selector: string, text: string): string {
  return `(() => {
    const probe = { frames: [] };
    window.probe = probe;
    let shown;
    probe.shownAt = new Promise((resolve) => (shown = resolve));
    probe.paintedAt = new Promise((resolve) => {
      const isPaint = ({ name }) => name === "first-contentful-paint";
      new PerformanceObserver((list) => {
        const paint = list.getEntries().find(isPaint);
        if (paint !== undefined) resolve(paint.startTime);
      }).observe({ type: "paint", buffered: true });
    });
    let last = null;
    const frame = (at) => {
      if (last !== null) probe.frames.push(at - last);
      last = at;
      const isShown = document.querySelector(${JSON.stringify(selector)})?.textContent.includes(${JSON.stringify(text)});
      if (isShown) shown(at);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  })()`;
}

interface Wanted {
  readonly url: string;
  /** The page is open when this element contains the text. */
  readonly selector: string;
  readonly text?: string;
}

/** Opens pages, one after the other, each in a context of its own and without a cache. */
class Pages {
  /** Number of requests that left the server of the page. */
  foreign = 0;
  readonly #browser: Browser;
  readonly #origin: string;

  constructor(browser: Browser, origin: string) {
    this.#browser = browser;
    this.#origin = origin;
  }

  async open<Value>(
    { url, selector, text = "" }: Wanted,
    use: (page: Page, past: Promise<unknown>) => Promise<Value>,
    prepare?: (page: Page) => Promise<void>,
  ): Promise<Value> {
    const context = await this.#browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    page.setDefaultTimeout(longestWaitMs);
    page.on("request", (request) => {
      if (!request.url().startsWith(this.#origin) && !request.url().startsWith(new URL(url).origin))
        this.foreign++;
    });
    const past = pastIsRead(page);
    await prepare?.(page);
    await page.addInitScript(probe(selector, text));
    await page.goto(url);
    await valueOf(page, "window.probe.shownAt");
    const value = await use(page, past);
    await context.close();
    return value;
  }
}

/** Resolves when the page has read the steps of the run. */
function pastIsRead(page: Page): Promise<void> {
  return new Promise((resolve) => {
    const check = (request: Request): void => {
      if (request.url().endsWith("/past")) resolve();
    };
    page.on("requestfailed", check);
    page.on("requestfinished", check);
  });
}

const title = { selector: ".run-title h1", text: "Port 5,000 packages" };
const blank = (url: string): Wanted => ({ url, selector: "#painted" });

/**
 * The time from the start of the navigation to the first contentful paint. If the element that is looked for was not in
 * the document yet, the time of the frame that shows it.
 */
async function firstPaintOf(page: Page): Promise<number> {
  const [paintedAt, shownAt] = [
    await valueOf<number>(page, "window.probe.paintedAt"),
    await valueOf<number>(page, "window.probe.shownAt"),
  ];
  return Math.max(paintedAt, shownAt);
}

/** The value of an expression in the page. The page's policy refuses scripts that are evaluated in other ways. */
async function valueOf<Value>(page: Page, expression: string): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`no value of ${expression} after ${longestWaitMs} ms`)),
    longestWaitMs,
  );
  try {
    return await Promise.race([page.evaluate<Value>(expression), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** The time of the frame after the one in which the chart of the run is in the document. */
function chartPaintOf(page: Page): Promise<number> {
  const drawn = `new Promise((resolve) => {
    const frame = () => {
      if (document.querySelector(".team-box") === null) requestAnimationFrame(frame);
      else requestAnimationFrame(() => resolve(performance.now()));
    };
    frame();
  })`;
  return valueOf(page, drawn);
}

async function* firstPaint(pages: Pages, empty: string, run: string): AsyncIterable<Row> {
  const [bare, named, drawn]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round <= paintRounds; round++) {
    progress(`first paint, round ${round} of ${paintRounds}`);
    const blankAt = await pages.open(blank(empty), firstPaintOf);
    const times = await pages.open({ url: `${run}/chart`, ...title }, async (page) => [
      await firstPaintOf(page),
      await chartPaintOf(page),
    ]);
    // The first round waits for the server's first read of the run.
    if (round === 0) continue;
    bare.push(blankAt);
    named.push(times[0] ?? Infinity);
    drawn.push(times[1] ?? Infinity);
  }
  const against = median(bare);
  yield {
    name: "first paint of a run of 5,000 agents",
    value: median(named),
    unit: "ms",
    against,
    goal: { atMost: 3 },
  };
  yield {
    name: "whole chart of a run of 5,000 agents",
    value: median(drawn),
    unit: "ms",
    against,
    goal: null,
  };
}

/** The 95th percentile of the times between frames while something happens. */
async function frameTime(page: Page, during: () => Promise<unknown>): Promise<number> {
  await page.evaluate("window.probe.frames.length = 0");
  await during();
  const times = await valueOf<readonly number[]>(page, "window.probe.frames");
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.95)] ?? Infinity;
}

function emptyFrameTime(pages: Pages, empty: string): Promise<number> {
  return pages.open(blank(empty), (page) => frameTime(page, () => page.waitForTimeout(emptyMs)));
}

/** Number of the event that the page shows, at the moment at which it changes. */
async function nextPosition(page: Page): Promise<{ readonly seq: number; readonly at: number }> {
  const changed = `new Promise((resolve) => {
    const shown = document.querySelector(".position b");
    const observer = new MutationObserver(() => {
      observer.disconnect();
      resolve({ seq: Number(shown.textContent.replaceAll(",", "")), at: performance.now() });
    });
    observer.observe(shown, { childList: true, characterData: true, subtree: true });
  })`;
  return valueOf(page, changed);
}

interface Watched {
  readonly frameMs: number;
  readonly eventsPerSecond: number;
}

async function watch(page: Page, forMs: number): Promise<Watched> {
  const from = await nextPosition(page);
  const frameMs = await frameTime(page, () => page.waitForTimeout(forMs));
  const to = await nextPosition(page);
  return { frameMs, eventsPerSecond: (1_000 * (to.seq - from.seq)) / (to.at - from.at) };
}

function* watchRows(tab: string, watched: Watched, against: number): Iterable<Row> {
  yield {
    name: `${tab}: p95 of frames, 1,000 events/s at 5,000 tasks`,
    value: watched.frameMs,
    unit: "ms",
    against,
    goal: { atMost: 1.5 },
  };
  yield {
    name: `${tab}: events that arrive meanwhile`,
    value: watched.eventsPerSecond,
    unit: "events/s",
    against: null,
    goal: { atLeast: 0.9 * eventsPerSecond },
  };
}

/** The chart for a minute: its frames between the two measurements of the heap. */
async function* longWatch(pages: Pages, empty: string, url: string): AsyncIterable<Row> {
  progress("chart: watches for a minute");
  const before = await emptyFrameTime(pages, empty);
  const [watched, heap] = await pages.open({ url, selector: ".position b" }, async (page) => {
    const openedAt = performance.now();
    const usedHeap = await heapOf(page);
    const until = (ms: number): Promise<void> =>
      page.waitForTimeout(Math.max(0, openedAt + ms - performance.now()));
    await until(earlyMs);
    const early = await usedHeap();
    const frames = await watch(page, Math.max(0, openedAt + lateMs - performance.now() - 2_000));
    await until(lateMs);
    return [frames, { early, late: await usedHeap() }] as const;
  });
  const after = await emptyFrameTime(pages, empty);
  yield* watchRows("chart", watched, (before + after) / 2);
  yield {
    name: "JavaScript heap after 60 s, against 10 s",
    value: heap.late,
    unit: "MB",
    against: heap.early,
    goal: { atMost: 1.1 },
  };
}

/** The chart for an hour of the page's clock with 60 events per second: whether its heap grows after the first minutes. */
async function hourWatch(pages: Pages, company: PageCompany, url: string): Promise<Row> {
  if (!Number.isInteger(minutes) || minutes < 2)
    throw new Error(`invalid REEVE_BENCH_MINUTES ${minutes}: expected an integer from 2`);
  const early = Math.min(5, minutes - 1);
  const heap = await pages.open(
    { url, selector: ".position b" },
    async (page) => {
      const usedHeap = await heapOf(page);
      company.work(hurriedPerSecond);
      let { seq } = await nextPosition(page);
      let before = 0;
      for (let minute = 1; minute <= minutes; minute++) {
        progress(`chart: minute ${minute} of ${minutes}`);
        const target = seq + eventsPerMinute;
        while (seq < target) ({ seq } = await nextPosition(page));
        await page.clock.fastForward(60_000);
        if (minute === early) before = await usedHeap();
      }
      return { before, after: await usedHeap() };
    },
    (page) => page.clock.install(),
  );
  return {
    name: `heap after ${minutes} min of the page's clock, ${eventsPerMinute} events each, against ${early} min`,
    value: heap.after,
    unit: "MB",
    against: heap.before,
    goal: { atMost: 1.1 },
  };
}

/** Returns a function that collects garbage and returns the size of what is left, in MB. */
async function heapOf(page: Page): Promise<() => Promise<number>> {
  const debug = await page.context().newCDPSession(page);
  return async () => {
    await debug.send("HeapProfiler.collectGarbage");
    return (await debug.send("Runtime.getHeapUsage")).usedSize / 2 ** 20;
  };
}

/** Another tab for some seconds, after it has read the past of the run. */
async function* shortWatch(pages: Pages, empty: string, url: string, tab: string): AsyncIterable<Row> {
  progress(`${tab}: watches for some seconds`);
  const against = await emptyFrameTime(pages, empty);
  const watched = await pages.open({ url, selector: ".position b" }, async (page, past) => {
    await Promise.race([past, page.waitForTimeout(longestWaitMs)]);
    return watch(page, tabMs);
  });
  yield* watchRows(tab, watched, against);
}
