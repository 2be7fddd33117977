import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { Gateway } from "../../src/capabilities/gateway/gateway.ts";
import type { PresetName } from "../../src/capabilities/hire/presets.ts";
import { EndlessProvider, inputUsd, outputUsd } from "../surfaces/cli/endless-provider.ts";
import { afterTest, eventsOf, hireWorld } from "./hire-world.ts";

/** A folder into which the packages of the agents are installed. */
const folder =
  process.env["REEVE_REAL_AGENTS"] === "1" ? (process.env["REEVE_REAL_AGENTS_FOLDER"] ?? "") : "";

const agents = [
  ["claude-code", "claude-agent-acp", "claude-sonnet-4-5"],
  ["codex", "codex-acp", "gpt-5.2"],
  ["opencode", "opencode", "claude-sonnet-4-5"],
] as const satisfies readonly (readonly [PresetName, string, string])[];

test.for(agents)(
  "the real %s in an endless loop is billed at most its budget, and continues after a top-up (needs REEVE_REAL_AGENTS=1)",
  async ([preset, name, model], { skip }) => {
    const program = join(folder, "node_modules/.bin", name);
    skip(folder === "" || !existsSync(program), "the program is not installed");
    const provider = await EndlessProvider.open();
    afterTest(() => provider.close());
    const upstream = { baseUrl: provider.url, apiKey: "provider-key" };
    const gateway = await Gateway.open({ upstreams: { anthropic: upstream, openai: upstream } });
    afterTest(() => gateway.close());
    const world = await hireWorld([], { prices: { find: () => ({ inputUsd, outputUsd }) } });
    const agent = world.hire({
      preset,
      model,
      gateway,
      command: preset === "opencode" ? [program, "acp"] : [program],
      permissions: permissions({ mode: "bypass" }),
      budget: { maxCostUsd: 0.5 },
    });
    const run = await world.runtime.submit(agent, "Print the numbers with the shell, and never stop.");
    const first = await run.result();
    expect([first.status, first.error?.code]).toEqual(["budget_exhausted", "budget_exhausted"]);
    expect(provider.billedUsd).toBeGreaterThan(0.1);
    expect(provider.billedUsd).toBeLessThanOrEqual(0.5);
    expect(first.costUsd).toBeGreaterThanOrEqual(provider.billedUsd - 1e-9);
    const { requests } = provider;
    await run.topUp({ maxCostUsd: 0.5 });
    const second = await run.result();
    expect(second.status).toBe("budget_exhausted");
    expect(provider.requests).toBeGreaterThan(requests);
    expect(provider.billedUsd).toBeLessThanOrEqual(1);
    expect(second.costUsd).toBeLessThanOrEqual(1);
    const told = (await eventsOf(run)).flatMap(({ type, data }) =>
      type === "architecture_event" ? [[data.name, (data.data as { sessionId?: string }).sessionId]] : [],
    );
    const sessions = told.filter(([event]) => event === "session_opened" || event === "session_loaded");
    expect(sessions.map(([event]) => event)).toEqual(["session_opened", "session_loaded"]);
    expect(new Set(sessions.map(([, id]) => id)).size).toBe(1);
    expect(told.some(([event]) => event === "prompt_resent")).toBe(false);
    process.stderr.write(
      `${preset}: ${requests} and ${provider.requests} requests, billed ${provider.billedUsd.toFixed(4)} of 1.00\n`,
    );
  },
);
