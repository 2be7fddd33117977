import type { EventLog, Lease, StreamedDelta, TaskId } from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";

const kinds = { text_delta: "text", reasoning_delta: "reasoning", tool_input_delta: "tool_input" } as const;

/** Where the pieces of one attempt at an answer go (E2). */
export interface ShownAnswer {
  /** All of its text that was let through. */
  readonly text: string;
  /** What an earlier attempt has shown is void. */
  begin(): void;
  push(delta: StreamedDelta): void;
  /** No more will come. */
  flush(): void;
}

/** What watchers are shown of it. */
export class DeltaStream implements ShownAnswer {
  readonly #events: EventLog;
  readonly #lease: Lease;
  readonly #taskId: TaskId;
  readonly #messageSeq: number;
  readonly #attempt: number;
  readonly #isRepeated: boolean;
  readonly #offsets = { text: 0, reasoning: 0, tool_input: 0 };
  text = "";

  constructor({ runner, startSeq, isRepeated }: ActiveStep, attempt: number) {
    const { taskId, log, worker } = runner;
    this.#events = worker.store.events;
    this.#lease = log.lease;
    this.#taskId = taskId;
    this.#messageSeq = startSeq;
    this.#attempt = attempt;
    this.#isRepeated = isRepeated;
  }

  begin(): void {
    if (this.#attempt === 1 && !this.#isRepeated) return;
    this.#events.putDelta(this.#lease, {
      runId: this.#lease.runId,
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

  flush(): void {}
}
