import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { RouteClient } from "../../src/surfaces/client/route-client.ts";
import { remotePlace } from "../../src/surfaces/cli/chat/client/server-place.ts";
import { reeve } from "../surfaces/cli/reeve-process.ts";

/** A server of another program, which answers each request alike. Returns its address. */
async function foreignServer(status: number, body: string): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(status, { "content-length": Buffer.byteLength(body), connection: "close" }).end(body);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.for([
  { status: 200, body: "<html>Sign in</html>", why: "without the JSON of a route" },
  { status: 200, body: "null", why: "without the JSON of a route" },
  { status: 502, body: "Bad gateway", why: "with status 502 and no reason" },
  { status: 404, body: "null", why: "with status 404 and no reason" },
])(
  "a chat and a watch end with 7 and name the address when another program answers $status $body",
  async ({ status, body, why }) => {
    const url = await foreignServer(status, body);
    for (const command of ["chat", "watch"]) {
      const said = await reeve([command, "--plain", "--url", url]);
      expect([said.code, said.out]).toEqual([7, []]);
      expect(said.talk).toContain(`reeve: the server at ${url} answered ${why}`);
      expect(said.talk).not.toMatch(/^\s+at /mu);
    }
  },
);

test("a chat reports that a request may have arrived if its answer breaks off", async () => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-length": 100 });
    response.write("{", () => response.destroy());
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = new RouteClient(remotePlace(`http://127.0.0.1:${port}`, undefined));
  await expect(client.get("/api/agents")).rejects.toMatchObject({
    code: "offline",
    message: `the server at http://127.0.0.1:${port} was lost during its answer`,
  });
});

test.for([
  { url: "http://127.0.0.1:1/reeve", token: "t", says: 'invalid --url "http://127.0.0.1:1/reeve"' },
  { url: "http://127.0.0.1:1/?a", token: "t", says: 'invalid --url "http://127.0.0.1:1/?a"' },
  { url: "http://me:secret@127.0.0.1:1", token: "t", says: 'invalid --url "http://[secret]@127.0.0.1:1"' },
  { url: "ftp://127.0.0.1:1", token: "t", says: 'invalid --url "ftp://127.0.0.1:1"' },
  { url: "http://127.0.0.1:1", token: "hidden\nvalue", says: "invalid REEVE_TOKEN" },
  { url: "http://127.0.0.1:1", token: "“hidden”", says: "invalid REEVE_TOKEN" },
  { url: "http://127.0.0.1:1/", token: "t\n", says: "does not answer" },
])("a chat and a watch at $url with the token $token say: $says", async ({ url, token, says }) => {
  for (const command of ["chat", "watch"]) {
    const said = await reeve([command, "--plain", "--url", url], { env: { REEVE_TOKEN: token } });
    expect([said.code, said.talk]).toEqual([
      says.startsWith("invalid") ? 2 : 7,
      expect.stringContaining(says),
    ]);
    expect(said.talk).not.toMatch(/hidden|me:secret|^\s+at /mu);
  }
});
