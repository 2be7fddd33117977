import { Agent } from "../../../../src/entries/index.ts";
import {
  formatSessionId,
  messageText,
  type Event,
  type ModelCallOptions,
  type ModelRequest,
  type RunHandle,
  type Runtime,
} from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel } from "../../../../src/testing/index.ts";

export const sessionId = formatSessionId("talk");
export const textIn = ({ messages }: ModelRequest): string =>
  messages.map((message) => messageText(message)).join("\n");
export const isSummary = (request: ModelRequest): boolean => textIn(request).includes("<conversation>");
export const long = "word ".repeat(400);

export function chatModel(summary: (request: ModelRequest) => unknown = () => "In short."): ScriptedModel {
  const answer = (request: ModelRequest) => (isSummary(request) ? summary(request) : `answer ${long}`);
  const model = scriptedModel(Array.from({ length: 60 }, () => answer) as never);
  return Object.assign(model, { contextWindow: 2_000 });
}

export function chat(model: ScriptedModel, more: object = {}): Agent {
  return new Agent({
    name: "chat",
    model,
    compaction: { reserveTokens: 1_000, keepRecentTokens: 600 },
    ...more,
  });
}

export async function eventsOf(runtime: Runtime, runId: string): Promise<Event[]> {
  const run = await runtime.find(runId);
  const events: Event[] = [];
  for await (const event of run?.events() ?? []) if ("seq" in event) events.push(event);
  return events;
}

export const closing = ["agent_end", "save_point", "settled", "compaction_scheduled", "run_carry_over"];
export const typesIn = (events: readonly Event[], types: readonly string[]): string[] =>
  events.map(({ type }) => type).filter((type) => types.includes(type));

interface Hold {
  /** Resolves when a call waits. */
  readonly reached: Promise<void>;
  readonly release: () => void;
}

/** Makes the calls of a model wait that the function `holds` selects. */
export function hold(model: ScriptedModel, holds: (request: ModelRequest) => boolean): Hold {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const generate = model.generate.bind(model);
  Object.assign(model, {
    generate: async (request: ModelRequest, options: ModelCallOptions = {}) => {
      if (holds(request)) {
        reached.resolve();
        await Promise.race([released.promise, aborted(options.signal)]);
      }
      return generate(request, options);
    },
  });
  return { reached: reached.promise, release: () => released.resolve() };
}

function aborted(signal: ModelCallOptions["signal"]): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(new Error("aborted")));
  });
}

interface Options {
  readonly runtime: Runtime;
  readonly sessionId: string;
}

/** Fills the session until a compaction is due, and returns the run of the compaction. */
export async function fill(agent: Agent, options: Options): Promise<{ readonly compaction: RunHandle }> {
  await agent.invoke("one", options);
  return follow(options.runtime, await agent.invoke(`two ${long}`, options));
}

export async function follow(
  runtime: Runtime,
  { runId }: { readonly runId: string },
): Promise<{ readonly compaction: RunHandle }> {
  const events = await eventsOf(runtime, runId);
  const scheduled = events.find((event) => event.type === "compaction_scheduled");
  const compaction = await runtime.find(scheduled?.data.runId ?? "");
  if (compaction === undefined) throw new Error("no compaction follows");
  return { compaction };
}

export async function hasCompaction(runtime: Runtime, session: string = sessionId): Promise<boolean> {
  return (await runtime.sessions.path(session)).some(({ type }) => type === "compaction");
}
