import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Agent, openRuntime, permissions } from "../../src/entries/index.ts";
import { type PermissionsOptions } from "../../src/agents/interception/permissions/permissions.ts";
import { fetchTool, type FetchToolOptions, type Resolver } from "../../src/capabilities/tools/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { callTool, textOf } from "../capabilities/tools/call-tool.ts";

/** The server that no attack may reach. It records each connection. */
let victim = "";
/** The server that the attacker controls, and that the tool may reach. */
let front = "";
let answer: RequestListener = (_request, response) => void response.end();
/** Hosts for which the front server received a request. */
const hosts: (string | undefined)[] = [];
let reached = 0;
const servers: Server[] = [];
const secret = "the secret of the victim";

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  return String((server.address() as AddressInfo).port);
}

beforeAll(async () => {
  victim = await listen((_request, response) => void response.end(secret));
  servers[0]?.on("connection", () => reached++);
  front = await listen((request, response) => {
    hosts.push(request.headers.host);
    answer(request, response);
  });
});

afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

beforeEach(() => {
  reached = 0;
  hosts.length = 0;
  answer = (_request, response) => void response.end("front");
});

/** Fetches a URL in which V stands for the victim's port and F for the front server's. */
async function attack(url: string, options: FetchToolOptions = {}): Promise<string> {
  const result = await callTool(fetchTool({ timeoutMs: 2_000, ...options }), { url: located(url) });
  const text = textOf(result);
  expect(text).not.toContain(secret);
  expect(reached).toBe(0);
  return `${result.isError ? "refused" : "contained"}: ${text}`;
}

function located(url: string): string {
  return url.replaceAll(":V", `:${victim}`).replaceAll(":F", `:${front}`);
}

describe("fetch of an address of this machine or its network", () => {
  test.each([
    ["in four parts", "http://127.0.0.1:V/"],
    ["in two parts", "http://127.1:V/"],
    ["in three parts", "http://127.0.1:V/"],
    ["as a decimal number", "http://2130706433:V/"],
    ["as a hexadecimal number", "http://0x7f000001:V/"],
    ["as an octal number", "http://017700000001:V/"],
    ["with a hexadecimal part", "http://0x7f.0.0.1:V/"],
    ["with an octal part", "http://0177.0.0.1:V/"],
    ["with a dot at its end", "http://127.0.0.1.:V/"],
    ["with digits in circles", "http://①②⑦.⓪.⓪.①:V/"],
    ["with digits of full width", "http://１２７.０.０.１:V/"],
    ["with ideographic dots", "http://127。0。0。1:V/"],
    ["with percent signs", "http://%31%32%37.0.0.1:V/"],
    ["in the rest of 127/8", "http://127.8.8.8:V/"],
    ["as zero", "http://0:V/"],
    ["as 0.0.0.0", "http://0.0.0.0:V/"],
    ["as IPv6 loopback", "http://[::1]:V/"],
    ["as long IPv6 loopback", "http://[0:0:0:0:0:0:0:1]:V/"],
    ["as IPv6 any", "http://[::]:V/"],
    ["mapped to IPv6", "http://[::ffff:127.0.0.1]:V/"],
    ["mapped to IPv6 in hexadecimal", "http://[::ffff:7f00:1]:V/"],
    ["compatible with IPv4", "http://[::127.0.0.1]:V/"],
    ["behind NAT64", "http://[64:ff9b::127.0.0.1]:V/"],
    ["behind 6to4", "http://[2002:7f00:1::]:V/"],
    ["behind Teredo", "http://[2001:0:7f00:1::]:V/"],
    ["local to a link", "http://[fe80::1]:V/"],
    ["unique and local", "http://[fd00::1]:V/"],
    ["with a zone", "http://[fe80::1%25lo]:V/"],
    ["of a metadata service", "http://169.254.169.254/latest/meta-data/"],
    ["of a metadata service as a number", "http://2852039166/latest/meta-data/"],
    ["of a metadata service over IPv6", "http://[fd00:ec2::254]/latest/meta-data/"],
    ["in 10/8", "http://10.0.0.1/"],
    ["in 172.16/12", "http://172.31.255.255/"],
    ["in 192.168/16", "http://192.168.0.1/"],
    ["of a carrier's network", "http://100.64.0.1/"],
    ["of a benchmark network", "http://198.18.0.1/"],
    ["for several receivers", "http://224.0.0.1/"],
    ["of a broadcast", "http://255.255.255.255/"],
    ["named localhost", "http://localhost:V/"],
    ["named LOCALHOST with a dot", "http://LOCALHOST.:V/"],
  ])("fetch refuses an address of this machine or its network: %s", async (_name, url) => {
    expect(await attack(url)).toMatch(
      /^refused: .*(?:is not a public address|cannot be resolved|invalid URL)/su,
    );
  });
});

describe("fetch of a host name that leads to this machine", () => {
  const v4 = (...addresses: string[]): Resolver => {
    return async () => addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  test.each<[string, Resolver]>([
    ["by its only address", v4("127.0.0.1")],
    ["by its second address", v4("93.184.215.14", "127.0.0.1")],
    ["by its first address", v4("127.0.0.1", "93.184.215.14")],
    ["by an IPv6 address", v4("::1")],
    ["by a mapped address", v4("::ffff:127.0.0.1")],
    ["by an address with a zone", v4("fe80::1%lo")],
    ["by an address in another notation", v4("0x7f.1")],
    ["by a name in place of an address", v4("localhost")],
    ["by an empty address", v4("")],
    ["by no address", v4()],
    ["by an error of the resolver", () => Promise.reject(new Error("SERVFAIL"))],
  ])("fetch refuses a host name that leads to this machine: %s", async (_name, resolve) => {
    expect(await attack("http://rebind.test:V/", { resolve })).toMatch(/^refused: /u);
  });

  test("fetch resolves a host name once for a request, so that a second DNS answer has no effect", async () => {
    const answers = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
    const resolve: Resolver = async () => [{ address: answers.shift() ?? "", family: 4 }];
    expect(await attack("http://rebind.test:F/", { resolve, allowPrivate: ["rebind.test"] })).toBe(
      "contained: front",
    );
    expect(answers).toEqual(["127.0.0.2", "127.0.0.3"]);
  });

  test("fetch resolves and checks a host name again after a redirect to the same host", async () => {
    answer = (request, response) =>
      void (request.url === "/" ? response.writeHead(302, { location: "/two" }).end() : response.end(secret));
    const answers = ["127.0.0.1", "::1%lo"];
    const resolve: Resolver = async () => {
      const address = answers.shift() ?? "";
      return [{ address, family: address.includes(":") ? 6 : 4 }];
    };
    expect(await attack("http://rebind.test:F/", { resolve, allowPrivate: ["rebind.test"] })).toMatch(
      /^refused: /u,
    );
    expect(hosts).toHaveLength(1);
  });
});

describe("fetch that is redirected to another host", () => {
  test.each([
    ["with an absolute URL", 302, "http://127.0.0.1:V/"],
    ["with the status 301", 301, "http://127.0.0.1:V/"],
    ["with the status 303", 303, "http://127.0.0.1:V/"],
    ["with the status 307", 307, "http://127.0.0.1:V/"],
    ["with the status 308", 308, "http://127.0.0.1:V/"],
    ["without a scheme", 302, "//127.0.0.1:V/"],
    ["with backslashes", 302, "\\\\127.0.0.1:V\\"],
    ["with a scheme in upper case", 302, "HTTP://127.0.0.1:V/"],
    ["with three slashes", 302, "http:///127.0.0.1:V/"],
    ["by a number", 302, "http://2130706433:V/"],
    ["by a name", 302, "http://localhost:V/"],
    ["over https", 302, "https://127.0.0.1:V/"],
    ["with a user name", 302, "http://127.0.0.1:F@127.0.0.1:V/"],
    ["with a fragment", 302, "http://127.0.0.1:V/#127.0.0.1:F"],
    ["to a file", 302, "file:///etc/passwd"],
    ["to gopher", 302, "gopher://127.0.0.1:V/_GET"],
    ["to ftp", 302, "ftp://127.0.0.1:V/"],
    ["to data", 302, `data:text/plain,${secret}`],
    ["to javascript", 302, "javascript:fetch('/')"],
    ["to nowhere", 302, "http://"],
  ])("fetch does not follow a redirect to another host: %s", async (_name, status, location) => {
    answer = (_request, response) => void response.writeHead(status, { location: located(location) }).end();
    await attack("http://127.0.0.1:F/", { allowPrivate: true });
    expect(hosts).toHaveLength(1);
  });

  test("fetch does not follow a redirect to another host after redirects to the same host", async () => {
    answer = (request, response) => {
      const next = Number(request.url?.slice(1) || 0) + 1;
      const location = next > 3 ? `http://127.0.0.1:${victim}/` : `/${next}`;
      response.writeHead(302, { location }).end();
    };
    expect(await attack("http://127.0.0.1:F/", { allowPrivate: true })).toContain(
      "redirects to another host",
    );
    expect(hosts).toHaveLength(4);
  });
});

describe("fetch of a URL that pretends to be another URL", () => {
  test.each([
    ["with the trusted host as user name", "http://127.0.0.1:F@127.0.0.1:V/"],
    ["with the trusted host as password", "http://u:127.0.0.1@127.0.0.1:V/"],
    ["with an empty user name", "http://:@127.0.0.1:V/"],
    ["with an encoded @", "http://127.0.0.1%40127.0.0.1:V/"],
    ["with a backslash before @", "http://127.0.0.1:V\\@front.test/"],
    ["with three slashes", "http:///127.0.0.1:V/"],
    ["without slashes", "http:127.0.0.1:V/"],
    ["with spaces around it", "  http://127.0.0.1:V/  "],
    ["with a line break in the scheme", "ht\ntp://127.0.0.1:V/"],
    ["with a tab in the host", "http://127.0.\t0.1:V/"],
    ["with a line break in the path", "http://127.0.0.1:V/\r\nHost: front.test"],
    ["with a zero byte in the host", "http://127.0.0.1\0.test:V/"],
    ["with a soft hyphen in the host", "http://local\u00adhost:V/"],
    ["with a host in mathematical letters", "http://𝓁ℴ𝒸𝒶𝓁𝒽ℴ𝓈𝓉:V/"],
    ["without a scheme", "127.0.0.1:V"],
    ["without a scheme, with slashes", "//127.0.0.1:V/"],
    ["of a file", "file:///etc/passwd"],
    ["of a file on a host", "file://127.0.0.1/etc/passwd"],
    ["of gopher", "gopher://127.0.0.1:V/"],
    ["of ftp", "ftp://127.0.0.1:V/"],
    ["of a web socket", "ws://127.0.0.1:V/"],
    ["of data", "data:text/plain,x"],
    ["of a script", "javascript:alert(1)"],
    ["of a blob", "blob:http://127.0.0.1:V/x"],
    ["of a view of the source", "view-source:http://127.0.0.1:V/"],
    ["of an archive", "jar:http://127.0.0.1:V/!/x"],
    ["that is empty", ""],
    ["with a port that is too large", "http://127.0.0.1:99999/"],
  ])("fetch refuses a URL that pretends to be another URL: %s", async (_name, url) => {
    expect(await attack(url)).toMatch(/^refused: /u);
  });
});

describe("fetch of a response without bounds", () => {
  const gigabytes = Buffer.alloc(40_000_000, "x");
  const plain = { "content-type": "text/plain" };
  const packed = (coding: string, body: Buffer): RequestListener => {
    return (_request, response) =>
      void response.writeHead(200, { ...plain, "content-encoding": coding }).end(body);
  };
  test.each<[string, () => RequestListener]>([
    ["a body without end", () => (_request, response) => pour(response.writeHead(200, plain))],
    ["a gzip bomb", () => packed("gzip", gzipSync(gigabytes))],
    ["a deflate bomb", () => packed("deflate", deflateSync(gigabytes))],
    ["a brotli bomb", () => packed("br", brotliCompressSync(gigabytes.subarray(0, 8_000_000)))],
    ["a bomb in a bomb", () => packed("gzip", gzipSync(gzipSync(gigabytes)))],
    ["a coding that is not known", () => packed("gzip, gzip", gzipSync("x"))],
    ["a compressed body that is broken", () => packed("gzip", Buffer.from("not gzip at all"))],
    ["an answer that never comes", () => () => {}],
    ["headers without a body", () => (_request, response) => response.writeHead(200, plain).flushHeaders()],
    ["a byte at a time", () => (_request, response) => drip(response.writeHead(200, plain))],
    [
      "a length that is not kept",
      () => (_request, response) =>
        void response.writeHead(200, { ...plain, "content-length": "999999" }).write("x", () => {
          response.destroy();
        }),
    ],
    [
      "redirects without end",
      () => (request, response) => void response.writeHead(302, { location: `${request.url}x` }).end(),
    ],
    [
      "a million tags",
      () => (_request, response) => {
        response.writeHead(200, { "content-type": "text/html" }).end("<a><!--<script".repeat(100_000));
      },
    ],
  ])("a response without bounds is cut or ends in time: %s", async (_name, listener) => {
    answer = listener();
    const options = { allowPrivate: true, maxBytes: 50_000, maxText: 1_000, timeoutMs: 1_000 };
    const text = await attack("http://127.0.0.1:F/", options);
    expect(text.length).toBeLessThan(2_000);
  });

  test.each<[string, (socket: Socket) => void]>([
    ["headers without end", pourHeaders],
    ["a status line without end", (socket) => void socket.write("H".repeat(200_000))],
    ["something else than HTTP", (socket) => void socket.end("SSH-2.0-OpenSSH\r\n")],
    ["early hints without end", hint],
  ])("a response without bounds is cut or ends in time: %s", async (_name, speak) => {
    const server = createTcpServer((socket) => {
      socket.on("error", () => socket.destroy());
      speak(socket);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const text = await attack(`http://127.0.0.1:${port}/`, { allowPrivate: true, timeoutMs: 1_000 });
    server.close();
    expect(text).toMatch(/^refused: /u);
  });
});

describe("an approval of one host for fetch", () => {
  const resolve: Resolver = async () => [{ address: "127.0.0.1", family: 4 }];
  const others: readonly (readonly [string, string])[] = [
    ["a name that begins with it", "http://good.test.evil.test:F/"],
    ["a name that ends with it", "http://evilgood.test:F/"],
    ["a name below it", "http://evil.good.test:F/"],
    ["another port", "http://good.test:V/"],
    ["the default port", "http://good.test/"],
    ["the default port of https", "https://good.test/"],
    ["its name as user", "http://good.test:F@evil.test:F/"],
    ["its name as path", "http://evil.test:F/good.test"],
    ["its name as query", "http://evil.test:F/?good.test:F"],
    ["its name as fragment", "http://evil.test:F/#good.test:F"],
    ["a backslash before its name", "http://evil.test:F\\.good.test:F/"],
    ["look-alike letters", "http://gооd.test:F/"],
    ["two dots at the end", "http://good.test..:F/"],
    ["an encoded dot", "http://good.test%2eevil.test:F/"],
    ["a hyphen for a dot", "http://good-test:F/"],
    ["its address", "http://127.0.0.1:F/"],
  ];

  async function after(
    approved: string,
    url: string,
    rules: PermissionsOptions,
    fetch: FetchToolOptions,
  ): Promise<void> {
    const calls = [approved, url].map((each) => ({
      toolCalls: [{ name: "fetch", input: { url: located(each) } }],
    }));
    const agent = new Agent({
      name: "reader",
      model: scriptedModel([...calls, "Done."]),
      tools: [fetchTool({ resolve, allowPrivate: true, timeoutMs: 2_000, ...fetch })],
      permissions: permissions(rules),
    });
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    try {
      await (await runtime.submit(agent, "Read.")).result();
    } finally {
      await runtime.close();
    }
  }

  test.each(others)("an approval of one host for fetch does not cover %s", async (_name, url) => {
    let questions = 0;
    const onAsk = () => ({ decision: questions++ === 0 ? ("approved" as const) : ("denied" as const) });
    await after("http://good.test:F/", url, { onAsk }, {});
    expect(hosts).toEqual([located("good.test:F")]);
    expect(reached).toBe(0);
  });

  test.each(others)("a host in the list of allowed hosts for fetch does not cover %s", async (_name, url) => {
    await after("http://good.test:F/", url, {}, { allow: [located("good.test:F")] });
    expect(hosts).toEqual([located("good.test:F")]);
    expect(reached).toBe(0);
  });

  test.each([
    ["in upper case", "http://GOOD.TEST:F/"],
    ["with a dot at its end", "http://good.test.:F/"],
    ["with an encoded letter", "http://%67ood.test:F/"],
    ["in letters of full width", "http://ｇｏｏｄ.test:F/"],
    ["with a port in leading zeros", `http://good.test:0F/`],
  ])(
    "an approval of one host for fetch covers the same host %s, and a rule sees one spelling",
    async (_name, url) => {
      const seen: unknown[] = [];
      const when = (input: unknown): boolean => seen.push((input as { url: string }).url) < 0;
      const target = url.replace(":0F", `:0${front}`);
      await after(
        "http://good.test:F/",
        target,
        { deny: [{ tool: "fetch", when }] },
        { allow: [`good.test:${front}`] },
      );
      expect(new Set(seen)).toEqual(new Set([located("http://good.test:F/")]));
      expect(hosts).toEqual([located("good.test:F"), located("good.test:F")]);
    },
  );
});

function pour(response: NodeJS.WritableStream & { readonly destroyed?: boolean }): void {
  while (response.destroyed !== true && response.write("x".repeat(65_536)));
  if (response.destroyed !== true) response.once("drain", () => pour(response));
}

function drip(response: NodeJS.WritableStream & { readonly destroyed?: boolean }): void {
  const timer = setInterval(
    () => void (response.destroyed === true ? clearInterval(timer) : response.write("x")),
    20,
  );
}

function pourHeaders(socket: Socket): void {
  socket.write("HTTP/1.1 200 OK\r\n");
  const more = (): void => {
    while (!socket.destroyed && socket.write(`x-${"h".repeat(1_000)}: v\r\n`));
    if (!socket.destroyed) socket.once("drain", more);
  };
  more();
}

function hint(socket: Socket): void {
  const timer = setInterval(() => {
    if (socket.destroyed) clearInterval(timer);
    else socket.write("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n");
  }, 20);
}
