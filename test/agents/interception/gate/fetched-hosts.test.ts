import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { Agent, permissions, inMemoryApprovals } from "../../../../src/entries/index.ts";
import { type PermissionsOptions } from "../../../../src/agents/interception/permissions/permissions.ts";
import { fetchTool, type FetchToolOptions, type Resolver } from "../../../../src/capabilities/tools/index.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { openPlace, places, toldOf, untilTold, type PlaceName } from "./place.ts";

let port = 0;

beforeAll(async () => {
  const server = createServer((request, response) => {
    response.setHeader("content-type", "text/plain");
    if (request.url === "/away")
      return void response.writeHead(302, { location: `http://other.test:${port}/` }).end();
    response.end(`page of ${request.headers.host}`);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
  return () => void server.close();
});

const resolve: Resolver = async () => [{ address: "127.0.0.1", family: 4 }];
const get = (url: string): ScriptStep => ({ toolCalls: [{ name: "fetch", input: { url } }] });

/** Fetches the URLs one after another, and returns the results and the questions to a person. */
async function fetching(
  urls: readonly string[],
  rules: PermissionsOptions | undefined,
  options: FetchToolOptions & { readonly place?: PlaceName; readonly answer?: ApprovalDecision } = {},
): Promise<{ readonly results: readonly string[]; readonly asked: readonly ApprovalRequest[] }> {
  const { place: name = "memory", answer = { decision: "approved" }, ...fetch } = options;
  const place = await openPlace(name);
  const results: string[] = [];
  const asked: ApprovalRequest[] = [];
  const onAsk = (request: ApprovalRequest): ApprovalDecision => {
    asked.push(request);
    return answer;
  };
  const agent = new Agent({
    name: "reader",
    model: scriptedModel([...urls.map(get), "Done."]),
    tools: [fetchTool({ resolve, allowPrivate: true, ...fetch })],
    ...(rules && { permissions: permissions({ onAsk, ...rules }) }),
  });
  const run = await (await place.restart()).submit(agent, "Read.");
  for await (const event of run.events({ types: ["tool_execution_end"] }))
    if (event.type === "tool_execution_end") {
      const { output } = event.data.result;
      results.push(output.type === "text" ? output.text : JSON.stringify(output));
    }
  return { results, asked };
}

const at = (host: string, path = "/"): string => `http://${host}:${port}${path}`;

describe.each(places)("fetch with the %s store", (place) => {
  test("fetch asks about each new host once in the mode default, also if the person does not remember the answer", async () => {
    const urls = [at("one.test"), at("one.test", "/more"), at("two.test"), at("ONE.test."), at("two.test")];
    const { results, asked } = await fetching(urls, {}, { place });
    expect(results).toEqual(
      ["one", "one", "two", "one", "two"].map((name) => `page of ${name}.test:${port}`),
    );
    expect(asked.map(({ reason }) => reason)).toEqual([
      `fetch reaches one.test:${port}`,
      `fetch reaches two.test:${port}`,
    ]);
    expect(asked[0]).toMatchObject({ kind: "tool_call", toolName: "fetch", input: { url: at("one.test") } });
  });

  test("fetch asks again for a host that a person denied", async () => {
    const answer = { decision: "denied", reason: "no" } as const;
    const { results, asked } = await fetching([at("one.test"), at("one.test")], {}, { place, answer });
    expect(results).toEqual(["[denied: no]", "[denied: no]"]);
    expect(asked).toHaveLength(2);
  });

  test("fetch asks about the host of a redirect before it is fetched", async () => {
    const urls = [at("one.test", "/away"), at("other.test")];
    const { results, asked } = await fetching(urls, {}, { place });
    expect(results[0]).toContain(`redirects to another host`);
    expect(results[1]).toBe(`page of other.test:${port}`);
    expect(asked.map(({ reason }) => reason)).toEqual([
      `fetch reaches one.test:${port}`,
      `fetch reaches other.test:${port}`,
    ]);
  });

  test("fetch remembers the host that a person wrote in place of the model's host", async () => {
    const answer = { decision: "approved", input: { url: at("two.test") } } as const;
    const urls = [at("one.test"), at("two.test"), at("one.test")];
    const { results, asked } = await fetching(urls, {}, { place, answer });
    expect(results).toEqual(urls.map(() => `page of two.test:${port}`));
    expect(asked).toHaveLength(2);
  });

  test("fetch waits for a person over a restart, and remembers the host for the next run", async () => {
    const store = await openPlace(place);
    const memory = inMemoryApprovals();
    const agentOf = (script: readonly ScriptStep[]) =>
      new Agent({
        name: "reader",
        model: scriptedModel(script),
        tools: [fetchTool({ resolve, allowPrivate: true })],
        permissions: permissions({ memory, onAsk: "wait" }),
      });
    const run = await (await store.restart()).submit(agentOf([get(at("one.test"))]), "Read.");
    const { data } = await untilTold(run, "approval_request");
    await store.restart(agentOf(["Done.", get(at("one.test", "/more")), "Done."]));
    const found = await store.find(run.runId);
    await found.approve(data.approvalId, { decision: "approved" });
    expect((await found.result()).status).toBe("completed");
    const runtime = await store.restart();
    const next = await runtime.submit(agentOf([get(at("one.test", "/more")), "Done."]), "Read more.");
    expect((await next.result()).status).toBe("completed");
    expect(await toldOf(next, "approval_request")).toEqual([]);
  });
});

describe("fetch where no person can answer", () => {
  const nobody: PermissionsOptions = { onAsk: undefined as never };
  const said = (host: string): string =>
    `[denied: fetch reaches ${host}:${port}, but no one can be asked; set the option onAsk of permissions to "wait" or a handler]`;

  test("fetch where no person can answer reaches only the hosts in allow", async () => {
    const urls = [at("docs.test"), at("a.docs.test"), at("docs.test.evil.test"), at("evil-docs.test")];
    const allow = [`docs.test:${port}`, `*.docs.test:${port}`];
    const { results } = await fetching(urls, nobody, { allow });
    expect(results).toEqual([
      `page of docs.test:${port}`,
      `page of a.docs.test:${port}`,
      said("docs.test.evil.test"),
      said("evil-docs.test"),
    ]);
  });

  test("fetch where no person can answer reaches every host with allow: *, with an allow rule, and in the mode bypass", async () => {
    const ok = [`page of one.test:${port}`];
    expect((await fetching([at("one.test")], nobody, { allow: ["*"] })).results).toEqual(ok);
    expect((await fetching([at("one.test")], { ...nobody, allow: ["fetch"] })).results).toEqual(ok);
    expect((await fetching([at("one.test")], { ...nobody, mode: "bypass" })).results).toEqual(ok);
  });

  test("a permission rule for fetch sees the URL in the form in which it is fetched", async () => {
    const seen: unknown[] = [];
    const deny = [{ tool: "fetch", when: (input: unknown) => seen.push(input) > 0 }];
    const url = `HTTP://U%53.TEST.:${port}/a/../b#part`;
    const { results } = await fetching([url], { ...nobody, deny });
    expect(results).toEqual(["[denied: the rule for fetch forbids it]"]);
    expect(seen).toEqual([{ url: `http://us.test:${port}/b` }]);
  });

  test("fetch of an agent without permissions waits for a person, except for hosts in allow", async () => {
    const place = await openPlace("memory");
    const agent = new Agent({
      name: "reader",
      model: scriptedModel([get(at("docs.test")), get(at("one.test")), "Done."]),
      tools: [fetchTool({ resolve, allowPrivate: true, allow: [`docs.test:${port}`] })],
    });
    const run = await (await place.restart()).submit(agent, "Read.");
    const { data } = await untilTold(run, "approval_request");
    expect(data.input).toEqual({ url: at("one.test") });
    await run.approve(data.approvalId, { decision: "denied" });
    await run.result();
  });
});

test.for([
  "https://example.com",
  "example.com/path",
  "user@example.com",
  "exa mple.com",
  "a.*.com",
  "example.com:443",
  "",
])("fetchTool() refuses the host %j in allow", (host) => {
  expect(() => fetchTool({ allow: [host] })).toThrow(`invalid host ${JSON.stringify(host)}: expected a host`);
});

test("a remembered approval of a host for fetch does not remove a rule that asks", async () => {
  const urls = [at("one.test"), at("one.test", "/?q=1"), at("one.test", "/?q=2"), at("one.test", "/more")];
  const when = (input: unknown) => (input as { url: string }).url.includes("?");
  const ask = [{ tool: "fetch", when, reason: "it sends data" }];
  const plain = await fetching(urls, { ask });
  expect(plain.asked.map(({ reason }) => reason)).toEqual([
    `fetch reaches one.test:${port}`,
    "it sends data",
    "it sends data",
  ]);
  const answer = { decision: "approved", remember: true } as const;
  const always = await fetching(urls, { ask }, { answer });
  expect(always.asked.map(({ reason }) => reason)).toEqual([
    `fetch reaches one.test:${port}`,
    "it sends data",
  ]);
  expect(always.results).toEqual(urls.map(() => `page of one.test:${port}`));
});

test("fetch asks for a new host in the mode acceptEdits as well", async () => {
  const { asked } = await fetching([at("one.test")], { mode: "acceptEdits" });
  expect(asked).toHaveLength(1);
});
