import type { EventDraft, StepAddress } from "../kernel/index.ts";
import { never } from "./never.ts";
import type { OpenCall, Strand } from "./strand.ts";
import type { TaskRunner } from "./task-runner.ts";

export interface OpenStepOptions {
  readonly runner: TaskRunner;
  readonly strand: Strand;
  readonly address: StepAddress;
  readonly openSeq: number;
  readonly again: boolean;
}

const nothing: readonly EventDraft[] = [];

/** A step at work: what it tells commits with its record, and its call settles with it. */
export class OpenStep {
  readonly runner: TaskRunner;
  readonly strand: Strand;
  readonly address: StepAddress;
  /** The seq of the event that told of its beginning; -1 without one. */
  readonly openSeq: number;
  /** An earlier owner had begun it. */
  readonly again: boolean;
  /** Of a tool's: it is not executed, for a rule or a person said no. */
  denied = false;
  /** Of a tool's: its body was begun. */
  performed = false;
  #told: EventDraft[] | undefined;
  #call: OpenCall | undefined;

  constructor({ runner, strand, address, openSeq, again }: OpenStepOptions) {
    this.runner = runner;
    this.strand = strand;
    this.address = address;
    this.openSeq = openSeq;
    this.again = again;
  }

  get told(): readonly EventDraft[] {
    return this.#told ?? nothing;
  }

  tell(draft: EventDraft): void {
    (this.#told ??= []).push(draft);
  }

  /** Takes back what was told after the first `count`, for another record to tell. */
  takeTold(count: number): readonly EventDraft[] {
    return this.#told?.splice(count) ?? nothing;
  }

  /** C2, H7, J3: nothing is started once stopped, while without a seat, or before what came before it is durable. */
  async begin(): Promise<OpenCall> {
    const { runner, strand } = this;
    const wait = runner.ready(strand);
    if (wait !== undefined) await wait;
    const call = this.start();
    try {
      await runner.log.flush();
    } catch (error) {
      if (!runner.dropped) throw error;
    }
    if (runner.dropped) return never();
    runner.check(strand);
    return call;
  }

  /** Only for whoever is `ready`, and flushes by itself. */
  start(): OpenCall {
    this.#call = this.runner.beginCall();
    return this.#call;
  }

  end(): void {
    if (this.#call !== undefined) this.runner.endCall(this.#call);
    this.#call = undefined;
  }
}
