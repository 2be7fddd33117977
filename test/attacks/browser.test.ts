import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { BrowserSession, type BrowserOptions } from "../../src/capabilities/browser/index.ts";
import { chromiumPath } from "../chromium.ts";

/** A host of its own for each attack. It records every connection and every UDP packet that reaches it. */
interface Host {
  readonly address: string;
  readonly hits: string[];
  close(): void;
}

/** Path and document of each page of the site, which is the only host that the pages under attack may load from. */
const pages = new Map<
  string,
  { readonly headers?: Readonly<Record<string, string>>; readonly html: string }
>();
const profiles = mkdtempSync(join(tmpdir(), "reeve-attacks-chromium-"));
let site: Server;
let executablePath = "";

const addressOf = (server: Server): string => `127.0.0.1:${(server.address() as AddressInfo).port}`;

async function host(): Promise<Host> {
  const hits: string[] = [];
  const server = createServer((request, response) => {
    hits.push(request.url ?? "");
    response.setHeader("access-control-allow-origin", "*");
    response.end("secret");
  });
  server.on("connection", (socket) => {
    hits.push("connection");
    socket.on("error", () => socket.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const udp = createSocket("udp4").on("message", () => hits.push("udp"));
  await new Promise<void>((resolve) => {
    udp.bind((server.address() as AddressInfo).port, "127.0.0.1", resolve);
  });
  const close = (): void => {
    udp.close();
    server.closeAllConnections();
    server.close();
  };
  return { address: addressOf(server), hits, close };
}

/** Answers with a page, with the script in the query, or with a redirect to the URL in the query. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url ?? "/", "http://site");
  const rest = decodeURIComponent(search.slice(1));
  const redirects: Readonly<Record<string, number>> = { "/away": 302, "/away307": 307 };
  const status = redirects[pathname];
  if (status !== undefined) response.writeHead(status, { location: rest }).end();
  else if (pathname.endsWith(".js")) response.setHeader("content-type", "text/javascript").end(rest);
  else {
    const { headers = {}, html = "" } = pages.get(pathname) ?? {};
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    response.setHeader("content-type", "text/html").end(`<!doctype html><title>x</title>${html}<p>end</p>`);
  }
}

function session(options: BrowserOptions): BrowserSession {
  const args = ["--headless=new", "--disable-gpu"];
  return new BrowserSession({ executablePath, args, ...options });
}

beforeAll(async () => {
  site = createServer(answer);
  await once(site.listen(0, "127.0.0.1"), "listening");
  // The profiles of Chromium are in the temporary folder; this one is deleted with the tests.
  vi.stubEnv("TMPDIR", profiles);
  executablePath = await chromiumPath();
});

afterAll(() => {
  site.closeAllConnections();
  site.close();
  vi.unstubAllEnvs();
  rmSync(profiles, { recursive: true, force: true, maxRetries: 10 });
});

interface Attack {
  readonly name: string;
  /** HTML of the page, the script in it, or its headers. `TARGET` stands for the forbidden host. */
  readonly html?: string;
  readonly script?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the page needs a separate tab. Otherwise the page is a frame beside other pages. Default: `false`. */
  readonly inTab?: boolean;
  /** Whether the attack reaches the target in a browser without an allow list. Default: `true`. */
  readonly isReal?: boolean;
}

/** The page keeps a reference to the worker. Without it, Chromium may collect the worker before its script has run. */
const inWorker = (code: string, kind = "Worker"): string =>
  `self.kept = new ${kind}("/w.js?" + encodeURIComponent(${JSON.stringify(code)}))`;

const attacks: readonly Attack[] = [
  { name: "an image", html: `<img src="http://TARGET/hit">` },
  { name: "an image with srcset", html: `<img srcset="http://TARGET/hit 1x">` },
  { name: "a script", html: `<script src="http://TARGET/hit"></script>` },
  { name: "a module script", script: `import("http://TARGET/hit").catch(() => {})` },
  { name: "a style sheet", html: `<link rel="stylesheet" href="http://TARGET/hit">` },
  { name: "an @import", html: `<style>@import url("http://TARGET/hit");</style>` },
  { name: "a CSS background", html: `<div style="background:url(http://TARGET/hit)">x</div>` },
  {
    name: "a font",
    html: `<style>@font-face{font-family:f;src:url(http://TARGET/hit)}</style><p style="font-family:f">x</p>`,
  },
  { name: "a frame", html: `<iframe src="http://TARGET/hit"></iframe>` },
  { name: "a sandboxed frame", html: `<iframe sandbox src="http://TARGET/hit"></iframe>` },
  { name: "a frame with srcdoc", html: `<iframe srcdoc="<img src='http://TARGET/hit'>"></iframe>` },
  { name: "an object", html: `<object data="http://TARGET/hit"></object>` },
  { name: "an embedded file", html: `<embed src="http://TARGET/hit">` },
  { name: "a video", html: `<video src="http://TARGET/hit" preload="auto"></video>` },
  { name: "a video poster", html: `<video poster="http://TARGET/hit"></video>` },
  { name: "an SVG image", html: `<svg><image href="http://TARGET/hit"/></svg>` },
  { name: "an image input", html: `<input type="image" src="http://TARGET/hit">` },
  { name: "a preload", html: `<link rel="preload" as="image" href="http://TARGET/hit">` },
  { name: "a module preload", html: `<link rel="modulepreload" href="http://TARGET/hit">` },
  { name: "a prefetch", html: `<link rel="prefetch" href="http://TARGET/hit">` },
  { name: "a preconnect", html: `<link rel="preconnect" href="http://TARGET">`, isReal: false },
  {
    name: "a preload in a header",
    headers: { link: "<http://TARGET/hit>; rel=preload; as=image" },
    inTab: true,
  },
  {
    name: "a meta refresh",
    html: `<meta http-equiv="refresh" content="0;url=http://TARGET/hit">`,
    inTab: true,
  },
  { name: "a refresh in a header", headers: { refresh: "0;url=http://TARGET/hit" }, inTab: true },
  {
    name: "a CSP report",
    headers: { "content-security-policy": "img-src 'none'; report-uri http://TARGET/hit" },
    html: `<img src="/x.png">`,
  },
  { name: "fetch", script: `fetch("http://TARGET/hit")` },
  { name: "fetch without CORS", script: `fetch("http://TARGET/hit", { mode: "no-cors" })` },
  {
    name: "fetch with keepalive",
    script: `fetch("http://TARGET/hit", { method: "POST", body: "x", keepalive: true })`,
  },
  {
    name: "XMLHttpRequest",
    script: `const x = new XMLHttpRequest(); x.open("GET", "http://TARGET/hit"); x.send()`,
  },
  { name: "a beacon", script: `navigator.sendBeacon("http://TARGET/hit", "x")` },
  { name: "an event source", script: `new EventSource("http://TARGET/hit")` },
  { name: "a WebSocket", script: `self.kept = new WebSocket("ws://TARGET/hit")` },
  { name: "a navigation", script: `location.href = "http://TARGET/hit"`, inTab: true },
  { name: "a new window", script: `open("http://TARGET/hit")`, isReal: false, inTab: true },
  {
    name: "a form",
    html: `<form action="http://TARGET/hit"></form><script>document.forms[0].submit()</script>`,
    inTab: true,
  },
  {
    name: "a form with POST",
    html: `<form method="post" action="http://TARGET/hit"></form><script>document.forms[0].submit()</script>`,
    inTab: true,
  },
  {
    name: "a link with ping",
    html: `<a href="#" ping="http://TARGET/hit">x</a><script>document.links[0].click()</script>`,
  },
  { name: "fetch in a worker", script: inWorker(`fetch("http://TARGET/hit")`) },
  { name: "importScripts in a worker", script: inWorker(`importScripts("http://TARGET/hit")`) },
  { name: "a WebSocket in a worker", script: inWorker(`self.kept = new WebSocket("ws://TARGET/hit")`) },
  { name: "fetch in a nested worker", script: inWorker(inWorker(`fetch("http://TARGET/hit")`)) },
  {
    name: "fetch in a blob worker",
    script: `self.kept = new Worker(URL.createObjectURL(new Blob(['fetch("http://TARGET/hit")'])))`,
  },
  { name: "fetch in a shared worker", script: inWorker(`fetch("http://TARGET/hit")`, "SharedWorker") },
  {
    name: "a WebSocket in a shared worker",
    script: inWorker(`self.kept = new WebSocket("ws://TARGET/hit")`, "SharedWorker"),
  },
  {
    name: "fetch in a service worker",
    script: `navigator.serviceWorker.register("/w.js?" + encodeURIComponent('fetch("http://TARGET/hit")')).catch(() => {})`,
    isReal: false,
  },
  { name: "an image after a redirect", html: `<img src="/away?http://TARGET/hit">` },
  { name: "fetch after a redirect", script: `fetch("/away?http://TARGET/hit")` },
  {
    name: "a POST after a redirect",
    script: `fetch("/away307?http://TARGET/hit", { method: "POST", body: "x", mode: "no-cors" })`,
  },
  { name: "a frame after two redirects", html: `<iframe src="/away?/away?http://TARGET/hit"></iframe>` },
  { name: "fetch in a worker after a redirect", script: inWorker(`fetch("/away?http://TARGET/hit")`) },
  {
    name: "WebRTC",
    script: `const p = new RTCPeerConnection({ iceServers: [{ urls: "stun:TARGET" }] }); p.createDataChannel("x"); p.createOffer().then((o) => p.setLocalDescription(o))`,
    isReal: false,
  },
  {
    name: "WebTransport",
    script: `new WebTransport("https://TARGET/hit").ready.catch(() => {})`,
    isReal: false,
  },
];

/** Adds a page to the site. Returns its path. */
function publish({ html = "", script, headers = {} }: Partial<Attack>, target: string): string {
  const aimed = (text: string): string => text.replaceAll("TARGET", target);
  const path = `/page-${pages.size}`;
  const code = script === undefined ? "" : `<script>${script}</script>`;
  const named = Object.entries(headers).map(([name, value]) => [name, aimed(value)] as const);
  pages.set(path, { html: aimed(html + code), headers: Object.fromEntries(named) });
  return path;
}

/** Adds a page with frames to the site. Returns its path. */
function publishFrames(paths: readonly string[]): string {
  return publish({ html: paths.map((path) => `<iframe src="${path}"></iframe>`).join("") }, "");
}

/** Waits until a condition holds, at most a minute. */
async function eventually(done: () => boolean): Promise<boolean> {
  for (const end = Date.now() + 60_000; Date.now() < end;) {
    if (done()) return true;
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  return done();
}

/**
 * Opens pages with the attacks until each attack was made. On a busy machine Chromium gives up loading a frame, and the
 * attack in that frame is then not made.
 */
async function untilMade<Each>(
  all: readonly Each[],
  isMade: (index: number) => boolean,
  open: (some: ReadonlyMap<number, Each>) => Promise<void>,
): Promise<void> {
  let missing = new Map(all.entries());
  for (let round = 0; round < 5 && missing.size > 0; round++) {
    await open(missing);
    await eventually(() => all.every((_, index) => isMade(index)));
    missing = new Map([...missing].filter(([index]) => !isMade(index)));
  }
}

/** Makes every attack on a host of its own, all in one browser, until each was made. */
async function attackAll(
  browser: BrowserSession,
  hosts: readonly Host[],
  isMade: (index: number) => boolean,
): Promise<void> {
  await untilMade(
    attacks,
    (index) => attacks[index]?.isReal === false || isMade(index),
    async (some) => {
      const made = [...some].map(([index, each]) => ({
        inTab: each.inTab === true,
        path: publish(each, hosts[index]?.address ?? ""),
      }));
      const frames = made.filter(({ inTab }) => !inTab).map(({ path }) => path);
      const tabs = made.filter(({ inTab }) => inTab).map(({ path }) => path);
      for (const path of [publishFrames(frames), ...tabs])
        await browser.open(`http://${addressOf(site)}${path}`, { newTab: true });
    },
  );
}

describe("a browser page that may load from one host only", () => {
  let reached: readonly Host[];
  let guarded: readonly Host[];
  const asked = new Set<string>();
  beforeAll(async () => {
    reached = await Promise.all(attacks.map(host));
    guarded = await Promise.all(attacks.map(host));
    const free = session({ allowPrivate: true });
    await attackAll(free, reached, (index) => reached[index]?.hits.length !== 0);
    await free.close();
    const browser = session({
      allowPrivate: true,
      allow: (url) => {
        asked.add(url.host);
        return url.host === addressOf(site);
      },
    });
    await attackAll(browser, guarded, (index) => asked.has(guarded[index]?.address ?? ""));
    await browser.close();
  });
  afterAll(() => {
    for (const each of [...reached, ...guarded]) each.close();
  });

  test.each(attacks.map((each, index) => ({ ...each, index })))(
    "a browser page that may load from one host only cannot reach another host by $name",
    ({ index, isReal }) => {
      // Without the allow list the attack works; otherwise the line below would prove nothing.
      expect(isReal === false || reached[index]?.hits.length).toBeTruthy();
      expect(isReal === false || asked.has(guarded[index]?.address ?? "")).toBe(true);
      expect(guarded[index]?.hits).toEqual([]);
    },
  );
});

const resolve = async (hostname: string) => {
  const addresses: Readonly<Record<string, string>> = {
    "site.example": "127.0.0.1",
    "inner.example": "127.0.0.1",
    "metadata.example": "169.254.169.254",
    "mixed.example": "93.184.215.14 10.0.0.1",
    "six.example": "::1",
  };
  const found = (addresses[hostname] ?? "127.0.0.1").split(" ");
  return found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }) as const);
};

describe("a browser without allowPrivate", () => {
  let browser: BrowserSession;
  let target: Host;
  beforeAll(async () => {
    browser = session({ resolve });
    target = await host();
  });
  afterAll(async () => {
    await browser.close();
    target.close();
  });

  test.each([
    "http://127.0.0.1:PORT/hit",
    "http://localhost:PORT/hit",
    "http://127.1:PORT/hit",
    "http://2130706433:PORT/hit",
    "http://0x7f000001:PORT/hit",
    "http://0177.0.0.1:PORT/hit",
    "http://0.0.0.0:PORT/hit",
    "http://[::1]:PORT/hit",
    "http://[::ffff:127.0.0.1]:PORT/hit",
    "http://127.0.0.1.:PORT/hit",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://[fe80::1]/",
    "http://[fd00::1]/",
    "http://inner.example:PORT/hit",
    "https://inner.example:PORT/hit",
    "http://metadata.example/",
    "http://mixed.example/",
    "http://six.example:PORT/hit",
    "http://user:password@inner.example:PORT/hit",
    "file:///etc/passwd",
    "chrome://version",
    "view-source:http://127.0.0.1/",
    "javascript:alert(1)",
    "data:text/html,<script>fetch('http://127.0.0.1:PORT/hit')</script>",
    "blob:http://127.0.0.1:PORT/hit",
    "ftp://127.0.0.1:PORT/hit",
    "ws://127.0.0.1:PORT/hit",
  ])("a browser without allowPrivate does not open %s", async (address) => {
    const url = address.replace("PORT", new URL(`http://${target.address}`).port);
    await expect(browser.open(url)).rejects.toMatchObject({ code: "permission_denied" });
    expect(target.hits).toEqual([]);
  });
});

describe("a public page in the browser", () => {
  const ways = {
    image: { html: `<img src="http://TARGET/hit">` },
    redirect: { html: `<iframe src="/away?http://TARGET/hit"></iframe>` },
    worker: { script: inWorker(`fetch("http://TARGET/hit")`) },
    WebSocket: { script: `self.kept = new WebSocket("ws://TARGET/hit")` },
  };
  const cases = ["127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]", "inner.example"].flatMap((name) =>
    Object.entries(ways).map(([kind, way]) => ({ name, kind, way })),
  );
  const asked = new Set<string>();
  let hosts: readonly Host[];
  const portOf = (index: number): string => new URL(`http://${hosts[index]?.address}`).port;

  beforeAll(async () => {
    hosts = await Promise.all(cases.map(host));
    const browser = session({
      allowPrivate: ["site.example"],
      resolve,
      allow: (url) => {
        asked.add(url.port);
        return true;
      },
    });
    const from = `http://site.example:${new URL(`http://${addressOf(site)}`).port}`;
    try {
      await untilMade(
        cases,
        (index) => asked.has(portOf(index)),
        async (some) => {
          const frames = [...some].map(([index, { name, way }]) => publish(way, `${name}:${portOf(index)}`));
          await browser.open(`${from}${publishFrames(frames)}`, { newTab: true });
        },
      );
      // The answer to a later request of the page proves that the earlier ones were handled.
      await browser.open(`${from}/`, { newTab: true });
    } finally {
      await browser.close();
    }
  });
  afterAll(() => {
    for (const each of hosts) each.close();
  });

  test.each(cases.map((each, index) => ({ ...each, index })))(
    "a public page in the browser cannot reach $name by $kind",
    ({ index }) => {
      expect(asked).toContain(portOf(index));
      expect(hosts[index]?.hits).toEqual([]);
    },
  );
});
