import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  tool,
  type AgentOptions,
} from "../../../src/entries/index.ts";
import {
  messageText,
  type ChatMessage,
  type Event,
  type JsonValue,
  type ModelRequest,
  type RunHandle,
  type RunResult,
  type Store,
  type SubmitOptions,
  type Tool,
} from "../../../src/kernel/index.ts";
import { ScriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { findRun } from "../../runtime/find-run.ts";

/** What one run of an agent left behind. */
export interface AgentRun {
  readonly result: RunResult<JsonValue>;
  readonly events: readonly Event[];
  /** Names of the architecture events of the run, in order. */
  readonly eventNames: readonly string[];
  readonly store: Store;
  /** Messages that are stored in the session after the run. */
  readonly conversation: readonly ChatMessage[];
}

/** Options of `runAgent`. */
export interface RunAgentOptions extends SubmitOptions {
  readonly store?: Store;
  /** Called as soon as the run is submitted. */
  readonly onStart?: (run: RunHandle) => void;
}

/** Runs one invocation of an agent to its end, in a runtime of its own. */
export async function runAgent(
  options: Partial<AgentOptions>,
  input: JsonValue = "What is it?",
  { store = memoryStore({ hash: sha256 }), onStart, ...submit }: RunAgentOptions = {},
): Promise<AgentRun> {
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  try {
    const run = await runtime.submit(new Agent({ name: "thinker", ...options }), input, submit);
    onStart?.(run);
    const events: Event[] = [];
    for await (const event of run.events()) if ("seq" in event) events.push(event);
    const result = await run.result();
    const entries = await store.sessions.read(result.sessionId);
    const conversation = entries.flatMap(({ entry }) => (entry.type === "message" ? [entry.message] : []));
    return { result, events, eventNames: architectureEventNames(events), store, conversation };
  } finally {
    await runtime.close();
  }
}

function architectureEventNames(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) => (event.type === "architecture_event" ? [event.data.name] : []));
}

/** Returns the data of all architecture events with a name. */
export function architectureEventData(events: readonly Event[], name: string): readonly JsonValue[] {
  return events.flatMap((event) =>
    event.type === "architecture_event" && event.data.name === name ? [event.data.data] : [],
  );
}

/** Returns the prompt of a model call: the text of its last message. */
export function promptOf({ messages }: ModelRequest): string {
  const last = messages.at(-1);
  return last === undefined ? "" : messageText(last);
}

/** A tool that acts on the run that calls it. Pass its `onStart` to `runAgent`. */
interface RunTool {
  readonly tool: Tool;
  readonly onStart: (run: RunHandle) => void;
}

/** Creates a tool that steers the run that calls it. */
export function steeringTool(text: string, name = "look"): RunTool {
  return runTool(name, (run) => run.steer(text));
}

/** Creates a tool that cancels the run that calls it, with the reason `enough`. */
export function cancellingTool(name = "look"): RunTool {
  return runTool(name, (run) => run.cancel("enough"));
}

function runTool(name: string, act: (run: RunHandle) => Promise<unknown>): RunTool {
  let handle: RunHandle | undefined;
  const acting = tool({
    name,
    description: "Looks",
    inputSchema: { type: "object" },
    execute: async () => {
      if (handle !== undefined) await act(handle);
      return "seen";
    },
  });
  return { tool: acting, onStart: (run) => (handle = run) };
}

/** A tool that suspends its task until the signal of `resultAcrossRestart` arrives, and returns the signal as JSON. */
export const signalTool: Tool = tool({
  name: "wait",
  description: "Waits",
  inputSchema: { type: "object" },
  suspends: true,
  concurrency: "sequential",
  execute: async (_input, { ctx }) => JSON.stringify(await ctx.waitForSignal("seen")),
});

/** Runs an agent until it calls `signalTool`, resumes it in a second runtime with the signal "rain", and returns the result. */
export async function resultAcrossRestart(createAgent: () => Agent): Promise<RunResult<JsonValue>> {
  const store = memoryStore({ hash: sha256 });
  const first = await openRuntime({ store, unknownPrice: "ignore" });
  const started = await first.submit(createAgent(), "Go");
  for await (const event of started.events()) if (event.type === "task_suspend") break;
  await first.close();
  const second = await openRuntime({ store, unknownPrice: "ignore" });
  second.register(createAgent());
  const run = await findRun(second, started);
  await run.signal("seen", "rain");
  const result = await run.result();
  await second.close();
  return result;
}

/** Returns a conversation as lines of role and text. */
export function transcriptLines(conversation: readonly ChatMessage[]): readonly string[] {
  return conversation.map((message) => `${message.role}: ${messageText(message)}`);
}

/** A model that answers no call before `calls` of them are in flight at once. */
export class BarrierModel extends ScriptedModel {
  /** Maximum number of calls that were in flight at once. */
  maxInFlight = 0;
  readonly #calls: number;
  #open = 0;
  #met: () => void = () => undefined;
  readonly #meeting = new Promise<void>((resolve) => {
    this.#met = resolve;
  });

  constructor(script: readonly ScriptStep[], calls: number) {
    super(script);
    this.#calls = calls;
  }

  override async generate(
    ...args: Parameters<ScriptedModel["generate"]>
  ): ReturnType<ScriptedModel["generate"]> {
    this.maxInFlight = Math.max(this.maxInFlight, ++this.#open);
    if (this.#open === this.#calls) this.#met();
    await this.#meeting;
    try {
      return await super.generate(...args);
    } finally {
      this.#open--;
    }
  }
}
