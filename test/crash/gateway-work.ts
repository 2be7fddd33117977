import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { openGateway, type GatewayProgram } from "../../src/capabilities/gateway/gateway.ts";
import { formatRunId } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import type { DutyWork } from "../../src/testing/worker-duty.ts";
import { openCrashStore } from "./crash-store.ts";

export const gatewayRun = formatRunId("gateway");
export const gatewayCapUsd = 0.6;
/** Caps of which that of the agent is the tightest. Each cap counts the reservations of a killed process. */
const gatewayCaps = { perAgentPerMonthUsd: gatewayCapUsd, perAgentPerDayUsd: 0.8, perMonthUsd: 0.7 };

/** The input of the work. */
export interface GatewayWorkData {
  /** Address of the provider. */
  readonly url: string;
  /** Whether caps per agent and per month stop the program, and not the budget of its run. */
  readonly isCapped: boolean;
  /** Number of branches of the program, and so of open requests. */
  readonly branches: number;
  /** Output tokens for which each request asks. */
  readonly maxTokens: number;
  /** Whether the work says when it has the first event of a stream. */
  readonly saysEvents: boolean;
}

/** What the work writes to stderr when it has the first event of a stream. */
export const firstEvent = "first event";

/** Executes a program with both clients, whole and streamed, twenty calls at once, until the gateway refuses each branch. */
export const doGatewayWork: DutyWork = async ({ file, mortal, data }) => {
  const work = data as unknown as GatewayWorkData;
  const { url: baseUrl, isCapped, branches } = work;
  const runtime = await createRuntime({
    store: mortal(await openCrashStore(file)),
    // Input is free, and a thousand output tokens cost a dollar.
    prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) },
    ...(isCapped && { caps: gatewayCaps }),
    pollMs: 20,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  const upstream = { baseUrl, apiKey: "provider-key" };
  const gateway = await openGateway({ upstreams: { anthropic: upstream, openai: upstream } });
  const agent = gateway.program("program", async (program) => {
    await Promise.all(Array.from({ length: branches }, (_, branch) => loop(program, branch, work)));
    return "said to have succeeded";
  });
  const budget = { maxCostUsd: isCapped ? 2 * gatewayCapUsd : gatewayCapUsd };
  const run = await runtime.submit(agent, null, { runId: gatewayRun, budget });
  await run.result();
  await runtime.close();
  await gateway.close();
  return [gatewayRun];
};

async function loop(
  { url, token }: GatewayProgram,
  branch: number,
  { maxTokens, saysEvents }: GatewayWorkData,
): Promise<void> {
  const anthropic = new Anthropic({ baseURL: url, apiKey: token, maxRetries: 0 });
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: `branch ${branch}` }];
  const stream = branch % 2 === 0;
  const ask = async (): Promise<void> => {
    if (branch % 4 < 2) {
      const answer = await anthropic.messages.create({
        model: "m",
        max_tokens: maxTokens,
        messages,
        stream,
      });
      if (!("content" in answer)) await drain(answer, saysEvents);
      return;
    }
    const answer = await openai.chat.completions.create({
      model: "m",
      max_completion_tokens: maxTokens,
      messages,
      stream,
    });
    if (!("choices" in answer)) await drain(answer, saysEvents);
  };
  for (;;)
    try {
      await ask();
    } catch (error) {
      if ((error as { readonly status?: number }).status === 402) return;
      throw error;
    }
}

async function drain(stream: AsyncIterable<unknown>, saysEvents: boolean): Promise<void> {
  const events = stream[Symbol.asyncIterator]();
  await events.next();
  if (saysEvents) process.stderr.write(`${firstEvent}\n`);
  while ((await events.next()).done !== true);
}
