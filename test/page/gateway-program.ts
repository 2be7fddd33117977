import { Gateway } from "../../src/capabilities/gateway/gateway.ts";
import { gatewayAgent, GatewayRuns } from "../../src/capabilities/gateway/gateway-runs.ts";
import { GatewayTokens } from "../../src/capabilities/gateway/gateway-tokens.ts";
import { formatRunId, type OnBudget, type RunHandle, type RunRecord } from "../../src/kernel/index.ts";
import { runIdWithin } from "../../src/runtime/index.ts";
import { answerJson, MockUpstream } from "../capabilities/gateway/mock-upstream.ts";
import type { PageServer } from "./page-server.ts";

/** The model that the programs ask. */
export const gatewayModel = "claude-sonnet-4-5";

export interface Program {
  readonly run: RunHandle;
  readonly runs: GatewayRuns;
  readonly upstream: MockUpstream;
  /** Sends a request and returns the status of the answer. */
  readonly ask: (changes?: object) => Promise<number>;
  readonly close: () => Promise<void>;
}

export interface ProgramOptions {
  readonly onBudget?: OnBudget;
  /** B7: whether the budget renews each month, as a cap. */
  readonly isCapped?: boolean;
  /** Default: ann. */
  readonly userId?: string;
}

/** A gateway run whose budget of 0.10 USD pays for one request of 1,000 tokens. */
export async function openProgram(
  server: PageServer,
  name: string,
  { onBudget = "ask", isCapped = false, userId = "ann" }: ProgramOptions = {},
): Promise<Program> {
  const { runtime, store } = server;
  const upstream = await MockUpstream.open(({ path, body }, response) => {
    if (path.endsWith("count_tokens")) return answerJson(response, { input_tokens: 0 });
    const { max_tokens } = JSON.parse(body.toString()) as { max_tokens: number };
    answerJson(response, { usage: { input_tokens: 0, output_tokens: max_tokens } });
  });
  const tokens = new GatewayTokens(store.records);
  const runs = new GatewayRuns(tokens, runtime);
  const provider = { baseUrl: upstream.url, apiKey: "secret-key" };
  const gateway = await Gateway.open({ upstreams: { anthropic: provider } }, { stored: runs });
  server.gateway = { runs };
  const runId = runIdWithin("acme", formatRunId(crypto.randomUUID()));
  const token = await tokens.create(runId);
  const metadata = { gateway: name, maxBudgetUsd: 0.1, ...(isCapped && { per: "month" }) };
  const { id } = gatewayAgent(name);
  const agent = await runs.resolver.resolve({ agentId: id, metadata } as unknown as RunRecord);
  if (agent === undefined) throw new Error("the resolver made no agent");
  const run = await runtime.submit(
    { ...agent, onBudget },
    { models: null, wire: null, expiresAt: null, served: 0 },
    { runId, metadata, ...(!isCapped && { budget: { maxCostUsd: 0.1 } }), userId, tenantId: "acme" },
  );
  return {
    run,
    runs,
    upstream,
    close: async () => {
      server.gateway = undefined;
      await runs.close(0);
      await gateway.close();
      await upstream.close();
    },
    ask: async (changes = {}) => {
      const body = JSON.stringify({ model: gatewayModel, max_tokens: 1000, messages: [], ...changes });
      for (;;) {
        const headers = { "x-api-key": token };
        const { status } = await fetch(`${gateway.url}/v1/messages`, { method: "POST", headers, body });
        if (status !== 503) return status;
      }
    },
  };
}
