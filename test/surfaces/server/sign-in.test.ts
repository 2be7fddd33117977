import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { safeTarget } from "../../../src/surfaces/server/sign-in-page.ts";
import { startServer, type TestServer } from "./test-server.ts";

let server: TestServer;
let folder: string;
const font = '@font-face{font-family:Noto Sans;src:url(/assets/a.woff2)format("woff2")}';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-sign-in-"));
  await writeFile(
    join(folder, "index.html"),
    `<!doctype html><style>${font}p{color:red}</style><div id="page"></div>`,
  );
  await writeFile(join(folder, "a.js"), "1");
  server = await startServer([], { page: folder });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

const person = { accept: "text/html,application/xhtml+xml" };

async function open(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(`${server.url}${path}`, { redirect: "manual", headers: { ...person, ...headers } });
}

async function enter(token: string, to: string): Promise<Response> {
  return fetch(`${server.url}/login`, {
    method: "POST",
    redirect: "manual",
    headers: person,
    body: new URLSearchParams({ token, to }),
  });
}

test("a view of the page without a valid token shows a sign-in form that keeps the address, and files need no token", async () => {
  const view = await open('/runs/run_a/events?event=7&x="><script>');
  const html = await view.text();
  expect([view.status, view.headers.get("content-type")]).toEqual([401, "text/html; charset=utf-8"]);
  expect(html).toContain('name="to" value="/runs/run_a/events?event=7&amp;x=%22%3E%3Cscript%3E"');
  expect(html).not.toContain("<script");
  // The form looks like the page.
  expect(html).toContain(font);
  expect(html).not.toContain("color:red");
  const policy = view.headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(/style-src 'self' 'sha256-[^']+';.*form-action 'self'/u);
  expect(policy).not.toContain("unsafe");
  // With no-referrer, a browser would send the form with the origin null.
  expect(view.headers.get("referrer-policy")).toBe("same-origin");
  expect((await open("/a.js")).status).toBe(200);
  expect((await fetch(`${server.url}/runs`)).status).toBe(200);
});

test("a token that a person enters in the sign-in form becomes a cookie, and the next address does not contain it", async () => {
  const { token } = await server.tokens.create({ name: "desk", scope: "admin" });
  const entered = await enter(` ${token} `, "/runs/run_a?at=3");
  expect([entered.status, entered.headers.get("location")]).toEqual([303, "/runs/run_a?at=3"]);
  const cookie = entered.headers.get("set-cookie") ?? "";
  expect(cookie).toMatch(/^reeve=reeve_.*; Path=\/; HttpOnly; SameSite=Strict; Max-Age=2592000$/u);
  const headers = { cookie: cookie.split(";")[0] ?? "" };
  expect((await open("/runs/run_a", headers)).status).toBe(200);
  const again = await open("/login?why=used&to=/inbox", headers);
  expect([again.status, again.headers.get("location")]).toEqual([303, "/inbox"]);
  const desk = (await server.tokens.list()).find(({ name }) => name === "desk");
  await server.tokens.revoke(desk?.tokenId ?? "");
  expect((await open("/runs/run_a", headers)).status).toBe(401);
});

test("the sign-in form explains why an unknown token is refused, keeps it in the field, and sets no cookie", async () => {
  const refused = await enter('reeve_"><b>', "https://evil.example/");
  const html = await refused.text();
  expect([refused.status, refused.headers.get("set-cookie")]).toEqual([401, null]);
  expect(html).toContain("This token is not known here");
  expect(html).toContain('value="reeve_&quot;&gt;&lt;b&gt;"');
  expect(html).toContain('name="to" value="/"');
  const json = await server.call("POST", "/login", { token: null, body: { token: "x" } });
  expect([json.status, json.json["detail"]]).toEqual([
    400,
    expect.stringContaining("application/x-www-form-urlencoded"),
  ]);
});

test("a sign-in link that was used leads to the form, whose address has no code", async () => {
  const link = server.server.pageLink() ?? "";
  expect((await open(link)).status).toBe(303);
  const used = await open(link);
  expect([used.status, used.headers.get("location")]).toEqual([303, "/login?why=used"]);
  expect(await (await open("/login?why=used")).text()).toContain("A link works once");
  expect((await open("/login")).status).toBe(401);
});

test("too many sign-in requests without a token are answered with the time to wait", async () => {
  const strict = await startServer([], { page: folder, limits: { requestsPerSecond: 1, requestBurst: 1 } });
  const ask = (): Promise<Response> => fetch(`${strict.url}/runs`, { headers: person });
  await ask();
  const limited = await ask();
  expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "1"]);
  expect(await limited.text()).toContain("Wait 1 s, then try again.");
  await strict.close();
});

test.each([
  ["/runs?a=b#c", "/runs?a=b#c"],
  ["//evil.example", "/"],
  ["/\\evil.example", "/"],
  ["https://evil.example", "/"],
  ["javascript:alert(1)", "/"],
  ["/login?to=/login", "/"],
  ["/a b", "/"],
  [null, "/"],
])("after signing in, the target %s leads to %s", (to, expected) => {
  expect(safeTarget(to)).toBe(expected);
});
