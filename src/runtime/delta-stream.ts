import type { DeltaFilter, StreamedDelta } from "../kernel/index.ts";
import type { OpenStep } from "./open-step.ts";

const kinds = { text_delta: "text", reasoning_delta: "reasoning", tool_input_delta: "tool_input" } as const;

/** What watchers are shown of one attempt at an answer (E2), behind whatever filters stand before them. */
export class DeltaStream {
  readonly #open: OpenStep;
  readonly #attempt: number;
  readonly #filters: readonly DeltaFilter[];
  readonly #offsets = { text: 0, reasoning: 0, tool_input: 0 };

  constructor(open: OpenStep, attempt: number, filters: readonly DeltaFilter[]) {
    this.#open = open;
    this.#attempt = attempt;
    this.#filters = filters;
  }

  /** What an earlier attempt has shown is void. */
  begin(): void {
    for (const filter of this.#filters) filter.begin?.();
    if (this.#attempt === 1 && !this.#open.again) return;
    const { runner, openSeq: messageSeq } = this.#open;
    const { taskId, log, owner } = runner;
    const { runId } = log.lease;
    owner.store.events.putDelta(log.lease, {
      runId,
      taskId,
      messageSeq,
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
    const { runner, openSeq: messageSeq } = this.#open;
    const { taskId, log, owner } = runner;
    const { runId } = log.lease;
    owner.store.events.putDelta(log.lease, {
      runId,
      taskId,
      messageSeq,
      attempt: this.#attempt,
      type: "message_update",
      kind,
      offset,
      text,
    });
  }
}
