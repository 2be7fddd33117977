import {
  canonicalJson,
  Fault,
  is,
  optionTable,
  type OptionKinds,
  type CancelSignal,
  type Delta,
  type Event,
  type JsonSchema,
  type JsonValue,
  type RunHandle,
  type RunResult,
} from "../../../kernel/index.ts";
import { AbortWatch } from "../abort-watch.ts";
import { AnswerReader, type AnswerChange } from "./answer-reader.ts";
import { TextStream } from "./text-stream.ts";
import { cancelWithCaller } from "../cancel-with-caller.ts";
import { PartialJson, type PartialValue } from "./partial-json.ts";

/** Options of `AgentStream.text`. */
export interface TextOptions {
  /**
   * Called when a new attempt of a model call restarts a message. It receives the text that stays valid, which is
   * everything before that message; the following text continues it. If absent, an empty line separates the
   * restarted text from the invalid one.
   */
  readonly onReset?: (validText: string) => void;
}

const textTable = optionTable({ onReset: is.callback() } satisfies OptionKinds<TextOptions>);

/** A run that has started. */
export interface StartedRun {
  readonly run: RunHandle;
  readonly result: () => Promise<RunResult<JsonValue>>;
}

/** What a `RunStream` is made of. */
export interface RunStreamParts<Result> {
  readonly start: () => Promise<StartedRun>;
  /** Converts the result of the run to the type that `result()` returns. */
  readonly shape: (result: RunResult<JsonValue>) => Result | Promise<Result>;
  readonly cancelOnBreak: boolean;
  /** The schema of the answer, if the caller requested structured output. */
  readonly output?: JsonSchema | undefined;
  /** Cancels the run when it aborts, even after a reader has left the loop. */
  readonly signal?: CancelSignal | undefined;
  /** Starts the run and waits for it as one call of the reading task, so that a cancel of the task cancels the run. */
  readonly insideCall: <Value>(call: () => Promise<Value>) => Promise<Value>;
  /** Whether the code that calls this function belongs to a task, which may be cancelled while it reads. */
  readonly isInsideTask: () => boolean;
}

/**
 * The events and text deltas of a run, from the first one on. The run starts when the stream is first read or its
 * result is requested. `Value` is the type of a structured answer; `never` if the answer is a text.
 */
export class RunStream<Result = RunResult<JsonValue>, Value = never> implements AsyncIterable<Event | Delta> {
  readonly #parts: RunStreamParts<Result>;
  readonly #watch: AbortWatch | undefined;
  #started: Promise<StartedRun> | undefined;

  constructor(parts: RunStreamParts<Result>) {
    this.#parts = parts;
    this.#watch = parts.signal && new AbortWatch(parts.signal);
  }

  /** Returns the handle of the run, with methods such as `cancel`, `steer` and `approve`. */
  async run(): Promise<RunHandle> {
    return (await this.#start()).run;
  }

  result(): Promise<Result> {
    return this.#parts.insideCall(async () => {
      const { run, result } = await this.#start();
      const end = cancelWithCaller(run, result);
      return this.#parts.shape(await (this.#watch === undefined ? end : this.#watch.untilEnd(end)));
    });
  }

  /**
   * Yields the answer while it is written. It is the text of the root agent, or of the agent to which the
   * conversation was handed over, such as the specialist of a router. Text of other agents of the run is left out.
   * An empty line separates the texts of two turns. An answer that no model streamed is yielded at the end.
   *
   * @example
   * ```ts
   * import { Agent } from "reeve";
   *
   * const agent = new Agent({ name: "guide", model: "anthropic/claude-sonnet-5" });
   * for await (const text of agent.stream("Which way?").text()) process.stdout.write(text);
   * ```
   */
  async *text(options: TextOptions = {}): AsyncGenerator<string, void, undefined> {
    textTable.read("text()", options);
    const answer = new TextStream(options.onReset);
    for await (const change of this.#answer()) {
      const piece = answer.add(change);
      if (piece !== "") yield piece;
    }
  }

  /**
   * Yields the structured answer while it grows. Each value contains what has arrived so far and is not checked
   * against the schema. Texts and lists grow; a number appears when it is complete. After a new attempt of a model
   * call, the value starts again. `result()` returns the complete, checked value. Requires the option `output`.
   */
  async *partialObject(
    ..._missing: [Value] extends [never] ? [missingOptionOutput: never] : []
  ): AsyncGenerator<PartialValue<Value>, void, undefined> {
    const { output: schema } = this.#parts;
    if (schema === undefined)
      throw new Fault(
        "invalid_argument",
        "partialObject() needs a schema: pass the option `output` to stream(), or read text()",
      );
    const opensWith = openingOf(schema);
    let parser = new PartialJson(opensWith);
    for await (const change of this.#answer()) {
      if (change.type === "reset" || (change.type === "text" && change.isFirst))
        parser = new PartialJson(opensWith);
      if (change.type === "output") {
        const { output } = change;
        const isKnown = parser.value !== undefined && canonicalJson(parser.value) === canonicalJson(output);
        if (typeof output === "object" && output !== null && !isKnown) yield output as PartialValue<Value>;
      } else if (change.type === "text" && parser.push(change.text))
        yield parser.value as PartialValue<Value>;
    }
  }

  /**
   * Reads the stream. C3: if a reader leaves the loop, the run continues, unless `cancelOnBreak` is set. If the
   * reader is the code of a task and the task is cancelled, the run is cancelled too.
   */
  [Symbol.asyncIterator](): AsyncIterator<Event | Delta, undefined> {
    let events: AsyncIterator<Event | Delta, undefined> | undefined;
    return {
      // Does not await the run's own iterator once it exists, so that a delta costs few promises.
      next: () => {
        if (events !== undefined) return events.next();
        return this.#begin().then((begun) => {
          events = begun;
          return begun.next();
        });
      },
      return: async () => {
        await events?.return?.();
        if (this.#parts.cancelOnBreak && this.#started !== undefined)
          await (await this.#started).run.cancel("its reader left");
        return { value: undefined, done: true };
      },
    };
  }

  async *#answer(): AsyncGenerator<AnswerChange, void, undefined> {
    const reader = new AnswerReader();
    for await (const part of this) {
      const change = reader.read(part);
      if (change !== undefined) yield change;
    }
  }

  /** Handles an error of the run's iterator. */
  readonly #cancelWithReader = async (error: unknown): Promise<never> =>
    cancelWithCaller(await this.run(), async () => {
      throw error;
    });

  #start(): Promise<StartedRun> {
    return (this.#started ??=
      this.#watch === undefined ? this.#parts.start() : this.#startWatched(this.#watch));
  }

  async #startWatched(watch: AbortWatch): Promise<StartedRun> {
    watch.assertNotAborted();
    const started = await this.#parts.start();
    watch.start(started.run);
    return started;
  }

  #begin(): Promise<AsyncIterator<Event | Delta, undefined>> {
    return this.#parts.insideCall(async () => {
      const { run } = await this.#start();
      const events = run.events();
      const watched = this.#watch === undefined ? events : watchedEvents(events, this.#watch);
      const reader = watched[Symbol.asyncIterator]() as AsyncIterator<Event | Delta, undefined>;
      if (!this.#parts.isInsideTask()) return reader;
      return {
        next: () => reader.next().catch(this.#cancelWithReader),
        return: async () => (await reader.return?.()) ?? { value: undefined, done: true },
      };
    });
  }
}

/** Returns the characters with which an answer that follows this schema may start. */
function openingOf(schema: JsonSchema): string {
  const type = typeof schema === "object" ? schema["type"] : undefined;
  if (type === "object") return "{";
  return type === "array" ? "[" : "{[";
}

/**
 * Yields the events of a run while an abort signal is watched. It stops watching after the last event, but not when
 * a reader leaves.
 */
async function* watchedEvents(
  events: AsyncIterable<Event | Delta>,
  watch: AbortWatch,
): AsyncIterable<Event | Delta> {
  for await (const event of events) {
    watch.check();
    yield event;
  }
  watch.stop();
}
