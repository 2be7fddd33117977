import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { Sequential } from "../../src/assembly/flows.ts";
import {
  formatAgentId,
  formatRunId,
  type HostedAgent,
  type JsonValue,
  type RunContext,
  type RunHandle,
  type Runtime,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { openCrashStore } from "./crash-store.ts";
import { errandRun, porter } from "./porter.ts";
import { siteEngine, type SiteAddress } from "./site-engine.ts";

/**
 * What the worker does. With `child`, `ask`, `flow` and `crowd` it executes a run that ends its process, in a child, in
 * an agent that is asked, in a step of a flow or in its own code, until that run is paused. With `errands` it submits a
 * few runs at a time until SIGTERM; a corrected worker only executes runs of other workers.
 */
export type LoopPlace = "child" | "ask" | "flow" | "crowd" | "errands";

export interface LoopOrders {
  readonly place: LoopPlace;
  /**
   * Whether the code no longer ends the process. The worker then resumes the paused run, and also executes a run that
   * never crashed.
   */
  readonly isCorrected: boolean;
  /** If given, the worker uses the Restate engine. */
  readonly site?: SiteAddress;
}

/**
 * Number of errand runs that a worker submits at a time. It is so low that the worker completes more runs than it
 * submits before it is killed.
 */
const batch = 2;

/** Number of runs that wait while the run of a crowd ends its process. */
const crowdSize = 50;

await runWorkerDuty(async ({ file, data, server }) => {
  const { place, isCorrected, site } = data as unknown as LoopOrders;
  const runtime = await createRuntime({
    ...(site !== undefined && { engine: siteEngine(site) }),
    store: await openCrashStore(file),
    workerId: server.caller,
    pollMs: 10,
    unknownPrice: "ignore",
    onError: (error) => process.stderr.write(`${error.code}: ${error.message}\n`),
  });
  const carrier = porter(server);
  const team = teamOf(isCorrected);
  for (const agent of [carrier, ...team.members]) runtime.register(agent);
  if (place === "errands") {
    const stayAlive = setInterval(() => undefined, 60_000);
    const stop = new AbortController();
    process.once("SIGTERM", () => stop.abort());
    const term = once(stop.signal, "abort");
    if (isCorrected) await term;
    for (let first = 0; !stop.signal.aborted; first += batch) {
      const submitted = Array.from({ length: batch }, (_, index) =>
        runtime.submit(carrier, null, { runId: errandRun(server.caller, first + index) }),
      );
      await Promise.race([term, Promise.all((await Promise.all(submitted)).map((run) => run.result()))]);
    }
    clearInterval(stayAlive);
    await runtime.close();
    return [];
  }
  if (place === "crowd") await submitCrowd(runtime, team.waiting);
  const root = team.roots[place];
  const loop = await runtime.submit(root, "go", { runId: formatRunId(`loop-${place}`) });
  const handles = [loop];
  if (isCorrected) {
    for (const run of await looping(runtime)) await run.resume();
    handles.push(await runtime.submit(root, "go", { runId: formatRunId(`calm-${place}`) }));
    for (const handle of handles) await handle.result();
  } else while ((await looping(runtime)).length === 0) await pause(20);
  await runtime.close();
  return handles.map(({ runId }) => runId);
});

/** The runs that are paused as crash loops. */
async function looping(runtime: Runtime): Promise<readonly RunHandle[]> {
  const found: RunHandle[] = [];
  const { runs } = await runtime.list({ status: "paused" });
  for (const { runId, waitsFor } of runs) {
    const run = waitsFor.includes("crash_loop") ? await runtime.find(runId) : undefined;
    if (run !== undefined) found.push(run);
  }
  return found;
}

/** Submits runs that wait for a person, a signal, a time or a reply, and resolves when all of them wait. */
async function submitCrowd(runtime: Runtime, waiting: readonly HostedAgent[]): Promise<void> {
  for (let index = 0; index < crowdSize; index++) {
    const agent = waiting[index % waiting.length] as HostedAgent;
    const run = await runtime.submit(agent, null, { runId: formatRunId(`crowd-${index}`) });
    for await (const event of run.events()) if (event.type === "task_suspend") break;
  }
}

function teamOf(isCorrected: boolean) {
  const agent = (name: string, run: (ctx: RunContext) => Promise<unknown>): HostedAgent => ({
    id: formatAgentId({ name }),
    run: (ctx) => run(ctx) as Promise<JsonValue>,
  });
  const deadly = async (ctx: RunContext): Promise<string> => {
    const before = await ctx.step("before", async () => "begun");
    const end = await ctx.step("deadly", async () => {
      if (!isCorrected) process.kill(process.pid, "SIGKILL");
      return isCorrected ? "survived" : new Promise<never>(() => undefined);
    });
    return `${before} and ${end}`;
  };
  const victim = agent("victim", deadly);
  const peaceful = agent("helper", (ctx) => ctx.step("help", async () => "helped"));
  const expert: HostedAgent = {
    id: formatAgentId({ name: "expert" }),
    run: async (ctx, { messages }) => {
      const answer = await deadly(ctx);
      for (const message of messages) await ctx.reply(message, answer);
      return answer;
    },
  };
  const silent = agent("silent", (ctx) => ctx.waitForSignal("never"));
  const question = { toolName: "ask", callId: "c", input: {}, reason: "a question" };
  const parent = agent("parent", async (ctx) => {
    const first = await ctx.step("first", async () => "first");
    const children = [await ctx.spawn(victim.id, null), await ctx.spawn(peaceful.id, null)];
    const answers: unknown[] = [];
    for (const child of children) {
      if (child.kind === "refused") throw new Error("the seat was refused");
      answers.push(await ctx.ask(child.handle, null));
    }
    return [first, answers];
  });
  const waiting = [
    agent("waits-person", (ctx) => ctx.approval(question)),
    agent("waits-signal", (ctx) => ctx.waitForSignal("go")),
    agent("waits-time", (ctx) => ctx.sleep(86_400_000)),
    agent("waits-reply", (ctx) => ctx.ask(silent.id, "hello")),
  ];
  const roots: Readonly<Record<Exclude<LoopPlace, "errands">, HostedAgent>> = {
    child: parent,
    ask: agent("asker", (ctx) => ctx.ask(expert.id, "what?")),
    flow: new Sequential({
      name: "desk",
      steps: [agent("draft", async () => "A draft."), victim, agent("editor", async () => "Edited.")],
    }),
    crowd: agent("poison", deadly),
  };
  return { roots, waiting, members: [...Object.values(roots), victim, peaceful, expert, silent, ...waiting] };
}
