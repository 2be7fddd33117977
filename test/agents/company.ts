import { Agent, type AgentOptions } from "../../src/entries/index.ts";
import {
  messageText,
  type HostedAgent,
  type Event,
  type JsonObject,
  type JsonValue,
  type RunHandle,
  type RunResult,
  type SubmitOptions,
} from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptStep } from "../../src/testing/index.ts";
import { setUp, type Bench } from "../runtime/runtime-setup.ts";

export interface Ended {
  readonly result: RunResult<JsonValue>;
  readonly events: readonly Event[];
  /** Names of the architecture events, in order. */
  readonly notes: readonly string[];
}

export interface Company extends Bench {
  /** Submits an agent and waits until its run has ended. */
  readonly run: (agent: HostedAgent, input: JsonValue, options?: SubmitOptions) => Promise<Ended>;
  readonly ended: (handle: RunHandle) => Promise<Ended>;
}

export async function company(options?: Parameters<typeof setUp>[0]): Promise<Company> {
  const bench = await setUp(options);
  const ended = async (handle: RunHandle): Promise<Ended> => {
    const result = await handle.result();
    const events = await bench.events(handle.runId);
    return { result, events, notes: notesOf(events).map(({ name }) => name) };
  };
  const run: Company["run"] = async (agent, input, more) =>
    ended(await bench.runtime.submit(agent, input, more));
  return { ...bench, run, ended };
}

/** Runs an agent in a new runtime and closes the runtime afterwards. */
export async function runAlone(
  agent: HostedAgent,
  input: JsonValue = "Go.",
  options?: SubmitOptions,
): Promise<Ended> {
  const { run, runtime } = await company();
  const ended = await run(agent, input, options);
  await runtime.close();
  return ended;
}

export function notesOf(
  events: readonly Event[],
): readonly { readonly name: string; readonly data: JsonObject }[] {
  return events.flatMap((event) => (event.type === "architecture_event" ? [event.data] : []));
}

export interface Worker {
  readonly agent: Agent;
  readonly model: ScriptedModel;
}

/** Builds an agent that answers from a script. */
export function worker(
  name: string,
  script: readonly ScriptStep[],
  more: Partial<AgentOptions> = {},
  options?: Parameters<typeof scriptedModel>[1],
): Worker {
  const model = scriptedModel(script, options);
  return { agent: new Agent({ name, model, ...more }), model };
}

/** Returns the text of the last message of each model call. */
export function asked({ calls }: ScriptedModel): readonly string[] {
  return calls.map(({ messages }) => {
    const last = messages.at(-1);
    return last === undefined ? "" : messageText(last);
  });
}

/** Returns the texts of all messages of each model call, instructions first. */
export function seen({ calls }: ScriptedModel): readonly (readonly string[])[] {
  return calls.map(({ messages }) => messages.map((message) => messageText(message)));
}

/** Returns the tool results in the last model call. */
export function resultsIn({ calls }: ScriptedModel): readonly string[] {
  const told = calls.at(-1)?.messages.findLast(({ role }) => role === "tool");
  return told?.role !== "tool"
    ? []
    : told.content.map(
        ({ output, isError }) =>
          `${isError ? "error: " : ""}${output.type === "text" ? output.text : JSON.stringify(output)}`,
      );
}
