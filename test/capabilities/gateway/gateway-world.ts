import { afterEach } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import type { RuntimeOptions } from "../../../src/runtime/index.ts";
import {
  Gateway,
  type GatewayPlace,
  type GatewayProgram,
} from "../../../src/capabilities/gateway/gateway.ts";
import type { GatewayOptions } from "../../../src/capabilities/gateway/gateway-options.ts";
import type { GatewayUpstream } from "../../../src/capabilities/gateway/upstream.ts";
import type { Event, ExecutionBudget, HistoryRetention } from "../../../src/kernel/index.ts";
import { MockUpstream } from "./mock-upstream.ts";

export const opened: { close(): Promise<void> }[] = [];

/** Closes what the test opened. */
afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.close();
});

/** Input is free, and a thousand output tokens cost a dollar. */
const prices = { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) };

/** How a program reaches the gateway. */
export type Access = Pick<GatewayProgram, "url" | "token">;

export interface World {
  readonly upstream: MockUpstream;
  /** Runs a program in a task, and returns how the task ended. */
  readonly run: (
    program: (access: Access) => Promise<void>,
    budget?: Partial<ExecutionBudget>,
    retention?: HistoryRetention,
  ) => Promise<{
    readonly status: string;
    readonly costUsd: number | null;
    readonly events: readonly Event[];
  }>;
}

/** What a test changes of the providers and of the runtime. */
export interface WorldOptions {
  /** Name of the provider of each protocol. Default: `mock`. */
  readonly providers?: Readonly<Record<string, string>>;
  readonly upstream?: Partial<GatewayUpstream>;
  readonly place?: GatewayPlace;
  readonly runtime?: RuntimeOptions;
}

export async function worldOf(
  answer: MockUpstream["answer"],
  options: Partial<GatewayOptions> = {},
  { providers = {}, upstream: changes = {}, place = {}, runtime: more = {} }: WorldOptions = {},
): Promise<World> {
  const upstream = await MockUpstream.open(answer);
  opened.push(upstream);
  const providerOf = (wire: string): GatewayUpstream => ({
    baseUrl: upstream.url,
    apiKey: "secret-key",
    provider: providers[wire] ?? "mock",
    ...(changes.provider === undefined && { outputLimit: "max_completion_tokens" }),
    ...changes,
  });
  const upstreams = {
    anthropic: providerOf("anthropic"),
    openai: providerOf("openai"),
    gemini: providerOf("gemini"),
  };
  const gateway = await Gateway.open({ upstreams, ...options }, place);
  opened.push(gateway);
  const runtime = await openRuntime({ store: "memory:", prices, ...more });
  opened.push(runtime);
  let programs = 0;
  return {
    upstream,
    run: async (program, budget, retention) => {
      const agent = gateway.program(
        ++programs === 1 ? "employee" : `employee-${programs}`,
        async ({ url, token }) => {
          await program({ url, token });
          return null;
        },
      );
      const run = await runtime.submit(agent, null, {
        ...(budget && { budget }),
        ...(retention && { retention }),
      });
      const { status, costUsd, error } = await run.result();
      const events: Event[] = [];
      for await (const event of run.events({ follow: false })) if ("seq" in event) events.push(event);
      if (status === "failed") throw new Error(error?.message);
      return { status, costUsd, events };
    },
  };
}

export interface Sent {
  readonly path: string;
  readonly body: string | object;
  readonly headers?: Readonly<Record<string, string>>;
}

export function post({ url, token }: Access, { path, body, headers }: Sent): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": token, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}
