import type {
  JsonValue,
  Model,
  ModelCallOptions,
  ModelRequest,
  ModelStreamPart,
} from "../../kernel/index.ts";
import { ScriptedModel, type ScriptedReply } from "../scripted-model.ts";
import type { FaultPlan } from "./fault-plan.ts";
import type { Scheduler, SimulatedProcess } from "./scheduler.ts";

/** A call of an external service, as the service received it. */
export interface OutsideCall {
  readonly name: string;
  /** Identifies calls with the same intention, such as an idempotency key. `null` if the call has no key. */
  readonly key: string | null;
  readonly body: JsonValue;
  /** Name of the process that made the call. */
  readonly process: string;
  /** Milliseconds since the start at which the call took effect. */
  readonly atMs: number;
}

/** What a call of the outside carries. */
export interface OutsideCallOptions {
  readonly key?: string;
  readonly body?: JsonValue;
}

export interface OutsideOptions {
  readonly scheduler: Scheduler;
  readonly faults: FaultPlan;
  /** Milliseconds since the start. */
  readonly elapsed: () => number;
  /** Called with each call that takes effect. */
  readonly onCall: (call: OutsideCall) => void;
  /** Called when the process that made a call has its answer. */
  readonly onAnswer: (call: OutsideCall) => void;
}

/** The external services of the simulated fleet. They survive the death of every process. */
export class Outside {
  /** Every call that took effect, in order. */
  readonly calls: OutsideCall[] = [];
  readonly #scheduler: Scheduler;
  readonly #faults: FaultPlan;
  readonly #elapsed: () => number;
  readonly #onCall: (call: OutsideCall) => void;
  readonly #onAnswer: (call: OutsideCall) => void;

  constructor({ scheduler, faults, elapsed, onCall, onAnswer }: OutsideOptions) {
    this.#scheduler = scheduler;
    this.#faults = faults;
    this.#elapsed = elapsed;
    this.#onCall = onCall;
    this.#onAnswer = onAnswer;
  }

  /**
   * Calls an external service. `effect` is the action of the service, which happens in one step. A fault may lose
   * the call before its effect, or the answer after its effect. In both cases the caller gets the same error.
   */
  call<Answer>(
    process: SimulatedProcess,
    name: string,
    effect: () => Answer,
    { key, body = null }: OutsideCallOptions = {},
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // A dead process makes no call, and none of its code continues.
      if (!process.mayCall(`call ${name}`)) return;
      const what = `${name} of ${process.name}`;
      const isLost = this.#faults.happens("callLost", what) !== undefined;
      const isUnanswered = !isLost && this.#faults.happens("callUnanswered", what) !== undefined;
      const late = this.#faults.happens("callLate", what);
      const { random } = this.#scheduler;
      const back = random.between(0.2, 5) + (late === undefined ? 0 : late.between(100, 60_000));
      const noAnswer = (): void => reject(new Error(`no answer of ${name}`));
      this.#scheduler.after(random.between(0.2, 5), () => {
        if (isLost) {
          process.after(back, noAnswer);
          return;
        }
        const made = { name, key: key ?? null, body, process: process.name, atMs: this.#elapsed() };
        this.calls.push(made);
        this.#onCall(made);
        try {
          const answer = effect();
          const answered = (): void => {
            this.#onAnswer(made);
            resolve(answer);
          };
          process.after(back, isUnanswered ? noAnswer : answered);
        } catch (error) {
          process.after(back, () => reject(error));
        }
      });
    });
  }

  /** Creates a model whose answers come from these external services. `reply` returns the answer to a request. */
  model(
    process: SimulatedProcess,
    reply: (request: ModelRequest) => string | ScriptedReply,
    name = "model",
  ): Model {
    const once = async (request: ModelRequest): Promise<ScriptedModel> => {
      const body = request.messages as unknown as JsonValue;
      const said = await this.call(process, name, () => reply(request), { body });
      return new ScriptedModel([said], { provider: "simulated", modelId: name });
    };
    const faults = this.#faults;
    const pause = (): Promise<void> =>
      new Promise((resolve) => void process.after(this.#scheduler.random.between(0.1, 2), resolve));
    return {
      provider: "simulated",
      modelId: name,
      generate: async (request: ModelRequest, options?: ModelCallOptions) =>
        (await once(request)).generate(request, options),
      async *stream(request: ModelRequest, options?: ModelCallOptions): AsyncIterable<ModelStreamPart> {
        const model = await once(request);
        const isHalf = faults.happens("halfStream", `${name} of ${process.name}`) !== undefined;
        for await (const part of model.stream(request, options)) {
          await pause();
          if (isHalf && part.type === "finish") throw new Error(`the stream of ${name} was cut`);
          yield part;
        }
      },
    };
  }
}
