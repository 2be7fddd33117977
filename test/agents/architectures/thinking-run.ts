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

export interface ThinkingRun {
  readonly result: RunResult<JsonValue>;
  readonly events: readonly Event[];
  /** The names of the architectures' own events. */
  readonly notes: readonly string[];
  readonly store: Store;
  /** What the session keeps for good. */
  readonly conversation: readonly ChatMessage[];
}

export interface ThinkingOptions extends SubmitOptions {
  readonly store?: Store;
  /** As soon as the run has begun. */
  readonly onStart?: (run: RunHandle) => void;
}

/** One invocation of an agent, to its end. */
export async function think(
  options: Partial<AgentOptions>,
  input: JsonValue = "What is it?",
  { store = memoryStore({ hash: sha256 }), onStart, ...submit }: ThinkingOptions = {},
): Promise<ThinkingRun> {
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  try {
    const run = await runtime.submit(new Agent({ name: "thinker", ...options }), input, submit);
    onStart?.(run);
    const events: Event[] = [];
    for await (const event of run.events()) if ("seq" in event) events.push(event);
    const result = await run.result();
    const entries = await store.sessions.read(result.sessionId);
    const conversation = entries.flatMap(({ entry }) => (entry.type === "message" ? [entry.message] : []));
    return { result, events, notes: notesIn(events), store, conversation };
  } finally {
    await runtime.close();
  }
}

function notesIn(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) => (event.type === "architecture_event" ? [event.data.name] : []));
}

/** What one of the architectures' own events said. */
export function noteData(events: readonly Event[], name: string): readonly JsonValue[] {
  return events.flatMap((event) =>
    event.type === "architecture_event" && event.data.name === name ? [event.data.data] : [],
  );
}

/** What a model was asked in a call: the last message. */
export function askedIn({ messages }: ModelRequest): string {
  const last = messages.at(-1);
  return last === undefined ? "" : messageText(last);
}

export function said(conversation: readonly ChatMessage[]): readonly string[] {
  return conversation.map((message) => `${message.role}: ${messageText(message)}`);
}

/** A model whose calls wait for each other: none is answered before `calls` of them are open at once. */
export class MeetingModel extends ScriptedModel {
  /** The most that were open at once. */
  most = 0;
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
    this.most = Math.max(this.most, ++this.#open);
    if (this.#open === this.#calls) this.#met();
    await this.#meeting;
    try {
      return await super.generate(...args);
    } finally {
      this.#open--;
    }
  }
}
