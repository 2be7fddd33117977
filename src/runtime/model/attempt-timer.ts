import {
  mergeModelTimeouts,
  type Clock,
  type Model,
  type ModelCallOptions,
  type ModelTimeouts,
} from "../../kernel/index.ts";
import { CallTimeout, type CallTimeouts } from "../process/call-timeouts.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/**
 * An attempt exceeded one of its `ModelTimeouts`. Not a `Fault`, because the request was sent and may be billed (B3). The
 * name makes `classifyError` treat it as `timeout`.
 */
class ModelTimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/**
 * Limits the time of one attempt of a model call, and gives the attempt a signal that aborts with the step or at the
 * timeout.
 *
 * The timer is set to the earliest timeout and checked when it fires: a chunk only notes its time.
 */
export class AttemptTimer {
  readonly #step: ActiveStep;
  readonly #model: Model;
  readonly #timeouts: ModelTimeouts;
  readonly #isStreamed: boolean;
  readonly #onTimeout: (error: Error) => void;
  readonly #clock: Clock;
  readonly #pending: CallTimeouts;
  readonly #startedAt: number;
  /** Epoch milliseconds. 0 before the first chunk. */
  #lastChunkAt = 0;
  #timeout: CallTimeout | undefined;
  #controller: AbortController | undefined;
  #unfollow: (() => void) | undefined;
  /** The attempt has ended, by a response, a failure or a timeout. */
  isOver = false;

  constructor(
    step: ActiveStep,
    model: Model,
    startedAt: number,
    isStreamed: boolean,
    onTimeout: (error: Error) => void,
  ) {
    const { worker, agent } = step.runner;
    this.#step = step;
    this.#model = model;
    this.#timeouts =
      agent.modelTimeouts === undefined
        ? worker.modelTimeouts
        : mergeModelTimeouts(worker.modelTimeouts, agent.modelTimeouts);
    this.#isStreamed = isStreamed;
    this.#onTimeout = onTimeout;
    this.#clock = worker.clock;
    this.#pending = worker.callTimeouts;
    this.#startedAt = startedAt;
    this.#arm();
  }

  /** Options of the model call. Signal and cache key are created when the model reads them: many models never do. */
  callOptions(runner: Pick<TaskRunner, "meta" | "promptCacheKey">): ModelCallOptions {
    const readSignal = (): AbortSignal => this.#signal;
    return {
      get promptCacheKey() {
        return runner.promptCacheKey;
      },
      get signal() {
        return readSignal();
      },
      meta: runner.meta,
    };
  }

  noteChunk(): void {
    const isFirst = this.#lastChunkAt === 0;
    this.#lastChunkAt = this.#clock.now();
    // The time between chunks may end earlier than the time until the first chunk would have.
    if (isFirst) this.#arm();
  }

  /** Ends the attempt: no timeout fires any more. */
  end(): void {
    this.isOver = true;
    this.#disarm();
    this.#unfollow?.();
  }

  get #signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      this.#unfollow = this.#step.cancelScope.token.onCancel((error) => controller.abort(error));
    }
    return this.#controller.signal;
  }

  /** The timeout that ends first, and when. Epoch milliseconds. */
  #next(): { readonly name: keyof ModelTimeouts; readonly at: number } {
    const total = { name: "totalMs", at: after(this.#startedAt, this.#timeouts.totalMs) } as const;
    if (!this.#isStreamed) return total;
    const chunk =
      this.#lastChunkAt === 0
        ? ({ name: "firstChunkMs", at: after(this.#startedAt, this.#timeouts.firstChunkMs) } as const)
        : ({ name: "chunkMs", at: after(this.#lastChunkAt, this.#timeouts.chunkMs) } as const);
    return chunk.at < total.at ? chunk : total;
  }

  #arm(): void {
    this.#disarm();
    const { at } = this.#next();
    if (at === Number.POSITIVE_INFINITY) return;
    this.#timeout = new CallTimeout(at, () => this.#onTimer());
    this.#pending.add(this.#timeout);
  }

  #disarm(): void {
    if (this.#timeout !== undefined) this.#pending.remove(this.#timeout);
    this.#timeout = undefined;
  }

  #onTimer(): void {
    this.#timeout = undefined;
    if (this.isOver) return;
    const { name, at } = this.#next();
    if (at > this.#clock.now()) {
      this.#arm();
      return;
    }
    const error = new ModelTimeoutError(this.#describe(name));
    this.#onTimeout(error);
    this.#controller?.abort(error);
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

function after(from: number, ms: number | null): number {
  return ms === null ? Number.POSITIVE_INFINITY : from + ms;
}
