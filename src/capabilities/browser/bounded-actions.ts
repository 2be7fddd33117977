import type { Page } from "playwright-core";
import { Fault } from "../../kernel/index.ts";

/** Interval at which a tab is asked again to close, in milliseconds. */
const retryMs = 200;

/** Settles like `action`, or throws `tool_timeout` if the browser does not finish it in time. */
export async function within<T>(timeoutMs: number, what: string, action: Promise<T>): Promise<T> {
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
 * Closes a page. Chromium loses the request if it arrives while a navigation replaces the page, and the driver waits
 * forever, so the request is repeated until the page is closed.
 */
export async function closePage(page: Page): Promise<void> {
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
