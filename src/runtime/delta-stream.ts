import type { DeltaFilter, EventLog, Lease, StreamedDelta, TaskId } from "../kernel/index.ts";
import type { OpenStep } from "./open-step.ts";

const kinds = { text_delta: "text", reasoning_delta: "reasoning", tool_input_delta: "tool_input" } as const;

/** What watchers are shown of one attempt at an answer (E2), behind whatever filters stand before them. */
export class DeltaStream {
  readonly #events: EventLog;
  readonly #lease: Lease;
  readonly #taskId: TaskId;
  readonly #messageSeq: number;
  readonly #attempt: number;
  readonly #again: boolean;
  readonly #filters: readonly DeltaFilter[];
  readonly #offsets = { text: 0, reasoning: 0, tool_input: 0 };

  constructor({ runner, openSeq, again }: OpenStep, attempt: number, filters: readonly DeltaFilter[]) {
    const { taskId, log, owner } = runner;
    this.#events = owner.store.events;
    this.#lease = log.lease;
    this.#taskId = taskId;
    this.#messageSeq = openSeq;
    this.#attempt = attempt;
    this.#again = again;
    this.#filters = filters;
  }

  /** What an earlier attempt has shown is void. */
  begin(): void {
    for (const filter of this.#filters) filter.begin?.();
    if (this.#attempt === 1 && !this.#again) return;
    this.#events.putDelta(this.#lease, {
      runId: this.#lease.runId,
      taskId: this.#taskId,
      messageSeq: this.#messageSeq,
      attempt: this.#attempt,
      type: "message_reset",
    });
  }

  push(delta: StreamedDelta): void {
    if (this.#filters.length === 0) this.#put(delta);
    else this.#show([delta], 0);
  }

  flush(): void {
    for (const [index, filter] of this.#filters.entries()) this.#show(filter.flush(), index + 1);
  }

  #show(deltas: readonly StreamedDelta[], from: number): void {
    let shown = deltas;
    for (let index = from; index < this.#filters.length; index++) {
      const filter = this.#filters[index];
      if (filter !== undefined) shown = shown.flatMap((delta) => filter.push(delta));
    }
    for (const delta of shown) this.#put(delta);
  }

  #put({ type, text }: StreamedDelta): void {
    const kind = kinds[type];
    const offset = this.#offsets[kind];
    this.#offsets[kind] = offset + text.length;
    this.#events.putDelta(this.#lease, {
      runId: this.#lease.runId,
      taskId: this.#taskId,
      messageSeq: this.#messageSeq,
      attempt: this.#attempt,
      type: "message_update",
      kind,
      offset,
      text,
    });
  }
}
