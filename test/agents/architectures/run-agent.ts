import { Agent, memoryStore, openRuntime, sha256, type AgentOptions } from "../../../src/index.ts";
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
} from "../../../src/kernel/index.ts";
import { ScriptedModel, type ScriptStep } from "../../../src/testing/index.ts";

export interface AgentRun {
  readonly result: RunResult<JsonValue>;
  readonly events: readonly Event[];
  /** The names of the architectures' own events. */
  readonly eventNames: readonly string[];
  readonly store: Store;
  /** What the session keeps for good. */
  readonly conversation: readonly ChatMessage[];
}

export interface RunAgentOptions extends SubmitOptions {
  readonly store?: Store;
  /** As soon as the run has begun. */
  readonly onStart?: (run: RunHandle) => void;
}

/** One invocation of an agent, to its end. */
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

/** What one of the architectures' own events said. */
export function architectureEventData(events: readonly Event[], name: string): readonly JsonValue[] {
  return events.flatMap((event) =>
    event.type === "architecture_event" && event.data.name === name ? [event.data.data] : [],
  );
}

/** What a model was asked in a call: the last message. */
export function promptOf({ messages }: ModelRequest): string {
  const last = messages.at(-1);
  return last === undefined ? "" : messageText(last);
}

export function transcriptLines(conversation: readonly ChatMessage[]): readonly string[] {
  return conversation.map((message) => `${message.role}: ${messageText(message)}`);
}

/** A model whose calls wait for each other: none is answered before `calls` of them are open at once. */
export class BarrierModel extends ScriptedModel {
  /** The most that were open at once. */
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
