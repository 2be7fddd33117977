import { Agent, END, openRuntime, START, type NodeFunction } from "../../../../src/entries/index.ts";
import { type GraphOptions } from "../../../../src/assembly/flows.ts";
import type {
  Event,
  JsonValue,
  RunHandle,
  RunResult,
  Runtime,
  SubmitOptions,
} from "../../../../src/kernel/index.ts";
import { messageText, userMessage } from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";

/** A scripted agent with its model. `heard()` returns the last message of each request to the model. */
export interface Speaker {
  readonly agent: Agent;
  readonly model: ScriptedModel;
  readonly heard: () => readonly string[];
}

export function speaker(name: string, ...script: readonly ScriptStep[]): Speaker {
  const model = scriptedModel(script);
  const agent = new Agent({ name, model });
  const heard = () => model.calls.map(({ messages }) => messageText(messages.at(-1) ?? missing));
  return { agent, model, heard };
}

const missing = userMessage("nothing");

export interface Ran {
  readonly result: RunResult<JsonValue>;
  readonly events: readonly Event[];
  readonly handle: RunHandle;
}

export async function openBench(): Promise<Runtime> {
  return openRuntime({ unknownPrice: "ignore" });
}

export async function ran(flow: Agent, input: string, options: SubmitOptions = {}): Promise<Ran> {
  const runtime = await openBench();
  const handle = await runtime.submit(flow, input, options);
  const events = await eventsOf(handle);
  const result = await handle.result();
  await runtime.close();
  return { result, events, handle };
}

export async function eventsOf(handle: RunHandle): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const event of handle.events()) if ("seq" in event) events.push(event);
  return events;
}

/** Returns the flow events of one task as short texts, e.g. `draft completed`. Default: the root task. */
export function toldBy(events: readonly Event[], taskId = "t0"): readonly string[] {
  return events.flatMap((event) => {
    if (event.taskId !== taskId) return [];
    if (event.type === "flow_start") return ["start"];
    if (event.type === "flow_step_start") return [`${event.data.step} begins`];
    if (event.type === "flow_step_end") return [`${event.data.step} ${event.data.status}`];
    if (event.type === "flow_end") return [`end ${event.data.status}`];
    return [];
  });
}

/** Returns a barrier: each caller waits until `size` callers have arrived. */
export function meeting(size: number): () => Promise<void> {
  const all = Promise.withResolvers<void>();
  let there = 0;
  return () => {
    if (++there === size) all.resolve();
    return all.promise;
  };
}

/** Returns a node function that appends its name to its input. */
export function mark(name: string): NodeFunction {
  return (input) => `${typeof input === "string" ? input : JSON.stringify(input)}|${name}`;
}

export function marks<Name extends string>(...names: readonly Name[]): Record<Name, NodeFunction> {
  return Object.fromEntries(names.map((name) => [name, mark(name)])) as Record<Name, NodeFunction>;
}

export const diamond = {
  nodes: marks("a", "b", "c", "d"),
  edges: [
    [START, "a"],
    ["a", "b"],
    ["a", "c"],
    ["b", "d"],
    ["c", "d"],
    ["d", END],
  ],
} satisfies Omit<GraphOptions<"a" | "b" | "c" | "d">, "name">;
