import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { BrowserSession, browserTools, type BrowserOptions } from "../../src/capabilities/browser/index.ts";
import type { ModelRequest } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { chromiumPath } from "../chromium.ts";

const shop = `<!doctype html><title>Shop</title><h1>Teas</h1>
  <form action="/order"><label>Name <input name="who"></label>
  <label>Kind <select name="kind"><option>green</option><option>black</option></select></label>
  <button>Order</button></form><a href="/more" target="_blank">More teas</a>`;

let server: Server;
let site = "";
let executablePath = "";
const orders: string[] = [];
/** Resolves when the browser requests the page to which `/leave` leads. */
let arrived = Promise.withResolvers<void>();
const profiles = mkdtempSync(join(tmpdir(), "reeve-chromium-"));
const open: BrowserSession[] = [];
/** Sessions that several tests share, because a browser takes two seconds of processor time to start. */
let plain: BrowserSession;
let hasty: BrowserSession;

beforeAll(async () => {
  server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://shop");
    response.setHeader("content-type", "text/html");
    if (url.pathname === "/order") {
      orders.push(`${url.searchParams.get("who")} ${url.searchParams.get("kind")}`);
      response.end(`<title>Thanks</title><p>Thank you, ${url.searchParams.get("who")}</p>`);
    } else if (url.pathname === "/away") {
      response.writeHead(302, { location: "http://other.test/" }).end();
    } else if (url.pathname === "/leave") {
      // Another site, so that the browser replaces the page's process.
      const next = `http://localhost:${(server.address() as AddressInfo).port}/arrive`;
      response.end(`<title>Leave</title><meta http-equiv="refresh" content="0;url=${next}">`);
    } else if (url.pathname === "/arrive") {
      arrived.resolve();
      response.end("<title>Arrived</title>");
    } else if (url.pathname === "/busy") {
      // The thread waits for an answer that never comes, which needs no processor as a loop would.
      const wait = "const never = new XMLHttpRequest(); never.open('GET', '/never', false); never.send();";
      response.end(`<title>Busy</title><script>setTimeout(() => { ${wait} })</script>`);
    } else if (url.pathname === "/never") {
      request.on("close", () => response.destroy());
    } else response.end(url.pathname === "/more" ? "<title>More</title><p>Oolong</p>" : shop);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  // The profiles of Chromium are in the temporary folder; this one is deleted with the tests.
  process.env["TMPDIR"] = profiles;
  executablePath = await chromiumPath();
  const allow = ({ hostname }: URL): boolean => ["127.0.0.1", "localhost"].includes(hostname);
  plain = session({ viewport: { width: 320, height: 200 }, allow });
  hasty = session({ timeoutMs: 3_000 });
  // The tests close the others.
  open.length = 0;
});

afterEach(async () => {
  for (const browser of open.splice(0)) await browser.close();
});

afterAll(async () => {
  await plain.close();
  await hasty.close();
  server.close();
  rmSync(profiles, { recursive: true, force: true, maxRetries: 10 });
});

function session(options: BrowserOptions = {}): BrowserSession {
  const args = ["--headless=new", "--disable-gpu"];
  const browser = new BrowserSession({ executablePath, args, allowPrivate: true, ...options });
  open.push(browser);
  return browser;
}

function lastResult({ messages }: ModelRequest): string {
  return JSON.stringify(messages.at(-1));
}

/** Returns the reference of the first element whose line contains these words. */
function refOf(request: ModelRequest, words: string): string {
  const [, ref = ""] =
    new RegExp(`${words}[^\\[]*?(?:\\[[^\\]]*\\] )*?\\[ref=(\\w+)\\]`, "u").exec(lastResult(request)) ?? [];
  return ref;
}

test("getState() of the browser lists the tabs, and includes the screenshot and the accessibility tree if the options say so", async () => {
  expect({ state: await plain.getState(), messages: await plain.messages() }).toEqual({
    state: { tabs: [], viewport: { width: 320, height: 200 } },
    messages: [],
  });
  await plain.open(site);
  await plain.open(`${site}/more`, { newTab: true });
  const bare = await plain.getState();
  expect(bare.tabs).toEqual([
    { id: 1, title: "Shop", url: `${site}/`, active: false },
    { id: 2, title: "More", url: `${site}/more`, active: true },
  ]);
  expect(Object.keys(bare)).toEqual(["tabs", "viewport"]);
  const { screenshot = "", accessibility } = await plain.getState({
    useScreenshot: true,
    useAccessibility: true,
  });
  const picture = Buffer.from(screenshot, "base64");
  expect([picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([320, 200]);
  expect(accessibility).toContain("Oolong");
  await plain.closeTab(2);
  expect((await plain.getState()).tabs).toEqual([{ id: 1, title: "Shop", url: `${site}/`, active: true }]);
});

test("an agent with a browser fills in a form of a real page and reads the result", async () => {
  const call = (name: string, input: object) => ({ toolCalls: [{ name, input: { ...input } }] });
  let [who, kind, button] = ["", "", ""];
  const model = scriptedModel([
    call("browser_open", { url: site }),
    (request) => {
      [who, kind, button] = [refOf(request, "textbox"), refOf(request, "combobox"), refOf(request, "button")];
      return call("browser_type", { ref: who, text: "Ada" });
    },
    (request) => call("browser_select", { ref: refOf(request, "combobox") || kind, option: "black" }),
    (request) => call("browser_click", { ref: refOf(request, "button") || button }),
    (request) => (lastResult(request).includes("Thank you, Ada") ? "ordered" : lastResult(request)),
  ]);
  const runtime = await createRuntime({ unknownPrice: "ignore" });
  const buyer = new Agent({ name: "buyer", model, tools: browserTools(plain) });
  const { output } = await (await runtime.submit(buyer, "Order black tea for Ada")).result();
  await runtime.close();
  expect(output).toBe("ordered");
  expect(orders).toEqual(["Ada black"]);
});

test("messages() of the browser shows the screenshot before a turn if useScreenshot is set", async () => {
  const browser = session({ useScreenshot: true });
  await browser.open(site);
  const [message] = await browser.messages();
  expect(message).toMatchObject({
    role: "user",
    content: [
      { type: "text", text: expect.stringContaining(`* tab 1: Shop <${site}/>`) },
      { type: "image", mediaType: "image/png" },
    ],
  });
});

test("open() of the browser refuses URLs that are not allowed, even after a redirect, and names an invalid URL", async () => {
  await expect(plain.open("http://other.test/")).rejects.toMatchObject({ code: "permission_denied" });
  await expect(plain.open("file:///etc/passwd")).rejects.toMatchObject({ code: "permission_denied" });
  await expect(plain.open("shop")).rejects.toMatchObject({ code: "invalid_argument" });
  await expect(plain.open(`${site}/away`)).rejects.toMatchObject({
    code: "permission_denied",
    message: expect.stringContaining("http://other.test/ may not be opened") as unknown,
  });
  expect((await plain.getState()).tabs.map(({ url }) => url)).not.toContain("http://other.test/");
});

test("open() of the browser refuses a private address by the rule of fetch, and allowPrivate names exceptions", async () => {
  const resolve = async () => [{ address: "127.0.0.1", family: 4 } as const];
  const { port } = new URL(site);
  const browser = session({ allowPrivate: ["shop.example"], resolve });
  await expect(browser.open(site)).rejects.toMatchObject({
    code: "permission_denied",
    message: "127.0.0.1 is not fetched: 127.0.0.1 is not a public address",
  });
  await expect(browser.open(`http://inner.example:${port}/`)).rejects.toMatchObject({
    code: "permission_denied",
  });
  await browser.open(`http://shop.example:${port}/`);
  expect((await browser.getState()).tabs).toMatchObject([{ title: "Shop" }]);
});

test("open() of the browser connects to the address that was checked, not to the answer of another DNS lookup", async () => {
  const lookups: string[] = [];
  const resolve = async (hostname: string) => {
    lookups.push(hostname);
    return [{ address: lookups.length === 1 ? "93.184.215.14" : "127.0.0.1", family: 4 } as const];
  };
  const browser = session({ allowPrivate: false, resolve });
  const { port } = new URL(site);
  await expect(browser.open(`http://rebinding.example:${port}/`)).rejects.toMatchObject({
    code: "permission_denied",
    message: expect.stringContaining("127.0.0.1 is not a public address") as unknown,
  });
});

test("the option allow of the browser refuses an address if the function throws or returns a promise", async () => {
  const throwing = session({
    allow: () => {
      throw new Error("no rules");
    },
  });
  await expect(throwing.open(site)).rejects.toMatchObject({ code: "permission_denied" });
  const promising = session({ allow: (async () => true) as unknown as () => boolean });
  await expect(promising.open(site)).rejects.toMatchObject({ code: "permission_denied" });
});

test("browser_open has the risk high, because a URL can carry data out", () => {
  const [open_] = browserTools(session());
  expect(open_).toMatchObject({ name: "browser_open", risk: "high", destructive: false });
});

test("open() of the browser names the browser program that is missing", async () => {
  await expect(session({ executablePath: "/nowhere/chromium" }).open(site)).rejects.toMatchObject({
    code: "dependency_missing",
    message: expect.stringContaining("/nowhere/chromium"),
  });
});

test("a closed BrowserSession starts a new browser at its next use", async () => {
  await plain.open(site);
  await plain.close();
  expect(plain.isOpen).toBe(false);
  await plain.open(site);
  expect((await plain.getState()).tabs).toHaveLength(1);
});

test("closeTab() closes a browser tab while another site replaces its page, and closes the browser with its last tab", async () => {
  // A tab that stays, because the browser would end with its last one.
  await plain.open(site);
  const stays = (await plain.getState()).tabs[0]?.id ?? Number.NaN;
  for (let round = 1; round <= 10; round++) {
    arrived = Promise.withResolvers();
    await plain.open(`${site}/leave`, { newTab: true });
    await arrived.promise;
    await plain.closeTab(stays + round);
    expect((await plain.getState()).tabs).toMatchObject([{ id: stays, active: true }]);
  }
  arrived = Promise.withResolvers();
  await plain.open(`${site}/leave`);
  await arrived.promise;
  await plain.closeTab(stays);
  expect(plain.isOpen).toBe(false);
});

test("getState() and open() of the browser work while a page blocks its thread", async () => {
  await untilDone(() => hasty.open(site));
  // The page is complete or blocked first.
  const [opened] = await Promise.allSettled([hasty.open(`${site}/busy`)]);
  expect(String(opened.status === "rejected" ? opened.reason : "Timeout 3000ms exceeded")).toContain(
    "Timeout 3000ms exceeded",
  );
  await expect(hasty.look()).rejects.toThrow("Timeout 3000ms exceeded");
  expect((await hasty.getState()).tabs).toMatchObject([{ title: "", url: `${site}/busy` }]);
  await untilDone(async () => {
    await hasty.open(`${site}/more`, { newTab: true });
    expect(await hasty.look()).toContain("Oolong");
  });
});

test("a browser action throws tool_timeout if the browser hangs, and the next action starts a new browser", async () => {
  // Every other browser would stop, too.
  await plain.close();
  await untilDone(() => hasty.open(site));
  const pids = browserPids();
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  try {
    await expect(hasty.closeTab(1)).rejects.toMatchObject({
      code: "tool_timeout",
      message: "the browser did not finish closing tab 1 within 3000 ms",
    });
    expect(hasty.isOpen).toBe(false);
    await untilDone(() => hasty.open(`${site}/more`));
  } finally {
    for (const pid of pids) endProcess(pid);
  }
  expect((await hasty.getState()).tabs).toMatchObject([{ title: "More", active: true }]);
});

/** Repeats an action that may exceed the short time limit of its session on a busy machine. */
function untilDone(action: () => Promise<void>): Promise<void> {
  return vi.waitFor(action, { timeout: 120_000 });
}

/** Returns the ids of the processes that this process has started, and of those that they have started. */
function browserPids(): number[] {
  const parents = new Map(readdirSync("/proc").map((name) => [Number(name), parentOf(name)]));
  const isOwn = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === process.pid || isOwn(parent));
  };
  return [...parents.keys()].filter(isOwn);
}

/** Ends a process, which the session may have ended meanwhile. */
function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function parentOf(pid: string): number | undefined {
  try {
    return Number(/^PPid:\t(\d+)$/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  } catch {
    // It is not a process, or it has ended since the folder was read.
    return undefined;
  }
}
