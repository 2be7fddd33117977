import { afterEach } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import {
  openGateway,
  type GatewayOptions,
  type GatewayProgram,
} from "../../../src/capabilities/gateway/gateway.ts";
import type { GatewayUpstream } from "../../../src/capabilities/gateway/upstream.ts";
import type { Event, ExecutionBudget } from "../../../src/kernel/index.ts";
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
  ) => Promise<{
    readonly status: string;
    readonly costUsd: number | null;
    readonly events: readonly Event[];
  }>;
}

export async function worldOf(
  answer: MockUpstream["answer"],
  options: Partial<GatewayOptions> = {},
  providers: Readonly<Record<string, string>> = {},
): Promise<World> {
  const upstream = await MockUpstream.open(answer);
  opened.push(upstream);
  const providerOf = (wire: string): GatewayUpstream => ({
    baseUrl: upstream.url,
    apiKey: "secret-key",
    provider: providers[wire] ?? "mock",
  });
  const gateway = await openGateway({
    upstreams: {
      anthropic: providerOf("anthropic"),
      openai: providerOf("openai"),
      gemini: providerOf("gemini"),
    },
    ...options,
  });
  opened.push(gateway);
  const runtime = await openRuntime({ store: "memory:", prices });
  opened.push(runtime);
  return {
    upstream,
    run: async (program, budget) => {
      const agent = gateway.program("employee", async ({ url, token }) => {
        await program({ url, token });
        return null;
      });
      const run = await runtime.submit(agent, null, { ...(budget && { budget }) });
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
