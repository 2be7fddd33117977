import { hiredAgent } from "../../src/assembly/hired-agent.ts";
import { permissions } from "../../src/agents/index.ts";
import { openGateway } from "../../src/capabilities/gateway/gateway.ts";
import { formatRunId } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import type { DutyWork } from "../../src/testing/worker-duty.ts";
import { openCrashStore } from "./crash-store.ts";

export const hirePrompt = "Write one line.";
export const hireCapUsd = 6;

/** What the work needs to know. */
export interface HireWorkData {
  /** Address of the provider. */
  readonly url: string;
  /** The script of the hired agent. */
  readonly agent: string;
  /** The folder in which the agents work, each in one of its own. */
  readonly folder: string;
  /** The names of the runs. */
  readonly runs: readonly string[];
  /** Whether a cap per agent and per month is the tightest, and not the budget of each run. */
  readonly isCapped: boolean;
}

/** Hires an agent for each run, and waits for their ends. */
export const doHireWork: DutyWork = async ({ file, mortal, data }) => {
  const { url: baseUrl, agent: script, folder, runs, isCapped } = data as unknown as HireWorkData;
  const runtime = await createRuntime({
    store: mortal(await openCrashStore(file)),
    // Input is free, and a thousand output tokens cost a dollar.
    prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) },
    ...(isCapped && { caps: { perAgentPerMonthUsd: hireCapUsd } }),
    pollMs: 20,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  const gateway = await openGateway({ upstreams: { anthropic: { baseUrl, apiKey: "provider-key" } } });
  const agent = hiredAgent({
    name: "coder",
    command: [process.execPath, script],
    gateway,
    folder,
    sandbox: "off",
    permissions: permissions({ mode: "bypass" }),
    budget: { maxCostUsd: isCapped ? 2 * hireCapUsd : hireCapUsd },
    env: { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" },
  });
  const runIds = runs.map(formatRunId);
  const submitted = await Promise.all(runIds.map((runId) => runtime.submit(agent, hirePrompt, { runId })));
  await Promise.all(submitted.map((run) => run.result()));
  await runtime.close();
  await gateway.close();
  return runIds;
};
