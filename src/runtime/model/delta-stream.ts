import type { DeltaFilter, StreamedDelta, TaskId } from "../../kernel/index.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { ActiveStep } from "../task/active-step.ts";

const kinds = { text_delta: "text", reasoning_delta: "reasoning", tool_input_delta: "tool_input" } as const;

/** E2: receives the deltas of one attempt of a model call. */
export interface DeltaSink {
  /** The text of all deltas that have passed the filters. */
  readonly text: string;
  /** Makes the deltas of an earlier attempt invalid. Called once, before the first delta. */
  begin(): void;
  push(delta: StreamedDelta): void;
  /** Emits the text that filters hold back. Called once, after the last delta. */
  flush(): void;
}

/** Returns a sink that publishes the deltas of an attempt that pass `filters`, which are applied in order. */
export function openDeltaSink(step: ActiveStep, attempt: number, filters: readonly DeltaFilter[]): DeltaSink {
  const published: DeltaSink = new DeltaStream(step, attempt);
  return filters.reduceRight((next, filter) => new FilteredDeltas(filter, next), published);
}

/** Writes deltas to the event log, where readers of the run receive them. */
class DeltaStream implements DeltaSink {
  readonly #log: RunLog;
  readonly #taskId: TaskId;
  readonly #messageSeq: number;
  readonly #attempt: number;
  /** Whether an earlier owner of the run has started this step and may have published deltas. */
  readonly #isRepeated: boolean;
  readonly #offsets = { text: 0, reasoning: 0, tool_input: 0 };
  text = "";

  constructor({ runner, startSeq, isRepeated }: ActiveStep, attempt: number) {
    const { taskId, log } = runner;
    this.#log = log;
    this.#taskId = taskId;
    this.#messageSeq = startSeq;
    this.#attempt = attempt;
    this.#isRepeated = isRepeated;
  }

  begin(): void {
    if (this.#attempt === 1 && !this.#isRepeated) return;
    this.#log.putDelta({
      runId: this.#log.lease.runId,
      taskId: this.#taskId,
      messageSeq: this.#messageSeq,
      attempt: this.#attempt,
      type: "message_reset",
    });
  }

  push({ type, text }: StreamedDelta): void {
    const kind = kinds[type];
    const offset = this.#offsets[kind];
    this.#offsets[kind] = offset + text.length;
    if (kind === "text") this.text += text;
    this.#log.putDelta({
      runId: this.#log.lease.runId,
      taskId: this.#taskId,
      messageSeq: this.#messageSeq,
      attempt: this.#attempt,
      type: "message_update",
      kind,
      offset,
      text,
    });
  }

  flush(): void {}
}

/** Passes deltas through one filter to the next sink. */
class FilteredDeltas implements DeltaSink {
  readonly #filter: DeltaFilter;
  readonly #next: DeltaSink;

  constructor(filter: DeltaFilter, next: DeltaSink) {
    this.#filter = filter;
    this.#next = next;
  }

  get text(): string {
    return this.#next.text;
  }

  begin(): void {
    this.#filter.begin?.();
    this.#next.begin();
  }

  push(delta: StreamedDelta): void {
    for (const passed of this.#filter.push(delta)) this.#next.push(passed);
  }

  flush(): void {
    for (const passed of this.#filter.flush()) this.#next.push(passed);
    this.#next.flush();
  }
}
