import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll } from "vitest";
import { buildPage } from "../../build/page.ts";
import { removeBrowser, startBrowser } from "./chromium.ts";
import { company, soloists } from "./company.ts";
import { openPage, PageServer, type OpenPage } from "./page-server.ts";
import { Stage, type Line } from "./stage.ts";

/** Models that forks change to, with what they answer each time. */
const otherModels: Readonly<Record<string, Line>> = {
  "stage/haiku-5": { text: "In short: published." },
  "stage/mute": {},
};

/** What the tests of a file share: one server and one browser. */
export interface PageTests {
  readonly server: PageServer;
  readonly stage: Stage;
  /** Opens a path. After the test, the page is closed and must have reported nothing but what was expected. */
  readonly open: (path: string, options?: BrowserContextOptions) => Promise<Page>;
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
  let browser: Browser;
  beforeAll(async () => {
    await buildPage();
    await server.start();
    browser = await startBrowser();
  });
  afterEach(async () => {
    for (const { page, problems } of opened.splice(0)) {
      await page.context().close();
      if (problems.length > 0) throw new Error(`the page reported: ${problems.join("; ")}`);
    }
  });
  afterAll(async () => {
    await browser.close();
    removeBrowser();
    await server.remove();
  });
  const openWatched = async (path: string, options: BrowserContextOptions = {}): Promise<OpenPage> => {
    const one = await openPage(browser, server.url + path, options);
    opened.push(one);
    return one;
  };
  return {
    server,
    stage,
    open: async (path, options) => (await openWatched(path, options)).page,
    openWatched,
  };
}

/** Whether something becomes visible. Fails after the timeout of the page. */
export async function shown(what: Locator): Promise<boolean> {
  await what.waitFor();
  return true;
}
