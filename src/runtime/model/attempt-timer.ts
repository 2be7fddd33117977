import {
  mergeModelTimeouts,
  type Model,
  type ModelCallOptions,
  type ModelTimeouts,
} from "../../kernel/index.ts";
import type { PendingTimeout } from "../process/call-timeouts.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/**
 * The error of an attempt that exceeded one of its `ModelTimeouts`. It is not a `Fault`, because the request was
 * sent and may be billed (B3). Because of its name, `classifyError` treats it as `timeout`.
 */
class ModelTimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/**
 * Limits the time of one attempt of a model call, and aborts the signal of the attempt at the timeout.
 *
 * The timer is set to the earliest timeout. A chunk does not reset the timer but only stores its time, which is
 * checked when the timer fires.
 */
export class AttemptTimer implements PendingTimeout {
  readonly #step: ActiveStep;
  readonly #model: Model;
  readonly #startedAt: number;
  readonly #isStreamed: boolean;
  readonly #onFailure: (error: Error) => void;
  /** Time of the last chunk, in epoch milliseconds. 0 before the first chunk. */
  #lastChunkAt = 0;
  at = Number.POSITIVE_INFINITY;
  index = -1;
  /** Whether the attempt has ended, by a response, a failure or a timeout. */
  isOver = false;

  constructor(
    step: ActiveStep,
    model: Model,
    startedAt: number,
    isStreamed: boolean,
    onFailure: (error: Error) => void,
  ) {
    this.#step = step;
    this.#model = model;
    this.#startedAt = startedAt;
    this.#isStreamed = isStreamed;
    this.#onFailure = onFailure;
    this.#arm();
  }

  callOptions(
    { meta, promptCacheKey }: Pick<TaskRunner, "meta" | "promptCacheKey">,
    ephemeralMessages: number,
  ): ModelCallOptions {
    const options = { promptCacheKey, signal: this.#step.cancelScope.attemptSignal, meta };
    return ephemeralMessages === 0 ? options : { ...options, ephemeralMessages };
  }

  noteChunk(): void {
    const isFirst = this.#lastChunkAt === 0;
    this.#lastChunkAt = this.#step.runner.worker.clock.now();
    // The time between chunks may end earlier than the time until the first chunk would have.
    if (isFirst) this.#arm();
  }

  /** Ends the attempt, so that no timeout fires any more. */
  end(): void {
    this.isOver = true;
    this.#disarm();
  }

  get #timeouts(): ModelTimeouts {
    const { worker, agent } = this.#step.runner;
    return agent.modelTimeouts === undefined
      ? worker.modelTimeouts
      : mergeModelTimeouts(worker.modelTimeouts, agent.modelTimeouts);
  }

  /** Returns the timeout of the attempt that ends first. */
  #first(): keyof ModelTimeouts {
    if (!this.#isStreamed) return "totalMs";
    const chunk = this.#lastChunkAt === 0 ? "firstChunkMs" : "chunkMs";
    return this.#endOf(chunk) < this.#endOf("totalMs") ? chunk : "totalMs";
  }

  #endOf(name: keyof ModelTimeouts): number {
    const ms = this.#timeouts[name];
    const from = name === "chunkMs" ? this.#lastChunkAt : this.#startedAt;
    return ms === null ? Number.POSITIVE_INFINITY : from + ms;
  }

  #arm(): void {
    this.#disarm();
    this.at = this.#endOf(this.#first());
    if (this.at !== Number.POSITIVE_INFINITY) this.#step.runner.worker.callTimeouts.add(this);
  }

  #disarm(): void {
    if (this.index >= 0) this.#step.runner.worker.callTimeouts.remove(this);
  }

  onTimeout(): void {
    if (this.isOver) return;
    const name = this.#first();
    if (this.#endOf(name) > this.#step.runner.worker.clock.now()) {
      this.#arm();
      return;
    }
    const error = new ModelTimeoutError(this.#describe(name));
    this.#onFailure(error);
    this.#step.cancelScope.abortAttempt(error);
  }

  #describe(name: keyof ModelTimeouts): string {
    const { provider, modelId } = this.#model;
    return `${provider}/${modelId} timed out: ${missing[name]} within ${this.#timeouts[name]} ms (modelTimeouts.${name})`;
  }
}

const missing: Readonly<Record<keyof ModelTimeouts, string>> = {
  firstChunkMs: "its answer did not begin",
  chunkMs: "no further chunk of its answer arrived",
  totalMs: "its answer was not complete",
};
