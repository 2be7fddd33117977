import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { openStore } from "../../src/entries/index.ts";
import { GatewayDesk } from "../../src/capabilities/gateway/gateway-desk.ts";
import type { GatewayRuns } from "../../src/capabilities/gateway/gateway-runs.ts";
import { GatewayTokens } from "../../src/capabilities/gateway/gateway-tokens.ts";
import type { HostedAgent, RunId, Runtime, Store } from "../../src/kernel/index.ts";
import type { RuntimeOptions } from "../../src/runtime/index.ts";
import { createServer, listen, type Listening } from "../../src/surfaces/server/index.ts";
import { repository } from "../gates/run-node.ts";
import { prices } from "./company.ts";

const pageFolder = join(repository, "dist/page");

interface PageServerOptions extends Pick<RuntimeOptions, "concurrency" | "crashLoopLimit" | "resolveModel"> {
  /** Folder of the store. Default: a new one. */
  readonly folder?: string;
  /** Default: a free one. */
  readonly port?: number;
}

/** A server with the page, on one SQLite file, which can be stopped and started again at the same port. */
export class PageServer {
  readonly folder: string;
  readonly #agents: (folder: string) => readonly HostedAgent[];
  #parts: { readonly store: Store; readonly runtime: Runtime; readonly listening: Listening } | undefined;
  readonly #runtimeOptions: Pick<RuntimeOptions, "concurrency" | "crashLoopLimit" | "resolveModel">;
  #port: number;
  /** Errors that the runtime reported because no caller receives them. */
  readonly errors: unknown[] = [];
  /** The gateway of the server, if the test has opened one. */
  gateway: { readonly runs: GatewayRuns } | undefined;

  constructor(
    agents: (folder: string) => readonly HostedAgent[],
    {
      folder = mkdtempSync(join(tmpdir(), "reeve-page-")),
      port = 0,
      ...runtimeOptions
    }: PageServerOptions = {},
  ) {
    this.#runtimeOptions = runtimeOptions;
    this.#agents = agents;
    this.folder = folder;
    this.#port = port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get runtime(): Runtime {
    return this.#open.runtime;
  }

  get store(): Store {
    return this.#open.store;
  }

  get #open() {
    if (this.#parts === undefined) throw new Error("the server is stopped");
    return this.#parts;
  }

  async start(): Promise<void> {
    const store = await openStore(`sqlite:${join(this.folder, "reeve.db")}`);
    const runtime = await openRuntime({
      store,
      prices,
      closeGraceMs: 0,
      onError: (error) => this.errors.push(error),
      ...this.#runtimeOptions,
    });
    const limits = { requestsPerSecond: 10_000, requestBurst: 10_000, changesMs: 20 };
    const agents = this.#agents(this.folder);
    const gateway = this.#desk(store);
    const server = createServer(runtime, { agents, tokens: null, page: pageFolder, limits, gateway });
    const listening = await listen(server, { port: this.#port });
    this.#port = listening.port;
    this.#parts = { store, runtime, listening };
  }

  /** What the page shows of the gateway of a test. */
  #desk(store: Store): GatewayDesk {
    const runs = {
      figures: (runId: RunId) => this.gateway?.runs.figures(runId),
      driven: () => this.gateway?.runs.driven() ?? [],
    };
    return new GatewayDesk(new GatewayTokens(store.records), { url: "http://127.0.0.1:1", runs });
  }

  async stop(): Promise<void> {
    const parts = this.#parts;
    this.#parts = undefined;
    await parts?.listening.close();
    await parts?.runtime.close();
    await parts?.store.close();
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

export interface OpenPage {
  readonly page: Page;
  /** Errors and warnings of the page so far, without those that a test expects. */
  readonly problems: string[];
  /** Declares failed requests that match as expected from now on. Returns a function that ends this. */
  readonly expect: (failures: ExpectedFailures) => () => void;
}

/** Failed requests that a test causes on purpose. */
interface ExpectedFailures {
  /** What the browser says about a request: its network error or the status of its answer. */
  readonly says: RegExp;
  /** Path of the request. */
  readonly path: RegExp;
}

/** What the browser says about requests to a server that stopped. */
export const serverIsDown: ExpectedFailures = {
  says: /net::ERR_(?:CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING|SOCKET_NOT_CONNECTED)\b/u,
  // A complete Chromium loads the icon again when the address changes.
  path: /^\/(?:api\/|icon\.svg$)/u,
};

/** Size of the page of a test, if the test asks for no other. */
export const wide = { width: 1440, height: 900 };

/** Opens a path of the page in a context of its own. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<OpenPage> {
  const context = await browser.newContext({ viewport: wide, ...options });
  return watchPage(await context.newPage(), url);
}

/** Opens an address, and collects what the page reports from then on. */
export async function watchPage(page: Page, url: string): Promise<OpenPage> {
  // Generous, because a busy machine draws slowly.
  page.setDefaultTimeout(60_000);
  const problems: string[] = [];
  const expected = new Set<ExpectedFailures>();
  page.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    const [text, { url: source }] = [message.text(), message.location()];
    const path = URL.canParse(source) ? new URL(source).pathname : "";
    if (![...expected].some((failures) => failures.says.test(text) && failures.path.test(path)))
      problems.push(`${text} ${source}`);
  });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !request.url().startsWith("data:"))
      problems.push(`external request ${request.url()}`);
  });
  await goTo(page, url);
  const expect = (failures: ExpectedFailures): (() => void) => {
    expected.add(failures);
    return () => void expected.delete(failures);
  };
  return { page, problems, expect };
}

/**
 * Opens an address and waits until the script of the page has drawn, and all views and fonts are loaded. The page of a run loads its
 * script after the first paint, which shows the title and the status of the run already; keys that are pressed before do nothing.
 */
export async function goTo(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.locator("header.top nav").waitFor({ state: "attached" });
  // A text, because Vitest replaces import() in functions. The second import() of a module waits until it has been executed.
  const loaded = `new Promise((resolve) => {
    new PerformanceObserver((list) => {
      const found = list.getEntries().find(({ name }) => /later-views[^/]*[.]js/.test(name));
      if (found !== undefined) resolve(found.name);
    }).observe({ type: "resource", buffered: true });
  }).then((name) => import(name)).then(() => document.fonts.ready).then(() => undefined)`;
  await page.evaluate(loaded);
}

/**
 * Goes to a path through the history of the browser, which takes a quarter of the time of loading the page again. An
 * empty view is shown in between, so that the test does not take the view before for the new one.
 */
export async function goWithin(page: Page, path: string): Promise<void> {
  await pushPath(page, "/nowhere");
  await page.getByRole("heading", { name: "Nothing is here" }).waitFor();
  await pushPath(page, path);
}

/** Changes the address as a link of the page does. The view of the same path keeps its state. */
export async function pushPath(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"));`,
  );
}
