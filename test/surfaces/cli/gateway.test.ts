import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { expect, onTestFinished, test } from "vitest";
import { GatewayTokens, ServerProof } from "../../../src/capabilities/gateway/gateway-tokens.ts";
import { openStore } from "../../../src/runtime/index.ts";
import { answerJson, MockUpstream } from "../../capabilities/gateway/mock-upstream.ts";
import { reeve, reeveProcess, type Said } from "./reeve-process.ts";
import { serve } from "./serve-process.ts";

/** Input is free, and a thousand output tokens cost a dollar. */
const config = (url: string): string => `
export default {
  gateway: { upstreams: { anthropic: { baseUrl: ${JSON.stringify(url)}, apiKey: "provider-key" } } },
  runtime: { prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) } },
};`;

interface Place {
  readonly folder: string;
  readonly upstream: MockUpstream;
  /** Output tokens that the provider has billed. */
  readonly billed: () => number;
  readonly run: (...args: string[]) => Promise<Said>;
}

/** A trusted folder whose gateway leads to a local provider, which bills each request at its output limit. */
async function place(): Promise<Place> {
  let billed = 0;
  const upstream = await MockUpstream.open(({ path, body }, response) => {
    if (path.endsWith("count_tokens")) return answerJson(response, { input_tokens: 5 });
    const { max_tokens } = JSON.parse(body.toString()) as { max_tokens: number };
    billed += max_tokens;
    const content = [{ type: "text", text: "Hello" }];
    answerJson(response, { type: "message", content, usage: { input_tokens: 5, output_tokens: max_tokens } });
  });
  const folder = await mkdtemp(join(tmpdir(), "reeve-gateway-"));
  onTestFinished(async () => {
    await upstream.close();
    await rm(folder, { recursive: true });
  });
  await writeFile(join(folder, "reeve.config.ts"), config(upstream.url));
  const run = (...args: string[]): Promise<Said> => reeve(args, { cwd: folder });
  expect(await run("trust", "--yes")).toMatchObject({ code: 0 });
  return { folder, upstream, billed: () => billed, run };
}

async function gatewayOf(server: Awaited<ReturnType<typeof serve>>): Promise<string> {
  await server.saying("Gateway: ");
  return /Gateway: (http:\S+\d)/.exec(server.said())?.[1] ?? "";
}

/**
 * Waits until `reeve gateway show` prints what is expected, and returns it. The gateway answers a request before it has written
 * what became of it.
 */
async function shows(
  { run }: Pick<Place, "run">,
  name: string,
  expected: object,
): Promise<{ readonly runId: string }> {
  let shown: unknown;
  await expect
    .poll(async () => (shown = JSON.parse((await run("gateway", "show", name, "--json")).out[0] ?? "")))
    .toMatchObject(expected);
  return shown as { readonly runId: string };
}

const prompt = "the password is swordfish";

/** A proxy that does not answer, for what a server must reach directly. */
const deadProxy = {
  NODE_USE_ENV_PROXY: "1",
  HTTP_PROXY: "http://127.0.0.1:9",
  http_proxy: "http://127.0.0.1:9",
  NO_PROXY: "",
  no_proxy: "",
};

/** Returns which of the texts the files of a store contain. */
async function storedIn(folder: string, texts: readonly string[]): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const entry of await readdir(join(folder, ".reeve"), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const content = await readFile(join(entry.parentPath, entry.name));
    for (const text of texts) if (content.includes(text)) found.add(text);
  }
  return [...found];
}

/** Asks once, and returns the text of the answer or the status of the error. */
async function ask(baseURL: string, apiKey: string, max_tokens = 100): Promise<string | number | undefined> {
  const client = new Anthropic({ baseURL, apiKey, maxRetries: 8 });
  try {
    const messages = [{ role: "user", content: prompt }] as const;
    const { content } = await client.messages.create({ model: "m", max_tokens, messages: [...messages] });
    return content[0]?.type === "text" ? content[0].text : "";
  } catch (error) {
    if (error instanceof APIError) return error.status;
    throw error;
  }
}

test("agents answer under /v1 of the server and providers at the listener of the gateway, and each refuses the tokens of the other", async () => {
  const { folder, billed, run } = await place();
  const { out: paid } = await run("gateway", "token", "--max-budget-usd", "1", "--name", "bot");
  const { out: own } = await run("token", "create", "--tenant", "acme", "--scope", "run", "--name", "laptop");
  const [gatewayToken = "", serverToken = ""] = [paid[0], own[0]];
  const server = await serve(folder, {});
  const gateway = await gatewayOf(server);
  expect(new URL(gateway).port).not.toBe(server.link.port);
  const models = async (base: string, token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(new URL("/v1/models", base), { headers })).status;
  };
  const respond = async (base: string, token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify({ model: "absent", input: "hi" });
    return (await fetch(new URL("/v1/responses", base), { method: "POST", headers, body })).status;
  };
  const { origin } = server.link;
  expect([await models(origin, serverToken), await respond(origin, serverToken)]).toEqual([200, 404]);
  expect([await models(origin, gatewayToken), await respond(origin, gatewayToken)]).toEqual([401, 401]);
  expect([await ask(gateway, gatewayToken), await ask(gateway, serverToken)]).toEqual(["Hello", 401]);
  expect([await models(gateway, serverToken), await respond(gateway, serverToken)]).toEqual([401, 401]);
  expect(billed()).toBe(100);
  expect(await server.stop("SIGTERM")).toBe(0);
});

test("a gateway token survives restarts, stops at its budget, continues after a top-up, and ends when it is revoked", async () => {
  const { folder, billed, run } = await place();
  const created = await run(
    "gateway",
    "token",
    "--max-budget-usd",
    "0.25",
    "--name",
    "bot",
    "--user",
    "ann",
    "--tenant",
    "acme",
  );
  expect(created).toMatchObject({ code: 0 });
  const token = created.out[0] ?? "";
  expect(await run("gateway", "token", "--max-budget-usd", "1", "--name", "bot")).toMatchObject({ code: 2 });
  const first = await serve(folder, deadProxy);
  expect(await ask(await gatewayOf(first), token)).toBe("Hello");
  expect(await first.stop("SIGTERM")).toBe(0);
  const second = await serve(folder, {});
  const url = await gatewayOf(second);
  expect([await ask(url, token), await ask(url, token), await ask(url, token)]).toEqual([
    "Hello",
    "Hello",
    402,
  ]);
  expect(billed()).toBe(250);
  const { runId } = await shows({ run }, "bot", {
    name: "bot",
    userId: "ann",
    costUsd: 0.25,
    requests: 3,
    refused: 1,
    models: [{ model: "anthropic/m", requests: 3 }],
    tokens: [{ ending: token.slice(-3) }],
  });
  expect(await run("top-up", runId, "--usd", "0.1")).toMatchObject({ code: 0 });
  // The server that executes the run reads the order from the store.
  while ((await ask(url, token)) !== "Hello") expect(await run("gateway", "list")).toMatchObject({ code: 0 });
  expect(await run("gateway", "revoke", "bot")).toMatchObject({ code: 0, out: ["bot"] });
  expect(await ask(url, token)).toBe(401);
  expect(billed()).toBe(350);
  const { out } = await run("gateway", "list", "--json");
  expect(out.map((line) => (JSON.parse(line) as { name: string }).name)).toEqual(["bot"]);
  expect(await second.stop("SIGTERM")).toBe(0);
  // Neither the store nor what the servers have said contains the key, the token or a prompt.
  expect(await storedIn(folder, ["provider-key", token, prompt, runId])).toEqual([runId]);
  const said = first.said() + second.said();
  expect(["provider-key", token, prompt].filter((text) => said.includes(text))).toEqual([]);
});

test("a gateway token of a tenant pays from its own run, and reeve cost counts it for its user, tenant and program", async () => {
  const { folder, billed, run } = await place();
  const create = async (name: string, tenant: string): Promise<string> => {
    const owner = ["--user", "ann", "--tenant", tenant];
    const { out } = await run("gateway", "token", "--max-budget-usd", "0.25", "--name", name, ...owner);
    return out[0] ?? "";
  };
  const [ours, theirs] = [await create("ours", "acme"), await create("theirs", "other")];
  const server = await serve(folder, {});
  const url = await gatewayOf(server);
  expect([await ask(url, ours), await ask(url, ours), await ask(url, ours, 150)]).toEqual([
    "Hello",
    "Hello",
    "Hello",
  ]);
  expect([await ask(url, ours), await ask(url, theirs)]).toEqual([402, "Hello"]);
  expect(billed()).toBe(350);
  await server.stop("SIGTERM");
  const costs = async (by: string): Promise<readonly (readonly unknown[])[]> =>
    (await run("cost", "--by", by, "--json")).out.map((line) => {
      const { key, costUsd } = JSON.parse(line) as { key: string; costUsd: number };
      return [key, costUsd];
    });
  expect(await costs("tenant")).toEqual([
    ["acme", 0.25],
    ["other", 0.1],
  ]);
  expect(await costs("agent")).toEqual([
    ["reeve:gateway/ours", 0.25],
    ["reeve:gateway/theirs", 0.1],
  ]);
  // A user belongs to a tenant.
  expect(await costs("user")).toEqual([
    ["ann", 0.25],
    ["ann", 0.1],
  ]);
});

test.each([
  ["--max-budget-usd", "1e300"],
  ["--max-budget-usd", "0x10"],
  ["--max-budget-usd", "1e-12"],
  ["--max-budget-usd", "0.0000001"],
  ["--max-budget-usd", "0"],
  ["--max-budget-usd", "-1"],
  ["--max-budget-usd", "9000000"],
  ["--max-budget-usd", ""],
  ["--models", ""],
  ["--models", "a,,b"],
])("reeve gateway token refuses %s %j", async (option, value) => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-gateway-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const valid = option === "--models" ? ["--max-budget-usd", "1"] : [];
  const { code, talk } = await reeve(["gateway", "token", ...valid, option, value], { cwd: folder });
  expect([code, talk]).toEqual([2, expect.stringContaining(`invalid ${option}`)]);
});

test("B7: a gateway token with --per and --wire spends its budget once per period, only on the named protocol", async () => {
  const { folder, billed, run } = await place();
  for (const wrong of [
    ["--per", "week"],
    ["--wire", "ollama"],
    ["--on-budget", "stop"],
    ["--per", "day", "--on-budget", "ask"],
  ])
    expect(await run("gateway", "token", "--max-budget-usd", "1", ...wrong)).toMatchObject({ code: 2 });
  const limits = ["--per", "month", "--wire", "anthropic", "--name", "team"];
  const { out } = await run("gateway", "token", "--max-budget-usd", "0.25", ...limits);
  const [token = ""] = out;
  const server = await serve(folder, {});
  const url = await gatewayOf(server);
  expect([
    await ask(url, token),
    await ask(url, token),
    await ask(url, token),
    await ask(url, token),
  ]).toEqual(["Hello", "Hello", "Hello", 402]);
  expect(billed()).toBe(250);
  const chat = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "x-reeve-token": token },
  });
  expect(chat.status).toBe(403);
  await shows({ run }, "team", { status: "running", per: "month", wire: "anthropic", costUsd: 0.25 });
  await server.stop("SIGTERM");
});

test("reeve gateway env starts a program with a token of its own and without provider keys, and returns its exit code", async () => {
  const { folder, upstream, run } = await place();
  await run("gateway", "token", "--max-budget-usd", "1", "--name", "bot", "--models", "m");
  const server = await serve(folder, {});
  const other = await serve(folder, {});
  await gatewayOf(server);
  await gatewayOf(other);
  const program = `
    import { readFileSync } from "node:fs";
    const { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: token, ANTHROPIC_API_KEY, AWS_PROFILE, OTHER } = process.env;
    const headers = { authorization: "Bearer " + token };
    const ask = async (model) => {
      const body = JSON.stringify({ model, max_tokens: 9, messages: [] });
      return (await fetch(url + "/v1/messages", { method: "POST", headers, body })).status;
    };
    const inherited = [ANTHROPIC_API_KEY, OTHER, AWS_PROFILE];
    const file = process.platform === "linux" ? readFileSync("/proc/self/environ", "utf8") : "";
    if (/provider-key|key-1/.test(file)) inherited.push("a key in /proc");
    console.log(JSON.stringify([inherited, await ask("m"), await ask("x"), process.argv.slice(2)]));
    process.exit(7);`;
  await writeFile(join(folder, "bot.mjs"), program);
  // A server that was killed has left its address, and another process has its port.
  const impostor = await MockUpstream.open((_received, response) => answerJson(response, { proof: "x" }));
  const store = await openStore(`sqlite:${join(folder, ".reeve/reeve.db")}`);
  const stale = await new GatewayTokens(store.records).announce(
    // With this port it is the first in the list.
    impostor.url.replace(/:(?=\d+$)/, ":0"),
    new ServerProof(),
  );
  const kept = ["--env", "AWS_PROFILE"];
  const command = ["gateway", "env", "bot", ...kept, "--", process.execPath, "bot.mjs", "-p", "hi"];
  const proxy = await MockUpstream.open((_received, response) => answerJson(response, {}));
  const proxied = { ...deadProxy, HTTP_PROXY: proxy.url, http_proxy: proxy.url };
  const env = { ...proxied, ANTHROPIC_API_KEY: "key-1", OTHER: "provider-key", AWS_PROFILE: "work" };
  const { code, out, talk } = await reeveProcess(command, { cwd: folder, env });
  expect([code, out]).toEqual([7, ['[[null,null,"work"],200,403,["-p","hi"]]']]);
  expect(talk).toContain("ANTHROPIC_API_KEY, OTHER. Keep a variable with --env NAME.");
  expect(impostor.received.map(({ path }) => path.replace(/\?.*/, ""))).toEqual(["/reeve/proof"]);
  expect(impostor.received.some(({ headers }) => "x-reeve-token" in headers)).toBe(false);
  await stale.close();
  await store.close();
  await impostor.close();
  // Neither the command nor the program has sent its token to a proxy.
  expect(proxy.received).toEqual([]);
  await proxy.close();
  expect(await run("gateway", "env", "bot", "--env", "ABSENT", "--", "true")).toMatchObject({ code: 2 });
  expect(upstream.received.length).toBe(1);
  // The token of the program is deleted, and the one that was printed stays.
  await shows({ run }, "bot", { tokens: [expect.anything()], refused: 0, notAllowed: 1 });
  const { out: lines } = await run("gateway", "show", "bot");
  expect(lines.join("\n")).toContain("the last one with 403 the model x is not allowed; use one of m");
  await server.stop("SIGTERM");
  await other.stop("SIGTERM");
});

test("a server that does not execute the run of a gateway token answers with 503, and gateway and API refuse each other's tokens", async () => {
  const { folder, run } = await place();
  const { out } = await run("gateway", "token", "--max-budget-usd", "1");
  const servers = [await serve(folder, {}), await serve(folder, {})];
  const [token = ""] = out;
  const answers = new Map<number, string | null>();
  while (answers.size < 2)
    for (const server of servers) {
      const headers = { "x-reeve-token": token };
      const reply = await fetch(`${await gatewayOf(server)}/v1/models`, { headers });
      answers.set(reply.status, reply.headers.get("retry-after"));
    }
  expect(Object.fromEntries(answers)).toEqual({ 200: null, 503: "2" });
  const { out: made } = await run("token", "create", "--scope", "admin");
  const [server] = servers;
  if (server === undefined) throw new Error("no server was started");
  const bearer = (text = ""): RequestInit => ({ headers: { authorization: `Bearer ${text}` } });
  const api = `${server.link.origin}/api/runs`;
  const models = `${await gatewayOf(server)}/v1/models`;
  expect([(await fetch(api, bearer(made[0]))).status, (await fetch(api, bearer(token))).status]).toEqual([
    200, 401,
  ]);
  expect((await fetch(models, bearer(made[0]))).status).toBe(401);
  for (const each of servers) await each.stop("SIGTERM");
});
