import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HostedAgent, JsonValue } from "../../src/kernel/index.ts";
import { storedTokens, type Route } from "../../src/surfaces/server/index.ts";
import {
  agentsOfExamples,
  examples,
  exampleWorld,
  pathOf,
  type ExampleWorld,
} from "../surfaces/server/example-calls.ts";
import { startServer, type TestServer } from "../surfaces/server/test-server.ts";
import { rawBytes, rawRequest } from "./server-requests.ts";

let server: TestServer;
let world: ExampleWorld;
let folder: string;
const owner = { tenantId: "acme", userId: "ann" };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-page-"));
  await mkdir(join(folder, "page/assets"), { recursive: true });
  await writeFile(join(folder, "secret.txt"), "SECRET");
  await writeFile(join(folder, "page/index.html"), "<!doctype html><script src=/assets/a.js></script>");
  await writeFile(join(folder, "page/assets/a.js"), "export {};");
  server = await startServer(agentsOfExamples, { page: join(folder, "page") });
  world = await exampleWorld(server, owner);
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

/** The routes that need a token, each with its valid request. */
function guarded(): readonly (readonly [Route, string, object | undefined])[] {
  const calls = examples(world);
  return server.server.routes
    .filter(({ scope }) => scope !== null)
    .map((route) => {
      const example = calls[route.id] ?? { status: 0 };
      return [route, pathOf(route.path, example), example.body as object | undefined] as const;
    });
}

/** Routes that return an empty answer for an unknown id, because a session without runs is a valid session for them. */
const withoutError = new Set(["sessions.phase", "chat.resume"]);

/** Whether a body names the session of the owner. */
function namesSession(body: object | undefined): boolean {
  return Object.values(body ?? {}).includes(world.sessionId);
}

/** The fault code of an error, in problem+json or in the format of a protocol. */
function codeOf(json: { readonly [key: string]: JsonValue }): unknown {
  const { code, error } = json;
  const { data, code: own } = (error ?? {}) as {
    readonly code?: unknown;
    readonly data?: { readonly code: string } | readonly { readonly metadata: { readonly fault: string } }[];
  };
  const ofProtocol = Array.isArray(data)
    ? data[0]?.metadata.fault
    : (data as { code?: string } | undefined)?.code;
  return code ?? ofProtocol ?? own;
}

/** Everything that the owner can see, to compare before and after an attack. */
async function stateOfOwner(): Promise<unknown> {
  const view = server.runtime.forTenant(owner);
  const { runs } = await view.list({ limit: 500 });
  const sessions = await view.sessions.list({ limit: 500 });
  const approvals = await view.approvals({ limit: 500 });
  const seqs: number[] = [];
  const mail: unknown[] = [];
  for (const { runId } of runs) {
    seqs.push(await server.store.events.lastSeq(runId));
    mail.push(await server.store.mailbox.read(runId));
  }
  const tree = await view.sessions.tree(world.sessionId);
  return JSON.parse(
    JSON.stringify({
      runs,
      sessions,
      approvals,
      seqs,
      mail,
      tree,
      letters: await view.deadLetters(),
      schedules: await view.schedules.list(),
    }),
  );
}

async function unchanged(attack: () => Promise<void>): Promise<void> {
  const before = await stateOfOwner();
  await attack();
  expect(await stateOfOwner()).toEqual(before);
}

describe("a caller of the server without the right token", () => {
  it("a server answers 401 on every route without a valid token, and the request changes nothing", async () => {
    const revoked = await server.tokenOf("acme", "admin", "ann");
    await server.tokens.revoke(revoked.split("_")[1] ?? "");
    const right = await server.tokenOf("acme", "admin", "ann");
    const wrong = `${right.slice(0, -4)}AAAA`;
    const yesterday = storedTokens(server.store.records, () => Date.now() - 86_400_000);
    const { token: expired } = await yesterday.create({
      name: "old",
      scope: "admin",
      expiresAt: Date.now() - 1_000,
    });
    await unchanged(async () => {
      for (const token of [
        null,
        "",
        "x",
        "reeve_",
        `reeve_${"0".repeat(16)}_${"A".repeat(43)}`,
        revoked,
        wrong,
        expired,
        right.toUpperCase(),
      ])
        for (const [{ method, id: name }, path, body] of guarded()) {
          const { status, json, headers } = await server.call(method, path, {
            token,
            ...(body !== undefined && { body }),
          });
          expect([name, status, codeOf(json)]).toEqual([name, 401, "unauthenticated"]);
          expect(headers.get("www-authenticate")).toMatch(/^Bearer/u);
        }
    });
  });

  it("a server answers 403 on every route above the scope of the token, and the request changes nothing", async () => {
    const order = ["read", "run", "admin"] as const;
    await unchanged(async () => {
      for (const scope of ["read", "run"] as const) {
        const token = await server.tokenOf("acme", scope, "ann");
        for (const [route, path, body] of guarded()) {
          if (route.scope === null || order.indexOf(route.scope) <= order.indexOf(scope)) continue;
          const { status, json } = await server.call(route.method, path, {
            token,
            ...(body !== undefined && { body }),
          });
          expect([route.id, status, codeOf(json)]).toEqual([route.id, 403, "permission_denied"]);
        }
      }
    });
  });

  it("a server stores a token as a hash: no record of the store contains its secret", async () => {
    const token = await server.tokenOf("acme");
    const [, id = "", ...secret] = token.split("_");
    const record = await server.store.records.get({ namespace: "tokens", key: id });
    expect(JSON.stringify(record)).not.toContain(secret.join("_"));
    expect(JSON.stringify(await server.tokens.list())).not.toContain(secret.join("_"));
  });
});

describe("a caller of the server from another tenant or user", () => {
  for (const [name, other] of [
    ["tenant", ["other", "ann"]],
    ["user", ["acme", "bob"]],
  ] as const)
    it(`a caller gets 404 for every id of another ${name} in a path, sees nothing of it in lists, and changes nothing`, async () => {
      const token = await server.tokenOf(other[0], "admin", other[1]);
      const ids = [
        world.runId,
        world.sessionId,
        world.waiting.runId,
        world.calling.runId,
        world.deadLetter.id,
      ];
      await unchanged(async () => {
        for (const [route, path, body] of guarded()) {
          if (route.isStream === true && route.params === undefined && route.method === "GET") continue;
          const { status, json, text } = await server.call(route.method, path, {
            token,
            ...(body !== undefined && { body }),
          });
          // A body with the id of a session creates one that has the id as a part of its own.
          const creates = namesSession(body);
          const isById =
            /\{(?:runId|sessionId)\}|schedules\/\{/u.test(route.path) && !withoutError.has(route.id);
          const shown = creates ? text.replaceAll(world.sessionId, "") : text;
          const seen = ids.filter((id) => shown.includes(id));
          const expected = isById ? [404, "not_found"] : [creates && 200];
          const found = isById ? [status, codeOf(json)] : [creates && status, ...seen];
          expect([route.id, ...found]).toEqual([route.id, ...expected]);
        }
      });
    });

  it("a caller gets the same answers for a session of another tenant or user as for a session that does not exist", async () => {
    const token = await server.tokenOf("other", "admin", "eve");
    const source = await server.runtime
      .forTenant({ tenantId: "other", userId: "eve" })
      .submit(agentsOfExamples[0] as HostedAgent, "Hi");
    await source.result();
    const message = { id: "m", role: "user" };
    const attacks = (
      id: string,
    ): readonly (readonly [string, string, object?, Record<string, string>?])[] => [
      ["POST", "/api/runs", { agent: "clerk", input: "Hi", sessionId: id }],
      ["GET", `/api/sessions/${id}`],
      [
        "POST",
        "/api/chat",
        { id, agent: "clerk", messages: [{ ...message, parts: [{ type: "text", text: "Hi" }] }] },
      ],
      ["GET", `/api/chat/${id}/stream`],
      ["POST", "/api/ag-ui/clerk", { threadId: id, runId: "r", messages: [{ ...message, content: "Hi" }] }],
      [
        "POST",
        "/v1/chat/completions",
        { model: "clerk", messages: [{ role: "user", content: "Hi" }] },
        { "x-reeve-session": id },
      ],
      [
        "POST",
        "/a2a/clerk",
        {
          jsonrpc: "2.0",
          id: 1,
          method: "ListTasks",
          params: { contextId: id },
        },
        { "a2a-version": "1.0" },
      ],
      ["POST", `/api/sessions/${source.sessionId}/fork`, { sessionId: `${id}/fork` }],
      ["POST", `/api/sessions/${id}/fork`, {}],
      [
        "POST",
        "/api/schedules",
        { name: `of-${id}`, agent: "clerk", input: "Hi", everyMs: 3_600_000, sessionId: id },
      ],
      ["GET", `/api/runs?sessionId=${id}`],
      ["GET", `/api/search?text=e&sessionId=${id}`],
      ["DELETE", `/api/sessions/${id}`],
      ["GET", `/api/sessions/${id}/path`],
      ["GET", `/api/sessions/${id}/phase?agentId=clerk`],
    ];
    const answersFor = async (id: string): Promise<readonly string[]> => {
      const answers: string[] = [];
      for (const [method, path, body, headers] of attacks(id)) {
        const { status, text } = await server.call(method, path, {
          token,
          ...(body !== undefined && { body }),
          ...(headers !== undefined && { headers }),
        });
        const plain = text
          .replaceAll(id, "ID")
          .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/gu, "TIME")
          .replaceAll(/run_[\w-]+|chatcmpl-[\w-]+|[0-9a-f]{8}-[0-9a-f-]{27}/gu, "RUN")
          .replaceAll(/\d{10,}/gu, "TIME");
        answers.push(`${method} ${path.replaceAll(id, "ID")}: ${status} ${plain}`);
      }
      return answers;
    };
    await unchanged(async () => {
      const free = await answersFor("ses_free");
      // The run of the owner's session is unfinished, and so an unscoped submission would become its steering.
      for (const taken of [world.sessionId, world.waiting.sessionId])
        expect(await answersFor(taken)).toEqual(free);
      const created = free.map((each) => Number(/: (\d{3}) /u.exec(each)?.[1]));
      expect(created).toEqual([201, 200, 200, 204, 200, 200, 200, 201, 201, 201, 200, 200, 204, 404, 200]);
    });
    // The id that the caller chose goes on to name the session, and so does the stored one.
    const again = async (id: string): Promise<unknown> =>
      (await server.call("GET", `/api/sessions/${encodeURIComponent(id)}`, { token })).json["sessionId"];
    await server.call("POST", "/api/runs", {
      token,
      body: { agent: "clerk", input: "Hi", sessionId: world.sessionId },
    });
    const stored = await again(world.sessionId);
    expect(stored).toMatch(new RegExp(`^${world.sessionId}@[\\w-]{22}$`, "u"));
    expect(await again(String(stored))).toBe(stored);
  });

  it("a caller cannot name another tenant or user in a query", async () => {
    const token = await server.tokenOf("other", "admin", "eve");
    for (const path of ["/api/runs", "/api/sessions", "/api/approvals", "/api/usage", "/api/search"])
      for (const query of ["tenantId=acme", "userId=ann"]) {
        const { status, text } = await server.call(
          "GET",
          `${path}?${query}${path === "/api/search" ? "&text=e" : ""}`,
          { token },
        );
        expect([path, status]).toEqual([path, 400]);
        expect(text).not.toContain(world.runId);
      }
  });

  it("an idempotency key that another tenant has used starts a run of the caller's own tenant", async () => {
    const body = { agent: "clerk", input: "Hi" };
    const headers = { "idempotency-key": "same" };
    const [one, other] = [await server.tokenOf("one"), await server.tokenOf("two")];
    const first = await server.call("POST", "/api/runs", { token: one, body, headers });
    const again = await server.call("POST", "/api/runs", { token: one, body, headers });
    const second = await server.call("POST", "/api/runs", { token: other, body, headers });
    expect([first.status, again.status, second.status]).toEqual([201, 200, 201]);
    const idOf = ({ json }: typeof first): unknown => (json["run"] as { readonly runId: string }).runId;
    expect(idOf(again)).toBe(idOf(first));
    expect(idOf(second)).not.toBe(idOf(first));
    const changed = await server.call("POST", "/api/runs", {
      token: one,
      body: { ...body, input: "Other" },
      headers,
    });
    expect(changed.json).toMatchObject({ status: 409, code: "already_exists" });
  });
});

describe("a web page of another site that calls the server", () => {
  const paths = ["/", "/api/runs", "/openapi.json", "/login?code=x", "/assets/a.js"];

  it("a page of another site that rebinds a host name reaches nothing: the server refuses every other Host", async () => {
    const port = `:${server.port}`;
    for (const host of [
      "evil.example",
      `evil.example${port}`,
      `127.0.0.1.evil.example${port}`,
      `localhost.evil.example`,
      "0.0.0.0",
      "[::]",
      `127.0.0.2${port}`,
      "evil@127.0.0.1",
    ])
      for (const path of paths) {
        const { status } = await rawRequest(server.port, {
          path,
          headers: { host, authorization: `Bearer ${server.admin}` },
        });
        expect([host, path, status === 403 || status === 400]).toEqual([host, path, true]);
      }
    const { status } = await rawRequest(server.port, {
      path: "/api/runs",
      headers: { host: `LOCALHOST${port}`, authorization: `Bearer ${server.admin}` },
    });
    expect(status).toBe(200);
  });

  it("the server refuses a page of another site by its Origin, also another port of this machine, null, and a similar name", async () => {
    const own = `127.0.0.1:${server.port}`;
    for (const origin of [
      "https://evil.example",
      "null",
      `http://127.0.0.1:${server.port + 1}`,
      `http://${own}.evil.example`,
      "http://localhost",
      "file://",
      `ftp://${own}`,
      "",
    ])
      for (const method of ["GET", "POST"]) {
        const headers = { origin, authorization: `Bearer ${server.admin}`, host: own };
        const { status } = await rawRequest(server.port, { method, path: "/api/runs", headers });
        if (origin === "") continue;
        expect([origin, method, status]).toEqual([origin, method, 403]);
      }
    const same = await rawRequest(server.port, {
      path: "/api/runs",
      headers: { host: own, origin: `http://${own}`, authorization: `Bearer ${server.admin}` },
    });
    expect([same.status, same.headers["access-control-allow-origin"]]).toEqual([200, undefined]);
  });

  it("a page of another origin cannot use the cookie of Reeve's page in requests, forms and preflights", async () => {
    const link = server.server.pageLink() ?? "";
    const { headers: given } = await server.call("GET", link, { token: null });
    const set = given.get("set-cookie") ?? "";
    expect(set).toMatch(/HttpOnly; SameSite=Strict/u);
    const cookie = set.split(";")[0] ?? "";
    const host = `127.0.0.1:${server.port}`;
    const own = await rawRequest(server.port, {
      path: "/api/access",
      headers: { host, cookie, "sec-fetch-site": "same-origin" },
    });
    expect(JSON.parse(own.text)).toMatchObject({ name: "page", scope: "admin", userId: "person" });
    const body = JSON.stringify({ agent: "clerk", input: "x" });
    await unchanged(async () => {
      for (const site of ["cross-site", "same-site"])
        for (const [method, path] of [
          ["GET", "/api/runs"],
          ["POST", "/api/runs"],
        ] as const) {
          const headers = { host, cookie, "sec-fetch-site": site, "content-type": "application/json" };
          const { status } = await rawRequest(server.port, {
            method,
            path,
            headers,
            ...(method === "POST" && { body }),
          });
          expect([site, method, status]).toEqual([site, method, 403]);
        }
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
      ]) {
        const headers = { host, cookie, ...(type !== "" && { "content-type": type }) };
        const { status } = await rawRequest(server.port, {
          method: "POST",
          path: "/api/runs",
          headers,
          body,
        });
        expect([type, status]).toEqual([type, 400]);
      }
      const preflight = await rawRequest(server.port, {
        method: "OPTIONS",
        path: "/api/runs",
        headers: { host, origin: "https://evil.example", "access-control-request-method": "POST" },
      });
      expect([preflight.status, preflight.headers["access-control-allow-origin"]]).toEqual([403, undefined]);
    });
  });

  it("a page of another site cannot use the login link of Reeve's page a second time, nor guess it", async () => {
    const link = server.server.pageLink() ?? "";
    expect((await server.call("GET", link, { token: null })).status).toBe(303);
    for (const path of [
      link,
      "/login?code=",
      "/login",
      "/login?code=AAAA",
      `/login?code=${"A".repeat(43)}`,
    ]) {
      const { status, headers } = await server.call("GET", path, { token: null });
      expect(status === 401 || status === 400).toBe(true);
      expect(headers.get("set-cookie")).toBeNull();
    }
  });

  it("a page of another site cannot frame Reeve's page or run inline scripts in it: every response has a policy", async () => {
    for (const path of [...paths, "/nothing", "/api/runs/run_x"]) {
      const { headers } = await server.call("GET", path);
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain("unsafe");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
  });
});

describe("a request path that leads elsewhere", () => {
  it("a request path to the server never leaves the folder of the page", async () => {
    const tries = [
      "/../secret.txt",
      "/..%2fsecret.txt",
      "/%2e%2e/secret.txt",
      "/assets/../../secret.txt",
      "/assets/..%5c..%5csecret.txt",
      "/....//secret.txt",
      "//secret.txt",
      "/assets/%00/../../secret.txt",
      "/%252e%252e/secret.txt",
      "/C:/secret.txt",
      "/secret.txt",
    ];
    for (const path of tries) {
      const { text } = await rawRequest(server.port, { path, headers: { host: `127.0.0.1:${server.port}` } });
      expect(text).not.toContain("SECRET");
    }
    const { text } = await rawRequest(server.port, { path: "/assets/a.js" });
    expect(text).toBe("export {};");
  });

  it("an id with other characters in a request path finds no run or session, and is not repeated in a header", async () => {
    const tries = [
      "..",
      "%2e%2e%2f",
      "run_x%0d%0aset-cookie:a=b",
      "run_x%00",
      "run_'--",
      "run_%F0%9F%92%A9",
      "run_x/../../api/runs",
      "x".repeat(5_000),
      "%zz",
      "__proto__",
      "run_x%3Cscript%3E",
    ];
    for (const id of tries)
      for (const path of [`/api/runs/${id}`, `/api/sessions/${id}`, `/api/agents/${id}`]) {
        const { status, headers } = await rawRequest(server.port, {
          path,
          headers: { authorization: `Bearer ${server.admin}` },
        });
        expect([path.slice(0, 80), status >= 400 && status < 500]).toEqual([path.slice(0, 80), true]);
        expect(headers["set-cookie"]).toBeUndefined();
      }
  });

  it("the server refuses requests that are not well-formed HTTP, and two requests hidden in one", async () => {
    const host = `Host: 127.0.0.1:${server.port}\r\n`;
    const auth = `Authorization: Bearer ${server.admin}\r\n`;
    const close = "Connection: close\r\n";
    for (const bytes of [
      `GET /api/runs HTTP/1.1\r\n${host}X-A: b\r\n : c\r\n\r\n`,
      `GET /api/runs HTTP/1.1\r\n${host}${host.replace("127.0.0.1", "evil")}${close}\r\n`,
      `POST /api/runs HTTP/1.1\r\n${host}${auth}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/runs HTTP/1.1\r\n${host}\r\n`,
      `GET http://evil.example/api/runs HTTP/1.1\r\nHost: evil.example\r\n${auth}${close}\r\n`,
      `GET /api/runs HTTP/1.1\r\n${auth}${close}\r\n`,
      "\u{0}\u{1}\u{2}\r\n\r\n",
    ]) {
      const answer = await rawBytes(server.port, bytes);
      expect([bytes.slice(0, 60), /^HTTP\/1\.1 (?:400|403)/u.test(answer)]).toEqual([
        bytes.slice(0, 60),
        true,
      ]);
    }
  });
});
