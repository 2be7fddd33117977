import { expect, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { openGateway, type GatewayProgram } from "../../../src/capabilities/gateway/gateway.ts";
import type { GatewayOptions } from "../../../src/capabilities/gateway/gateway-options.ts";
import type { RunHandle } from "../../../src/kernel/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { opened, post } from "./gateway-world.ts";
import { answerJson, MockUpstream } from "./mock-upstream.ts";

const prices = { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) };
const request = { path: "/v1/messages", body: { model: "m", max_tokens: 100, messages: [] } };

/** Returns the number of requests that cost money. Requests that count tokens are free. */
function paid({ received }: MockUpstream): number {
  return received.filter(({ path }) => path === request.path).length;
}

/** Runs a program that sends `requests` requests under a budget of 0.10 USD, which pays for one request. */
async function runProgram(
  requests: number,
  topUpWaitMs?: number,
): Promise<{ readonly run: RunHandle; readonly statuses: number[][]; readonly upstream: MockUpstream }> {
  const upstream = await MockUpstream.open((_, response) => {
    answerJson(response, { content: [], usage: { input_tokens: 1, output_tokens: 100 } });
  });
  opened.push(upstream);
  const gateway = await openGateway({
    upstreams: { anthropic: { baseUrl: upstream.url, apiKey: "secret-key", provider: "mock" } },
    ...(topUpWaitMs !== undefined && { topUpWaitMs }),
  });
  opened.push(gateway);
  const runtime = await openRuntime({ store: "memory:", prices });
  opened.push(runtime);
  const statuses: number[][] = [];
  const agent = gateway.program(
    "employee",
    async (access) => {
      const own: number[] = [];
      statuses.push(own);
      for (let sent = 0; sent < requests; sent++) {
        const answer = await post(access, request);
        own.push(answer.status);
        if (answer.status === 402) return null;
      }
      return "done";
    },
    { budget: { maxCostUsd: 0.1 }, onBudget: "ask" },
  );
  return { run: await runtime.submit(agent, null), statuses, upstream };
}

test("B5: the gateway holds a request that does not fit the budget until the top-up, and the program does not notice", async () => {
  const { run, statuses, upstream } = await runProgram(2);
  for await (const event of run.events({ types: ["approval_request"] }))
    if (event.type === "approval_request") break;
  expect(paid(upstream)).toBe(1);
  await run.topUp({ maxCostUsd: 0.1 });
  const { status, output } = await run.result();
  expect([status, output, statuses]).toEqual(["completed", "done", [[200, 200]]]);
});

test("B5: the gateway refuses a held request with 402 after topUpWaitMs, and the program starts again after the top-up", async () => {
  const { run, statuses, upstream } = await runProgram(2, 0);
  const [question] = await run.untilPersonIsNeeded();
  expect([question?.kind, statuses, paid(upstream)]).toEqual(["top_up", [[200, 402]], 1]);
  await run.topUp({ maxCostUsd: 0.2 });
  const { status, output, costUsd } = await run.result();
  expect([status, output, costUsd, statuses]).toEqual([
    "completed",
    "done",
    0.3,
    [
      [200, 402],
      [200, 200],
    ],
  ]);
});

test("B5: a hired program whose top-up is refused ends as budget_exhausted", async () => {
  const { run, statuses } = await runProgram(2);
  for await (const event of run.events({ types: ["approval_request"] }))
    if (event.type === "approval_request") {
      await run.approve(event.data.approvalId, { decision: "denied" });
      break;
    }
  expect([(await run.result()).status, statuses]).toEqual(["budget_exhausted", [[200, 402]]]);
});

/**
 * Opens a gateway with a program under a budget of 0.10 USD. The test controls the program and the clock of the runtime.
 */
async function heldProgram(
  program: (access: GatewayProgram) => Promise<string>,
  options: Partial<GatewayOptions> = {},
) {
  const upstream = await MockUpstream.open(({ path }, response) => {
    if (path.endsWith("count_tokens")) return answerJson(response, { input_tokens: 1 });
    answerJson(response, { usage: { input_tokens: 1, output_tokens: 10 } });
  });
  opened.push(upstream);
  const provider = { baseUrl: upstream.url, apiKey: "secret-key", provider: "mock" };
  const gateway = await openGateway({ upstreams: { anthropic: provider }, ...options });
  opened.push(gateway);
  const clock = new FakeClock();
  const runtime = await openRuntime({ store: "memory:", prices, clock });
  opened.push(runtime);
  const agent = gateway.program("held", program, { budget: { maxCostUsd: 0.1 }, onBudget: "ask" });
  return { runtime, clock, submit: () => runtime.submit(agent, null) };
}

/** A request that does not fit into 0.10 USD, because it cannot think with a lower limit. */
const large = {
  path: "/v1/messages",
  body: { model: "m", max_tokens: 2_000, thinking: { type: "enabled", budget_tokens: 1_999 }, messages: [] },
};
const small = { path: "/v1/messages", body: { model: "m", max_tokens: 10, messages: [] } };

test("B5: the gateway holds a request for 60 s by default while a person can be reached", async () => {
  const ended = Promise.withResolvers<readonly [number, number]>();
  const opened60 = Promise.withResolvers<GatewayProgram>();
  const { runtime, clock, submit } = await heldProgram(async (access) => {
    opened60.resolve(access);
    const { status } = await post(access, large);
    ended.resolve([status, clock.now()]);
    return "done";
  });
  const leave = runtime.attend();
  const run = await submit();
  const access = await opened60.promise;
  const begun = clock.now();
  for await (const event of run.events({ types: ["approval_request"] }))
    if (event.type === "approval_request") break;
  await clock.advance(59_999);
  // An answer to the held request would arrive before this one.
  await fetch(`${access.url}/v1/models`, { headers: { "x-api-key": access.token } });
  await clock.advance(1);
  const [status, at] = await ended.promise;
  expect([status, at - begun]).toEqual([402, 60_000]);
  await run.cancel("the test ends");
  leave();
});

test("B5: the gateway refuses a request at once if no person can be reached, and its question stays open", async () => {
  const statuses: number[] = [];
  const { submit } = await heldProgram(async (access) => {
    statuses.push((await post(access, large)).status);
    return "done";
  });
  const run = await submit();
  while ((await run.pendingApprovals()).length === 0 || statuses.length === 0)
    await new Promise(setImmediate);
  expect(statuses).toEqual([402]);
  await run.cancel("the test ends");
});

test("B5: held gateway requests take no place of requests that fit the budget, and their number is limited", async () => {
  const results: string[] = [];
  const { runtime, clock, submit } = await heldProgram(
    async (access) => {
      const ask = async (sent: typeof large | typeof small): Promise<number> =>
        (await post(access, sent)).status;
      const held = [ask(large), ask(large)];
      // Until both wait, they take the places of other requests.
      while ((await ask(small)) !== 200);
      results.push(`large ${await ask(large)}`, `small ${await ask(small)}`);
      await clock.advance(60_000);
      results.push(`held ${(await Promise.all(held)).join(" ")}`);
      return "done";
    },
    { maxOpenRequests: 2 },
  );
  const leave = runtime.attend();
  const run = await submit();
  await run.untilPersonIsNeeded();
  while (results.length < 3) await new Promise(setImmediate);
  expect(results).toEqual(["large 402", "small 200", "held 402 402"]);
  await run.cancel("the test ends");
  leave();
});
