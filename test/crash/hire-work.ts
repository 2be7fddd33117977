import { once } from "node:events";
import { watch } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Agent } from "../../src/assembly/agent.ts";
import { hiredAgent } from "../../src/assembly/hired-agent.ts";
import { permissions } from "../../src/agents/index.ts";
import { openGateway } from "../../src/capabilities/gateway/gateway.ts";
import {
  formatAgentId,
  formatRunId,
  Priority,
  type HostedAgent,
  type SpawnOutcome,
  type TaskHandle,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import type { DutyWork } from "../../src/testing/worker-duty.ts";
import { openCrashStore } from "./crash-store.ts";

export const hirePrompt = "Write one line.";
export const hireCapUsd = 6;

/** The input of the work. */
export interface HireWorkData {
  /** Address of the provider. */
  readonly url: string;
  /** The script of the hired agent. */
  readonly agent: string;
  /** The folder in which the agents work. Each agent has a folder of its own in it. */
  readonly folder: string;
  /** The names of the runs. */
  readonly runs: readonly string[];
  /** Whether a cap per agent and per month is the tightest, and not the budget of each run. */
  readonly isCapped: boolean;
  /** Whether each run has a second hired agent, which takes the seat of the first one after its command. */
  readonly isPreempted?: boolean;
}

/** Hires an agent for each run, and waits for their ends. */
export const doHireWork: DutyWork = async ({ file, mortal, data }) => {
  const {
    url: baseUrl,
    agent: script,
    folder,
    runs,
    isCapped,
    isPreempted = false,
  } = data as unknown as HireWorkData;
  const runtime = await createRuntime({
    store: mortal(await openCrashStore(file)),
    // Input is free, and a thousand output tokens cost a dollar.
    prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) },
    ...(isCapped && { caps: { perAgentPerMonthUsd: hireCapUsd } }),
    pollMs: 20,
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  const gateway = await openGateway({ upstreams: { anthropic: { baseUrl, apiKey: "provider-key" } } });
  const hire = (name: string, place: string): Agent =>
    hiredAgent({
      name,
      command: [process.execPath, script],
      gateway,
      folder: place,
      sandbox: "off",
      permissions: permissions({ mode: "bypass" }),
      budget: { maxCostUsd: isCapped ? 2 * hireCapUsd : hireCapUsd },
      env: { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" },
    });
  const coder = hire("coder", folder);
  const runIds = runs.map(formatRunId);
  const submitted = await Promise.all(
    runIds.map((runId, index) =>
      isPreempted
        ? runtime.submit(preemptingLead(hire, join(folder, runs[index] ?? "")), null, {
            runId,
            spawnBudget: { maxAgents: 2, allowPreempt: true },
            budget: { maxCostUsd: hireCapUsd },
          })
        : runtime.submit(coder, hirePrompt, { runId }),
    ),
  );
  await Promise.all(submitted.map((run) => run.result()));
  await runtime.close();
  await gateway.close();
  return runIds;
};

/** The folders of the two hired agents of a run with preemption, below the folder of the run. */
export const preemptionFolders = ["low", "high"] as const;

/** Hires an agent. After the command of this agent, hires one of a higher priority, which takes its seat. */
function preemptingLead(hire: (name: string, place: string) => Agent, place: string): HostedAgent {
  const [low, high] = preemptionFolders.map((name) => hire(`${name}-${basename(place)}`, join(place, name)));
  if (low === undefined || high === undefined) throw new Error("there are two agents");
  return {
    id: formatAgentId({ name: `lead-${basename(place)}` }),
    subAgents: [low, high],
    run: async (ctx) => {
      const victim = handleOf(await ctx.spawn(low.id, hirePrompt, { priority: Priority.LOW }));
      await ctx.step("begun", async () => {
        await untilWritten(join(place, "low"));
        return null;
      });
      const urgent = handleOf(await ctx.spawn(high.id, hirePrompt, { priority: Priority.HIGH }));
      return (await ctx.joinAll([victim, urgent])).map(({ status }) => status);
    },
  };
}

function handleOf(spawned: SpawnOutcome): TaskHandle {
  if (spawned.kind === "refused") throw new Error(`the seat was refused: ${spawned.reason}`);
  return spawned.handle;
}

/** Resolves when a folder has a file. */
async function untilWritten(folder: string): Promise<void> {
  const watcher = watch(folder);
  try {
    const changed = once(watcher, "change");
    if ((await readdir(folder)).length === 0) await changed;
  } finally {
    watcher.close();
  }
}
