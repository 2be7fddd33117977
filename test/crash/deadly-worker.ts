import { appendFileSync, readFileSync } from "node:fs";
import { tool } from "../../src/capabilities/tools/tool.ts";
import {
  formatAgentId,
  formatRunId,
  Transcript,
  userMessage,
  type Commit,
  type HostedAgent,
  type Lease,
  type RunContext,
  type Store,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { openCrashStore } from "./crash-store.ts";
import { siteEngine, type SiteAddress } from "./site-engine.ts";

/**
 * Where the agent ends its process. `steps` means in each of three steps, the first three times. `pause` means in its
 * tool, and once more before the process records that the run is paused. `nowhere` means that the run is resumed without
 * a further crash.
 */
type DeadlyPlace = "tool" | "model" | "code" | "steps" | "pause" | "nowhere";

const deadlyRun = formatRunId("deadly");

interface DeadlyOrders {
  readonly place: DeadlyPlace;
  /** If given, the worker uses the Restate engine. */
  readonly site?: SiteAddress;
}

/**
 * Hosts one agent that ends this process and one that does not. Ends when the runs of both have ended, or the first run
 * is paused.
 */
await runWorkerDuty(async ({ file, data, mortal }) => {
  const { place, site } = data as unknown as DeadlyOrders;
  /** Notes the attempt in a file, which survives the process. Returns the number of attempts so far. */
  const attempt = (name: string): number => {
    appendFileSync(`${file}.attempts`, `${name}\n`);
    const lines = readFileSync(`${file}.attempts`, "utf8").split("\n");
    return lines.filter((line) => line === name).length;
  };
  const store = mortal(await openCrashStore(file));
  const runtime = await createRuntime({
    ...(site !== undefined && { engine: siteEngine(site) }),
    store: place === "pause" ? dyingAtPause(store, attempt) : store,
    pollMs: 10,
    unknownPrice: "ignore",
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  const deadly = deadlyAgent(place, attempt);
  const peaceful: HostedAgent = {
    id: formatAgentId({ name: "peaceful" }),
    run: (ctx) => ctx.step("work", async () => "done"),
  };
  for (const agent of [deadly, peaceful]) runtime.register(agent);
  const second = await runtime.submit(peaceful, null, { runId: formatRunId("peaceful") });
  await second.result();
  const first = await runtime.submit(deadly, null, { runId: deadlyRun });
  if (place === "nowhere") await first.resume();
  for await (const event of first.events())
    if (event.type === "run_end" || (event.type === "run_pause" && place !== "nowhere")) break;
  await runtime.close();
  return [first.runId, second.runId];
});

function die(): Promise<never> {
  process.kill(process.pid, "SIGKILL");
  return new Promise(() => undefined);
}

/** A store that kills the process before a commit that pauses the deadly run. */
function dyingAtPause(store: Store, attempt: (name: string) => number): Store {
  const { journal } = store;
  const appendAndRelease = journal.appendAndRelease?.bind(journal);
  const survive = async ({ runId }: Lease, { events = [] }: Commit): Promise<void> => {
    if (runId !== deadlyRun || !events.some(({ type }) => type === "run_pause")) return;
    attempt("pause");
    await die();
  };
  return {
    ...store,
    journal: {
      ...journal,
      append: async (lease, commit, ...rest) => {
        await survive(lease, commit);
        return journal.append(lease, commit, ...rest);
      },
      ...(appendAndRelease !== undefined && {
        appendAndRelease: async (lease: Lease, commit: Commit, ...rest) => {
          await survive(lease, commit);
          return appendAndRelease(lease, commit, ...rest);
        },
      }),
    },
  };
}

function deadlyAgent(place: DeadlyPlace, attempt: (name: string) => number): HostedAgent {
  const dieIn = (name: string) => (): Promise<never> => {
    attempt(name);
    return die();
  };
  const ways: Readonly<Record<DeadlyPlace, (ctx: RunContext) => Promise<unknown>>> = {
    tool: (ctx) => ctx.tool({ callId: "call", toolName: "explode", input: {} }),
    model: (ctx) => ctx.llm({ transcript: Transcript.of([userMessage("hello")]) }),
    code: dieIn("code"),
    steps: async (ctx) => {
      for (const name of ["one", "two", "three"])
        await ctx.step(name, async () => (attempt(name) <= 3 ? die() : name));
    },
    pause: (ctx) => ways.tool(ctx),
    nowhere: async () => attempt("nowhere"),
  };
  const explode = tool({
    name: "explode",
    description: "Kills the process",
    inputSchema: { type: "object" },
    execute: dieIn("tool"),
  });
  return {
    id: formatAgentId({ name: "deadly" }),
    models: { main: Object.assign(scriptedModel([]), { generate: dieIn("model") }) },
    tools: [explode],
    run: async (ctx) => {
      await ctx.step("before", async () => "recorded");
      await ways[place](ctx);
      return "survived";
    },
  };
}
