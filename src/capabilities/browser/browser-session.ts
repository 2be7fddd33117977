import type { Browser, BrowserContext, Page } from "playwright-core";
import {
  Fault,
  type ChatMessage,
  type EphemeralSource,
  type ImagePart,
  type TextPart,
} from "../../kernel/index.ts";
import { launchChromium, type LaunchOptions } from "./launch-chromium.ts";

export interface BrowserOptions extends LaunchOptions {
  /** Show the model a picture of the page before each of its turns. Off unless told. */
  readonly useScreenshot?: boolean;
  /** Show it what is on the page, element by element. Off unless told; the tools show it in any case. */
  readonly useAccessibility?: boolean;
  readonly viewport?: { readonly width: number; readonly height: number };
  /** Which addresses may be opened, redirects, frames and what pages load included. Every http and https one unless told. */
  readonly allow?: (url: URL) => boolean;
  /** For one action. 15,000 unless told. */
  readonly timeoutMs?: number;
}

export interface Tab {
  readonly id: number;
  readonly title: string;
  readonly url: string;
  readonly active: boolean;
}

export interface BrowserState {
  readonly tabs: readonly Tab[];
  readonly viewport: { readonly width: number; readonly height: number };
  /** PNG, base64. */
  readonly screenshot?: string;
  readonly accessibility?: string;
}

/** Of what a page says, so much is shown at a time. */
const mostChars = 20_000;
const images = "image/png";

/**
 * One browser for one agent, started with its first use and closed by whoever made it. Nothing of it is durable: after a restart it is a new
 * one, with no tab open, which the next state says.
 */
export class BrowserSession implements EphemeralSource {
  readonly name = "browser";
  readonly #options: BrowserOptions;
  #starting: Promise<{ readonly browser: Browser; readonly context: BrowserContext }> | undefined;
  readonly #tabs = new Map<number, Page>();
  #active = 0;
  #lastTab = 0;

  constructor(options: BrowserOptions = {}) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#tabs.size > 0;
  }

  /** Where the browser stands. Titles, addresses and the window always; the rest as the options, or `also`, say. */
  async getState(
    also: Pick<BrowserOptions, "useScreenshot" | "useAccessibility"> = {},
  ): Promise<BrowserState> {
    const { useScreenshot = false, useAccessibility = false } = { ...this.#options, ...also };
    const page = this.#tabs.get(this.#active);
    const tabs = await Promise.all(
      [...this.#tabs].map(async ([id, each]) => ({
        id,
        title: await each.title().catch(() => ""),
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

  /** For one model call: nothing while no tab is open. */
  async messages(): Promise<readonly ChatMessage[]> {
    if (!this.isOpen) return [];
    return [{ role: "user", content: stateParts(await this.getState()) }];
  }

  async open(address: string, { newTab = false }: { readonly newTab?: boolean } = {}): Promise<void> {
    const url = this.#permitted(address);
    const page = !newTab && this.isOpen ? this.page() : await this.#newPage();
    await page.goto(url.href, { waitUntil: "domcontentloaded" });
  }

  /** The tab in front. */
  page(): Page {
    const page = this.#tabs.get(this.#active);
    if (page === undefined)
      throw new Fault("invalid_argument", "no page is open: open one with browser_open");
    return page;
  }

  /** What is on the page, each element with a reference for the next action; references hold until the page is looked at again. */
  async look(): Promise<string> {
    return cut(await this.page().ariaSnapshot({ mode: "ai" }));
  }

  async showTab(id: number): Promise<void> {
    const page = this.#tabs.get(id);
    if (page === undefined)
      throw new Fault(
        "not_found",
        `there is no tab ${id}; there are: ${[...this.#tabs.keys()].join(", ") || "none"}`,
      );
    this.#active = id;
    await page.bringToFront();
  }

  async closeTab(id: number): Promise<void> {
    await this.showTab(id);
    await this.page().close();
  }

  async close(): Promise<void> {
    const starting = this.#starting;
    this.#starting = undefined;
    this.#tabs.clear();
    const started = await starting?.catch(() => undefined);
    await started?.browser.close();
  }

  get #viewport(): { readonly width: number; readonly height: number } {
    return this.#options.viewport ?? { width: 1280, height: 800 };
  }

  #permitted(address: string): URL {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (url === undefined)
      throw new Fault(
        "invalid_argument",
        `${JSON.stringify(address)} is not an address: give all of it, with https://`,
      );
    if (!this.#allows(url))
      throw new Fault("permission_denied", `${url.href} may not be opened by this browser`);
    return url;
  }

  #allows(url: URL): boolean {
    if (url.href === "about:blank") return true;
    return /^https?:$/u.test(url.protocol) && (this.#options.allow?.(url) ?? true);
  }

  async #newPage(): Promise<Page> {
    this.#starting ??= this.#start();
    const { context } = await this.#starting.catch((error: unknown) => {
      this.#starting = undefined;
      throw error;
    });
    return context.newPage();
  }

  async #start(): Promise<{ readonly browser: Browser; readonly context: BrowserContext }> {
    const browser = await launchChromium(this.#options);
    const context = await browser.newContext({ viewport: this.#viewport });
    context.setDefaultTimeout(this.#options.timeoutMs ?? 15_000);
    await context.route("**/*", async (route) => {
      const url = route.request().url();
      const inPage = /^(?:data|blob):/u.test(url);
      if (inPage || this.#allows(new URL(url))) await route.continue();
      else await route.abort("blockedbyclient");
    });
    // A tab that a page opens is a tab like any other, and in front.
    context.on("page", (page) => this.#adopt(page));
    browser.on("disconnected", () => {
      this.#tabs.clear();
      this.#starting = undefined;
    });
    return { browser, context };
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

function cut(text: string): string {
  return text.length <= mostChars
    ? text
    : `${text.slice(0, mostChars)}\n[... ${text.length - mostChars} characters more]`;
}
