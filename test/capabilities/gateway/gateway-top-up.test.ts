import { expect, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { openGateway } from "../../../src/capabilities/gateway/gateway.ts";
import type { RunHandle } from "../../../src/kernel/index.ts";
import { opened, post } from "./gateway-world.ts";
import { answerJson, MockUpstream } from "./mock-upstream.ts";

const prices = { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) };
const request = { path: "/v1/messages", body: { model: "m", max_tokens: 100, messages: [] } };

/** Number of requests that cost money. The others count tokens. */
function paid({ received }: MockUpstream): number {
  return received.filter(({ path }) => path === request.path).length;
}

/** Runs a program that sends `requests` requests under a budget of 0.10 USD, which pays for one of them. */
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

test("B5: a request that does not fit is held until the top-up, and the program does not notice", async () => {
  const { run, statuses, upstream } = await runProgram(2);
  for await (const event of run.events({ types: ["approval_request"] }))
    if (event.type === "approval_request") break;
  expect(paid(upstream)).toBe(1);
  await run.topUp({ maxCostUsd: 0.1 });
  const { status, output } = await run.result();
  expect([status, output, statuses]).toEqual(["completed", "done", [[200, 200]]]);
});

test("B5: a held request is refused with 402 after topUpWaitMs, and the program starts again after the top-up", async () => {
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

test("B5: a program whose top-up is refused ends as budget_exhausted", async () => {
  const { run, statuses } = await runProgram(2);
  for await (const event of run.events({ types: ["approval_request"] }))
    if (event.type === "approval_request") {
      await run.approve(event.data.approvalId, { decision: "denied" });
      break;
    }
  expect([(await run.result()).status, statuses]).toEqual(["budget_exhausted", [[200, 402]]]);
});
