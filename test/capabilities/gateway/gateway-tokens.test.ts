import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { Gateway, type GatewayProgram } from "../../../src/capabilities/gateway/gateway.ts";
import { GatewayTokens, ServerProof } from "../../../src/capabilities/gateway/gateway-tokens.ts";
import { openStore } from "../../../src/runtime/index.ts";
import { opened, post, type Access } from "./gateway-world.ts";
import { answerJson, MockUpstream } from "./mock-upstream.ts";

const prices = { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) };
const usage = { input_tokens: 1, output_tokens: 10 };
const body = { model: "m", max_tokens: 10, messages: [] };

/** The status of a call, of a count of tokens, and of the list of models. */
async function statusesOf(access: Access): Promise<readonly number[]> {
  const { url, token } = access;
  const replies = [
    await post(access, { path: "/v1/messages", body }),
    await post(access, { path: "/v1/messages/count_tokens", body }),
    await fetch(`${url}/v1/models`, { headers: { "x-api-key": token } }),
  ];
  return replies.map(({ status }) => status);
}

/** A program that ignores that it should end, until the test lets it return. */
async function stubbornProgram(store: "memory:" | `sqlite:${string}`) {
  const upstream = await MockUpstream.open((_received, response) =>
    answerJson(response, { input_tokens: 1, usage }),
  );
  opened.push(upstream);
  const gateway = await Gateway.open({
    upstreams: { anthropic: { baseUrl: upstream.url, apiKey: "k", provider: "mock" } },
  });
  opened.push(gateway);
  const runtime = await openRuntime({ store, prices, onError: () => undefined });
  opened.push(runtime);
  const started = Promise.withResolvers<GatewayProgram>();
  const over = Promise.withResolvers<null>();
  const agent = gateway.program("stubborn", async (program) => {
    started.resolve(program);
    return over.promise;
  });
  const run = await runtime.submit(agent, null);
  return { run, program: await started.promise, upstream, over };
}

test("a gateway token is refused everywhere as soon as its task is cancelled, although the program works on", async () => {
  const { run, program, upstream, over } = await stubbornProgram("memory:");
  expect(await statusesOf(program)).toEqual([200, 200, 200]);
  const cancelled = new Promise((resolve) => program.signal.addEventListener("abort", resolve));
  await run.cancel("not needed");
  await cancelled;
  expect((await run.summary()).status).toBe("running");
  expect(await statusesOf(program)).toEqual([401, 401, 401]);
  expect(upstream.received.length).toBe(2);
  over.resolve(null);
  await run.result();
});

test("L1: a gateway process that has lost its run refuses the open request, and the token from then on", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-gateway-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "reeve.db");
  const { program, upstream } = await stubbornProgram(`sqlite:${file}`);
  expect(await statusesOf(program)).toEqual([200, 200, 200]);
  // Another process takes the run over.
  const database = new DatabaseSync(file);
  database.exec("UPDATE runs SET epoch = epoch + 1");
  database.close();
  const reply = await post(program, { path: "/v1/messages", body });
  expect(reply.status).toBe(401);
  expect(await statusesOf(program)).toEqual([401, 401, 401]);
  expect(upstream.received.filter(({ path }) => path === "/v1/messages").length).toBe(1);
});

test("a gateway server that has not reported for two minutes is not found, and its record is deleted", async () => {
  const { records } = await openStore("memory:");
  let now = 1_000_000;
  const tokens = new GatewayTokens(records, () => now);
  const proof = new ServerProof();
  const killed = await tokens.announce("http://127.0.0.1:1", proof, ["key"]);
  const [found] = await tokens.servers();
  expect([found?.url, found?.isKey("key"), found?.isKey("other")]).toEqual([
    "http://127.0.0.1:1",
    true,
    false,
  ]);
  expect(found?.proof.isAnswer("nonce", proof.answer("nonce"))).toBe(true);
  expect(found?.proof.isAnswer("nonce", proof.answer("another nonce"))).toBe(false);
  now += 120_000;
  expect(await tokens.servers()).toEqual([]);
  const next = await tokens.announce("http://127.0.0.1:2", new ServerProof());
  expect((await records.list({ namespace: "gateway-servers" })).records.map(({ key }) => key)).toEqual([
    "http://127.0.0.1:2",
  ]);
  await killed.close();
  await next.close();
  expect(await tokens.servers()).toEqual([]);
});
