import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { fetchTool, type Resolver } from "../../../src/capabilities/tools/index.ts";
import { pageText } from "../../../src/capabilities/web/page-text.ts";
import { isPublicAddress } from "../../../src/capabilities/web/address-check.ts";
import { callTool, textOf } from "./call-tool.ts";

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const nobody: Resolver = async (hostname) => {
  throw new Error(`${hostname} must not be resolved`);
};

describe("isPublicAddress()", () => {
  test.for([
    "8.8.8.8",
    "1.1.1.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.169.0.1",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
  ])("isPublicAddress() accepts the address %s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.for([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:7f00:1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "2001:db8::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "localhost",
    "",
  ])("isPublicAddress() refuses the address %j", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe("fetch refuses private addresses", () => {
  test.for([
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0x7f.0.0.1/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://①②⑦.0.0.1/",
    "http://localhost/",
    "http://localhost./",
  ])("fetch refuses the private address %s without resolving a name", async (url) => {
    const result = await callTool(fetchTool(), { url });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/is not a public address|cannot be resolved/);
  });

  test.for([
    ["file:///etc/passwd", "use an http or https URL"],
    ["gopher://example.org/", "use an http or https URL"],
    ["data:text/html,x", "use an http or https URL"],
    ["http://user:pass@example.org/", "user name or password"],
    ["not a url", "invalid URL"],
    ["http://", "invalid URL"],
  ] as const)("fetch refuses the URL %s", async ([url, why]) => {
    const result = await callTool(fetchTool({ resolve: nobody }), { url });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain(why);
  });

  test("fetch refuses a host name if one of its addresses is private", async () => {
    for (const addresses of [["10.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["::ffff:10.0.0.1"]]) {
      const resolve: Resolver = async () =>
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
      const result = await callTool(fetchTool({ resolve }), { url: "http://rebind.test/" });
      expect(textOf(result)).toMatch(/^rebind\.test is not fetched: .* is not a public address$/);
    }
  });

  test.for(["/near", "/far"])(
    "fetch returns a redirect to another host, public or private, without following it: %s",
    async (path) => {
      let asked = 0;
      const inner = await serve((_request, response) => {
        asked++;
        response.end("secret");
      });
      const host = await serve((request, response) => {
        const target = request.url === "/far" ? "/near" : `http://${inner}/`;
        response.writeHead(302, { location: target }).end();
      });
      const result = await callTool(fetchTool({ allowPrivate: true }), { url: `http://${host}${path}` });
      expect(result.isError).toBe(false);
      expect(textOf(result)).toBe(
        `[status 302] http://${host}/near redirects to another host, which was not fetched. To follow it, call fetch with http://${inner}/`,
      );
      expect(result.metadata).toMatchObject({ status: 302, redirect: `http://${inner}/`, bytes: 0 });
      expect(asked).toBe(0);
    },
  );

  test("fetch refuses a redirect to another scheme", async () => {
    const scheme = await serve(
      (_request, response) => void response.writeHead(301, { location: "file:///etc/passwd" }).end(),
    );
    expect(
      textOf(await callTool(fetchTool({ allowPrivate: [scheme] }), { url: `http://${scheme}/` })),
    ).toContain("use an http or https URL");
  });

  test("fetch sends its headers again when it follows a redirect of the same origin", async () => {
    const seen: (string | undefined)[] = [];
    const host = await serve((request, response) => {
      seen.push(request.headers.authorization);
      if (request.url === "/far") response.writeHead(302, { location: "/near" }).end();
      else response.end("there");
    });
    const fetch = fetchTool({ allowPrivate: true, headers: { Authorization: "Bearer key" } });
    expect(textOf(await callTool(fetch, { url: `http://${host}/far` }))).toBe("there");
    expect(seen).toEqual(["Bearer key", "Bearer key"]);
  });

  test("fetch refuses endless redirects", async () => {
    const host = await serve((_request, response) => void response.writeHead(302, { location: "/" }).end());
    const result = await callTool(fetchTool({ allowPrivate: true, maxRedirects: 3 }), {
      url: `http://${host}/`,
    });
    expect(textOf(result)).toBe(`http://${host}/ redirects more than 3 times`);
  });
});

describe("fetch", () => {
  test("fetch connects to the address that was checked and resolves the host name once per request", async () => {
    const host = await serve((request, response) => void response.end(`to ${request.headers.host}`));
    const port = host.split(":")[1];
    const asked: string[] = [];
    const resolve: Resolver = async (hostname) => {
      asked.push(hostname);
      return [{ address: asked.length === 1 ? "127.0.0.1" : "10.0.0.1", family: 4 }];
    };
    const tool = fetchTool({ allowPrivate: ["site.test"], resolve });
    const result = await callTool(tool, { url: `http://site.test:${port}/#part` });
    expect(textOf(result)).toBe(`to site.test:${port}`);
    expect(asked).toEqual(["site.test"]);
    expect(result.metadata).toMatchObject({
      status: 200,
      hops: [{ url: `http://site.test:${port}/`, address: "127.0.0.1" }],
    });
  });

  test("fetch connects to the address that was checked, even if it is written as a number", async () => {
    const host = await serve((_request, response) => void response.end("here"));
    const port = host.split(":")[1];
    const result = await callTool(fetchTool({ allowPrivate: ["127.0.0.1"] }), {
      url: `http://2130706433:${port}/`,
    });
    expect(textOf(result)).toBe("here");
  });

  test("fetch follows redirects, decodes charsets, and returns text, images, PDFs and errors", async () => {
    const host = await serve((request, response) => {
      const send = (type: string, body: string | Buffer, status = 200): void =>
        void response.writeHead(status, { "content-type": type }).end(body);
      switch (request.url) {
        case "/moved":
          return void response.writeHead(307, { location: "page" }).end();
        case "/page":
          return send("text/html; charset=iso-8859-1", Buffer.from("<title>T</title><p>caf\xe9", "latin1"));
        case "/json":
          return send("application/problem+json", '{"a":1}');
        case "/image":
          return send("image/png", Buffer.from([1]));
        case "/pdf":
          return send("application/pdf", Buffer.from([1]));
        case "/zip":
          return send("application/zip", Buffer.from([1]));
        case "/strange":
          return send("text/plain; charset=klingon", "ok");
        default:
          return send("text/plain", "nothing here", 404);
      }
    });
    const tool = fetchTool({ allowPrivate: [host] });
    const get = (path: string, more = {}) => callTool(tool, { url: `http://${host}${path}`, ...more });
    expect(textOf(await get("/moved"))).toBe("# T\n\ncafé");
    expect(textOf(await get("/page", { raw: true }))).toBe("<title>T</title><p>café");
    expect(textOf(await get("/json"))).toBe('{"a":1}');
    expect((await get("/image")).output).toMatchObject({ type: "content", parts: [{ type: "image" }] });
    expect((await get("/pdf")).output).toMatchObject({ type: "content", parts: [{ type: "file" }] });
    expect(textOf(await get("/zip"))).toContain(
      "has the type application/zip and 1 bytes: it cannot be shown as text",
    );
    expect(textOf(await get("/strange"))).toBe("ok");
    const missing = await get("/nope");
    expect([missing.isError, textOf(missing)]).toEqual([true, "[status 404]\nnothing here"]);
  });

  test("fetch stops at its limits for an endless body, a compression bomb and a long text", async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, "x"));
    const host = await serve((request, response) => {
      response.setHeader("content-type", "text/plain");
      if (request.url === "/bomb") return void response.setHeader("content-encoding", "gzip").end(bomb);
      if (request.url === "/odd") return void response.setHeader("content-encoding", "zstd").end("x");
      const pour = (): void => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
        if (!response.destroyed) response.once("drain", pour);
      };
      pour();
    });
    const tool = fetchTool({ allowPrivate: [host], maxBytes: 100_000, maxText: 10 });
    for (const path of ["/endless", "/bomb"]) {
      const result = await callTool(tool, { url: `http://${host}${path}` });
      expect(textOf(result)).toBe("xxxxxxxxxx\n[cut: 100000 bytes were read]");
      expect(result.metadata).toMatchObject({ bytes: 100_000, isCut: true });
    }
    expect(textOf(await callTool(tool, { url: `http://${host}/odd` }))).toContain("encoded as zstd");
  });

  test("fetch reports a silent server and a closed connection, and stops when the call is cancelled", async () => {
    const begun = Promise.withResolvers<void>();
    const host = await serve((request) => {
      if (request.url === "/cut") request.socket.destroy();
      if (request.url === "/stop") begun.resolve();
    });
    const tool = fetchTool({ allowPrivate: [host], timeoutMs: 200 });
    const patient = fetchTool({ allowPrivate: [host] });
    expect(textOf(await callTool(tool, { url: `http://${host}/silent` }))).toBe(
      `http://${host}/silent took longer than 200 ms`,
    );
    expect(textOf(await callTool(patient, { url: `http://${host}/cut` }))).toMatch(
      /cannot be reached: socket hang up/,
    );
    const stop = new AbortController();
    const calling = callTool(patient, { url: `http://${host}/stop` }, { signal: stop.signal });
    await begun.promise;
    stop.abort(new Error("enough"));
    expect(textOf(await calling)).toBe("enough");
  });

  test.for([
    ["breaks off", "the response broke off after"],
    ["stalls", "took longer than 300 ms"],
  ] as const)("fetch returns an error if a compressed response %s", async ([how, said]) => {
    const packed = gzipSync(randomBytes(200_000));
    const host = await serve((_request, response) => {
      response.writeHead(200, { "content-type": "text/plain", "content-encoding": "gzip" });
      response.write(packed.subarray(0, 100_000), () => {
        if (how === "breaks off") response.destroy();
      });
    });
    const tool = fetchTool({ allowPrivate: true, timeoutMs: how === "stalls" ? 300 : 50_000 });
    const result = await callTool(tool, { url: `http://${host}/` });
    expect([result.isError, textOf(result)]).toEqual([true, expect.stringContaining(said)]);
  });

  test("fetch has a high risk but is not destructive, because the URL can carry data out", () => {
    const { risk, destructive, edits } = fetchTool();
    expect([risk, destructive, edits]).toEqual(["high", false, false]);
  });
});

describe("pageText()", () => {
  test("pageText() keeps text, lines, lists and links, and drops scripts, styles and comments", () => {
    const html = `<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head>
      <body><script>if (a < b) document.write("<p>x")</script ><h1>Head</h1><p>One   two<br>three &lt;tag&gt; &#x1F98A; &unknown;</p>
      <ul><li>first<li><a href="https://example.org/?a=1&amp;b=2" title="a>b">second</a></ul><!-- <p>no --> 1 < 2</body></html>`;
    expect(pageText(html)).toBe(
      "# A & B\n\n# Head\n\nOne two\nthree <tag> 🦊 &unknown;\n\n- first\n- second (https://example.org/?a=1&b=2)\n1 < 2",
    );
  });

  test.for([
    "<",
    "<p",
    "<!--",
    "<script>",
    "<a href=",
    "&#99999999;",
    "<p ".repeat(20_000),
    "<!--".repeat(20_000),
    "<script".repeat(20_000),
    "<".repeat(500_000),
  ])("pageText() terminates for broken page number %#", (html) => {
    expect(typeof pageText(html)).toBe("string");
  });
});
