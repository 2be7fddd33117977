import type { Browser, BrowserContextOptions, Locator, Page, ViewportSize } from "playwright-core";
import { afterAll, afterEach, beforeAll } from "vitest";
import { buildPage } from "../../build/page.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { company, soloists } from "./company.ts";
import { goWithin, openPage, PageServer, watchPage, wide, type OpenPage } from "./page-server.ts";
import { Stage, type Line } from "./stage.ts";

/** Models that forks change to, with what they answer each time. */
const otherModels: Readonly<Record<string, Line>> = {
  "stage/haiku-5": { text: "In short: published." },
  "stage/mute": {},
};

/** How a page is shown. */
type View = Pick<BrowserContextOptions, "colorScheme" | "reducedMotion"> & {
  readonly viewport?: ViewportSize;
};

/** What the tests of a file share: one server and one browser. */
export interface PageTests {
  readonly server: PageServer;
  readonly stage: Stage;
  /** Opens a path. After the test, the page must have reported nothing but what was expected. */
  readonly open: (path: string, view?: View) => Promise<Page>;
  /** Opens a path of which a test expects problems. */
  readonly openWatched: (path: string) => Promise<OpenPage>;
}

/** Starts a server and a browser for the tests of a file. */
export function pageTests(): PageTests {
  const stage = new Stage();
  const server = new PageServer((folder) => [company(stage, folder), ...soloists(stage)], {
    resolveModel: (name) => {
      const line = otherModels[name];
      return line && stage.actor(Array<Line>(5).fill(line), name.slice("stage/".length));
    },
  });
  const opened: OpenPage[] = [];
  // A new page needs two seconds of processor time, and a further address in the same page half a second.
  const idle: Page[] = [];
  let browser: Browser;
  beforeAll(async () => {
    await buildPage();
    await server.start();
    browser = await startBrowser();
  });
  afterEach(async ({ task }) => {
    const isFailed = task.result?.state === "fail";
    for (const { page, problems } of opened.splice(0)) {
      if (isFailed || problems.length > 0) await page.context().close();
      else idle.push(await emptied(page));
      if (problems.length > 0) throw new Error(`the page reported: ${problems.join("; ")}`);
    }
  });
  /** Removes what a test left in a page. A document without a script replaces the page, because the page writes when it is left. */
  const emptied = async (page: Page): Promise<Page> => {
    page.removeAllListeners();
    await page.unrouteAll();
    // Its icon is empty, because Chromium otherwise asks for one during the next test.
    const body = '<link rel="icon" href="data:,">';
    await page.route("**/empty", (route) => route.fulfill({ contentType: "text/html", body }));
    await page.goto(`${server.url}/empty`);
    await page.unrouteAll();
    await page.evaluate(() => {
      localStorage.clear();
      sessionStorage.clear();
    });
    return page;
  };
  afterAll(async () => {
    await browser.close();
    removeBrowser();
    await server.remove();
  });
  const openWatched = async (path: string, view: View = {}): Promise<OpenPage> => {
    const page = idle.pop() ?? (await browser.newPage());
    await page.setViewportSize(view.viewport ?? wide);
    await page.emulateMedia({
      colorScheme: view.colorScheme ?? null,
      reducedMotion: view.reducedMotion ?? null,
    });
    const one = await watchPage(page, server.url + path);
    opened.push(one);
    return one;
  };
  return {
    server,
    stage,
    open: async (path, view) => (await openWatched(path, view)).page,
    openWatched,
  };
}

/** Whether something becomes visible. Fails after the timeout of the page. */
export async function shown(what: Locator): Promise<boolean> {
  await what.waitFor();
  return true;
}

/** One page that the tests of a file share. */
interface SharedPage {
  /** Goes to a path, without loading the page again. */
  readonly open: (path: string) => Promise<Page>;
  /** Says which problem of the page a test expects. */
  readonly expect: OpenPage["expect"];
}

/**
 * Starts a server for one test file and opens one page for all its tests, because a new page takes seconds. After the
 * tests, the page must have reported only the expected errors. `prepare` is called before the server starts, `cleanUp`
 * after the server has stopped.
 */
export function sharedPage(
  server: PageServer,
  {
    prepare,
    cleanUp,
  }: { readonly prepare?: () => Promise<void>; readonly cleanUp?: () => Promise<void> } = {},
): SharedPage {
  let browser: Browser;
  let watched: OpenPage;
  beforeAll(async () => {
    await buildPage();
    await prepare?.();
    await server.start();
    browser = await startBrowser();
    watched = await openPage(browser, `${server.url}/agents`);
  });
  afterAll(async () => {
    await browser.close();
    removeBrowser();
    await server.remove();
    await cleanUp?.();
    if (watched.problems.length > 0) throw new Error(`the page reported: ${watched.problems.join("; ")}`);
  });
  return {
    open: async (path) => {
      await goWithin(watched.page, path);
      return watched.page;
    },
    expect: (problem) => watched.expect(problem),
  };
}
