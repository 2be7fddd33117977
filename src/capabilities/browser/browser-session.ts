import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import {
  type ChatMessage,
  type EphemeralSource,
  Fault,
  type ImagePart,
  type TextPart,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import type { AddressCheckOptions } from "../web/address-check.ts";
import type { FilterProxy } from "./filter-proxy.ts";
import { browserProblem, launchChromium, type LaunchOptions } from "./launch-chromium.ts";

/** Interval at which a tab is asked again to close, in milliseconds. */
const retryMs = 200;

/** Returns the result of `action`, or throws `tool_timeout` if the browser does not finish it in time. */
async function within<T>(timeoutMs: number, what: string, action: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Fault("tool_timeout", `the browser did not finish ${what} within ${timeoutMs} ms`));
  }, timeoutMs);
  try {
    return await Promise.race([action, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Closes a page. If the request arrives while a navigation replaces the page, Chromium loses it, and the driver
 * waits forever. Therefore the request is repeated until the page is closed.
 */
async function closePage(page: Page): Promise<void> {
  const timer = setInterval(() => {
    // The request fails while the page is being replaced, and once it is closed.
    requestClose(page).catch(() => undefined);
  }, retryMs);
  try {
    await page.close();
  } finally {
    clearInterval(timer);
  }
}

async function requestClose(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Page.close");
}

/**
 * Options of `BrowserSession`. Like the tool `fetch`, a browser refuses private addresses unless `allowPrivate` names
 * them.
 */
export interface BrowserOptions extends LaunchOptions, AddressCheckOptions {
  /** Whether the model sees a screenshot of the page before each of its turns. Default: `false`. */
  readonly useScreenshot?: boolean;
  /**
   * Whether the model sees the accessibility tree of the page before each of its turns. The tools return the tree in
   * any case. Default: `false`.
   */
  readonly useAccessibility?: boolean;
  /** Size of the page in pixels. Default: 1280 x 800. */
  readonly viewport?: { readonly width: number; readonly height: number };
  /**
   * Decides which URLs may be loaded, including redirects, frames, workers, WebSockets and resources of pages. For
   * a redirect, a WebSocket and a shared worker over HTTPS, only host and port are known. These are allowed if
   * another URL with this host and port was allowed, or if the function accepts the root URL. If the function
   * throws, the URL is refused. Default: every http and https URL.
   */
  readonly allow?: (url: URL) => boolean;
  /**
   * Maximum duration of one action, in milliseconds. A browser that does not open, show or close a tab in this time is
   * stopped, and the next action starts a new one. Default: 15_000.
   */
  readonly timeoutMs?: number;
}

/** An open tab. */
export interface Tab {
  /** Number of the tab, unique within the session. */
  readonly id: number;
  readonly title: string;
  readonly url: string;
  /** Whether the tab is in front. */
  readonly active: boolean;
}

/** State of the browser, as the model sees it. */
export interface BrowserState {
  readonly tabs: readonly Tab[];
  readonly viewport: { readonly width: number; readonly height: number };
  /** Screenshot of the active tab: PNG in base64. */
  readonly screenshot?: string;
  /** Accessibility tree of the active tab. */
  readonly accessibility?: string;
}

/** A running browser. */
interface Started {
  readonly browser: Browser;
  readonly context: BrowserContext;
}

/** Maximum length of an accessibility tree that the model sees, in characters. */
const maxChars = 20_000;
const images = "image/png";

const stateTable = optionTable({
  useScreenshot: is.boolean(),
  useAccessibility: is.boolean(),
} satisfies OptionKinds<Pick<BrowserOptions, "useScreenshot" | "useAccessibility">>);
const openTable = optionTable({ newTab: is.any } satisfies OptionKinds<{ readonly newTab?: boolean }>);

const knownOptions = optionTable({
  useScreenshot: is.boolean(),
  useAccessibility: is.boolean(),
  viewport: is.any,
  allow: is.callback(),
  timeoutMs: is.number({ from: 0 }),
  executablePath: is.text(),
  headless: is.boolean(),
  args: is.list({ of: is.text() }),
  allowPrivate: is.any,
  resolve: is.any,
} satisfies OptionKinds<BrowserOptions>);

/**
 * A browser for one agent. It starts when it is first used, and the code that created the session must close it.
 * Its state is not durable: after a restart the session has a new browser without tabs, and the next state says so.
 */
export class BrowserSession implements EphemeralSource {
  readonly name = "browser";
  readonly #options: BrowserOptions;
  #starting: Promise<Started> | undefined;
  /** Number of starts so far. With it, a browser that ends late can be distinguished from the next one. */
  #starts = 0;
  readonly #tabs = new Map<number, Page>();
  #active = 0;
  #lastTab = 0;
  /**
   * Why connections were refused since the last `open()`, by host. Some of them belong to no page, because the
   * browser itself makes them.
   */
  readonly #refusals = new Map<string, Fault>();

  constructor(options: BrowserOptions = {}) {
    knownOptions.read("BrowserSession", options);
    this.#options = options;
  }

  /**
   * Returns why this machine cannot start the browser, and how to change that. `undefined` if it can. It does not
   * start a browser.
   */
  problem(): Promise<string | undefined> {
    return browserProblem(this.#options);
  }

  /** Whether a tab is open. */
  get isOpen(): boolean {
    return this.#tabs.size > 0;
  }

  /**
   * Returns tabs and viewport. Whether the state includes a screenshot and the accessibility tree depends on the
   * options; `also` overrides them.
   */
  async getState(
    also: Pick<BrowserOptions, "useScreenshot" | "useAccessibility"> = {},
  ): Promise<BrowserState> {
    stateTable.read("getState()", also);
    const { useScreenshot = false, useAccessibility = false } = { ...this.#options, ...also };
    const page = this.#tabs.get(this.#active);
    const tabs = await Promise.all(
      [...this.#tabs].map(async ([id, each]) => ({
        id,
        title: await within(this.#timeoutMs, "reading the title", each.title()).catch(() => ""),
        url: each.url(),
        active: id === this.#active,
      })),
    );
    return {
      tabs,
      viewport: this.#viewport,
      ...(useScreenshot && page && { screenshot: (await page.screenshot()).toString("base64") }),
      ...(useAccessibility && page && { accessibility: cut(await page.ariaSnapshot({ mode: "ai" })) }),
    };
  }

  /** Returns the state as a message for one model call. Empty while no tab is open. */
  async messages(): Promise<readonly ChatMessage[]> {
    if (!this.isOpen) return [];
    return [{ role: "user", content: stateParts(await this.getState()) }];
  }

  /**
   * Opens a URL in the active tab, or in a new one. Throws `permission_denied` if `allow` refuses the URL or one to which
   * it redirects, or if its host has a private address.
   */
  async open(address: string, options: { readonly newTab?: boolean } = {}): Promise<void> {
    const { newTab = false } = openTable.read("open()", options);
    const url = this.#permitted(address);
    await this.#requirePublic(url);
    const page = !newTab && this.isOpen ? this.page() : await this.#newPage();
    this.#refusals.clear();
    // A page may redirect to a host that is refused.
    let { host } = url;
    const noteHost = (request: Request): void => {
      if (request.isNavigationRequest() && request.frame() === page.mainFrame())
        ({ host } = new URL(request.url()));
    };
    page.on("request", noteHost);
    try {
      await page.goto(url.href, { waitUntil: "domcontentloaded" });
    } catch (error) {
      throw (isNetworkError(error) ? this.#refusals.get(host) : undefined) ?? error;
    } finally {
      page.off("request", noteHost);
    }
  }

  /** Returns the Playwright page of the active tab. Throws if no tab is open. */
  page(): Page {
    const page = this.#tabs.get(this.#active);
    if (page === undefined)
      throw new Fault("invalid_argument", "no page is open: open one with browser_open");
    return page;
  }

  /**
   * Returns the accessibility tree of the active tab. Each element has a reference for the next action; the references
   * are valid until the next call.
   */
  async look(): Promise<string> {
    return cut(await this.page().ariaSnapshot({ mode: "ai" }));
  }

  /** Brings a tab to the front. */
  async showTab(id: number): Promise<void> {
    const page = this.#tab(id);
    this.#active = id;
    await this.#orStop(`showing tab ${id}`, page.bringToFront());
  }

  /** Closes a tab. */
  async closeTab(id: number): Promise<void> {
    await this.#orStop(`closing tab ${id}`, closePage(this.#tab(id)));
  }

  /** Closes the browser. The next use starts a new one. */
  async close(): Promise<void> {
    const starting = this.#starting;
    this.#forget();
    const started = await starting?.catch(() => undefined);
    await started?.browser.close();
  }

  /** Calls `close` at the end of the block that declares the session with `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #forget(): void {
    this.#starting = undefined;
    this.#tabs.clear();
    this.#active = 0;
  }

  #tab(id: number): Page {
    const page = this.#tabs.get(id);
    if (page !== undefined) return page;
    const open = [...this.#tabs.keys()].join(", ") || "none";
    throw new Fault("not_found", `there is no tab ${id}; open tabs: ${open}`);
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? 15_000;
  }

  /**
   * Waits for an action of the browser. If the browser does not answer in time, it is stopped, and the next action
   * starts a new one.
   */
  async #orStop<T>(what: string, action: Promise<T>): Promise<T> {
    const starting = this.#starting;
    try {
      return await within(this.#timeoutMs, what, action);
    } catch (error) {
      if (Fault.from(error).code === "tool_timeout" && this.#starting === starting) {
        // Closing can take long, too, and ends with a kill. The caller does not wait for it.
        this.close().catch(() => undefined);
      }
      throw error;
    }
  }

  get #viewport(): { readonly width: number; readonly height: number } {
    return this.#options.viewport ?? { width: 1280, height: 800 };
  }

  #permitted(address: string): URL {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (url === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid URL ${JSON.stringify(address)}: use a complete URL that starts with https:// or http://`,
      );
    if (!this.#allows(url))
      throw new Fault(
        "permission_denied",
        `${url.href} may not be opened: the options of this browser do not allow it`,
      );
    return url;
  }

  #allows(url: URL): boolean {
    if (url.href === "about:blank") return true;
    if (!/^https?:$/u.test(url.protocol)) return false;
    const { allow } = this.#options;
    try {
      const decision: unknown = allow === undefined || allow(url);
      // A promise is not a decision, so only `true` allows.
      return decision === true;
    } catch (error) {
      this.#refusals.set(url.host, Fault.from(error));
      return false;
    }
  }

  async #newPage(): Promise<Page> {
    this.#starting ??= this.#start();
    const { context } = await this.#starting.catch((error: unknown) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#orStop("opening a tab", context.newPage());
  }

  /** Throws for a private address before the browser starts, with a message that names the address. */
  async #requirePublic(url: URL): Promise<void> {
    if (url.href === "about:blank") return;
    // Loaded on first use, so that importing the browser loads no network module.
    const { checkedAddress } = await import("../web/address-check.ts");
    await checkedAddress(url, this.#options);
  }

  async #start(): Promise<Started> {
    const start = ++this.#starts;
    const { FilterProxy: Proxy } = await import("./filter-proxy.ts");
    const { allowPrivate, resolve } = this.#options;
    const proxy = await Proxy.start({
      ...(allowPrivate !== undefined && { allowPrivate }),
      ...(resolve && { resolve }),
      allow: (url) => this.#allows(url),
      onRefused: (host, fault) => void this.#refusals.set(host, fault),
    });
    try {
      const browser = await launchChromium(this.#options, proxy.url);
      browser.on("disconnected", () => {
        proxy.close();
        if (start === this.#starts) this.#forget();
      });
      return { browser, context: await this.#newContext(browser, proxy) };
    } catch (error) {
      proxy.close();
      throw error;
    }
  }

  async #newContext(browser: Browser, proxy: FilterProxy): Promise<BrowserContext> {
    // The driver does not show the requests of a service worker, so there is none.
    const context = await browser.newContext({ viewport: this.#viewport, serviceWorkers: "block" });
    context.setDefaultTimeout(this.#timeoutMs);
    await context.route("**/*", async (route) => {
      const url = new URL(route.request().url());
      if (/^(?:data|blob):$/u.test(url.protocol)) return route.continue();
      if (!this.#allows(url)) return route.abort("blockedbyclient");
      proxy.grant(url);
      return route.continue();
    });
    // A tab that a page opens is tracked like any other and becomes the active one.
    context.on("page", (page) => this.#adopt(page));
    return context;
  }

  #adopt(page: Page): void {
    const id = ++this.#lastTab;
    this.#tabs.set(id, page);
    this.#active = id;
    page.on("close", () => {
      this.#tabs.delete(id);
      if (this.#active === id) this.#active = [...this.#tabs.keys()].at(-1) ?? 0;
    });
  }
}

/** Formats the state of a browser as message parts. */
export function stateParts({
  tabs,
  viewport,
  screenshot,
  accessibility,
}: BrowserState): (TextPart | ImagePart)[] {
  const lines = tabs.map(
    ({ id, title, url, active }) => `${active ? "*" : "-"} tab ${id}: ${title} <${url}>`,
  );
  const facts = [`Browser, ${viewport.width}x${viewport.height}:`, ...lines];
  if (accessibility !== undefined) facts.push("The page in front:", accessibility);
  const text: TextPart = { type: "text", text: facts.join("\n") };
  if (screenshot === undefined) return [text];
  return [text, { type: "image", mediaType: images, source: { kind: "base64", data: screenshot } }];
}

/** Whether the browser could not load a page. `false` if the page was only too slow. */
function isNetworkError(error: unknown): boolean {
  return Fault.from(error).message.includes("net::ERR_");
}

function cut(text: string): string {
  return text.length <= maxChars
    ? text
    : `${text.slice(0, maxChars)}\n[... ${text.length - maxChars} more characters]`;
}
