import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect } from "vitest";
import type { Agent } from "../../src/assembly/agent.ts";
import { hiredAgent, type HiredAgentOptions } from "../../src/assembly/hired-agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { Gateway } from "../../src/capabilities/gateway/gateway.ts";
import { startedProcess } from "../../src/capabilities/hire/orphans.ts";
import type { Event, EventData, EventType, RunHandle, Runtime } from "../../src/kernel/index.ts";
import type { RuntimeOptions } from "../../src/runtime/index.ts";
import { agentFile } from "./agent-file.ts";
import { answerJson, MockUpstream } from "../capabilities/gateway/mock-upstream.ts";

/** One answer of the scripted model. The last answer is repeated for all further requests. */
export type Turn = { readonly say: string } | { readonly run: string; readonly say?: string };

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Calls a function after the test. */
export function afterTest(close: () => Promise<unknown>): void {
  closing.push(close);
}

/** A folder that is deleted after the test. */
export async function tempFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-hire-")));
  closing.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** A dollar for a thousand output tokens. */
const prices = { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) };
/** What the scripted model bills for an answer. */
const outputTokens = 100;

export interface HireWorld {
  readonly folder: string;
  readonly upstream: MockUpstream;
  readonly gateway: Gateway;
  readonly runtime: Runtime;
  /** A hired agent. Default of `command`: the demo agent. */
  readonly hire: (options?: Partial<HiredAgentOptions>) => Agent;
  /** Opens another runtime on the same store, as another process does. */
  readonly reopen: (changes?: RuntimeOptions) => Promise<Runtime>;
}

/** A gateway before a scripted model, a runtime, and a folder in which hired agents work. */
export async function hireWorld(
  turns: readonly Turn[] | MockUpstream["answer"],
  options: RuntimeOptions = {},
): Promise<HireWorld> {
  const folder = await tempFolder();
  process.env["REEVE_HOME"] = join(await tempFolder(), "reeve");
  const upstream = await MockUpstream.open(typeof turns === "function" ? turns : scripted(turns));
  closing.push(() => upstream.close());
  const upstreamOptions = { baseUrl: upstream.url, apiKey: "secret-key", provider: "mock" };
  const gateway = await Gateway.open({ upstreams: { anthropic: upstreamOptions } });
  closing.push(() => gateway.close());
  const open = async (changes: RuntimeOptions = {}): Promise<Runtime> => {
    const runtime = await openRuntime({ store: "memory:", prices, ...options, ...changes });
    closing.push(() => runtime.close());
    return runtime;
  };
  return {
    folder,
    upstream,
    gateway,
    runtime: await open(),
    hire: (changes = {}) =>
      hiredAgent({
        name: "coder",
        command: agentFile("demo-process"),
        gateway,
        folder,
        sandbox: "off",
        env: { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" },
        ...changes,
      }),
    reopen: open,
  };
}

/** Starts a model server that answers with the protocol of Anthropic. */
export function scripted(turns: readonly Turn[]): MockUpstream["answer"] {
  let request = 0;
  return ({ body }, response) => {
    const { max_tokens: limit } = JSON.parse(body.toString()) as { readonly max_tokens: number };
    const turn = turns[Math.min(request++, turns.length - 1)] ?? { say: "" };
    const content: unknown[] = turn.say === undefined ? [] : [{ type: "text", text: turn.say }];
    if ("run" in turn)
      content.push({ type: "tool_use", id: `call-${request}`, name: "shell", input: { command: turn.run } });
    answerJson(response, {
      content,
      usage: { input_tokens: 5, output_tokens: Math.min(limit, outputTokens) },
    });
  };
}

/** All events of a run. */
export async function eventsOf(run: RunHandle<unknown>): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const event of run.events({ follow: false })) if ("seq" in event) events.push(event);
  return events;
}

/** The names of the events of hired agents in a run, in their order. */
export async function hiredEvents(run: RunHandle<unknown>): Promise<readonly string[]> {
  return (await eventsOf(run)).flatMap(({ type, data }) =>
    type === "architecture_event" ? [data.name] : [],
  );
}

/** The next event of a type. `number`: 1 is the first one of the run. */
export async function eventOf<Type extends EventType>(
  run: RunHandle,
  type: Type,
  number = 1,
): Promise<EventData[Type]> {
  let count = 0;
  for await (const event of run.events())
    if ("seq" in event && event.type === type && ++count === number) return event.data as EventData[Type];
  throw new Error(`the run ended without event ${number} of the type ${type}`);
}

/** Returns the value of a function as soon as the function no longer throws. */
export async function poll<Value>(read: () => Promise<Value>): Promise<Value> {
  let value: Value | undefined;
  await expect.poll(async () => (value = await read())).toBeTruthy();
  return value as Value;
}

/** Whether a process is alive. A process that has ended but was not awaited counts as dead. */
export async function isAlive(pid: number): Promise<boolean> {
  return (await startedProcess(pid)) !== undefined;
}

/** A run that the runtime knows. */
export async function found(runtime: Runtime, runId: string): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Error(`there is no run ${runId}`);
  return run;
}
