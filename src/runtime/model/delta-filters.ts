import type { DeltaFilter, StreamedDelta } from "../../kernel/index.ts";
import { DeltaStream, type ShownAnswer } from "./delta-stream.ts";
import type { ActiveStep } from "../task/active-step.ts";

/** Shows of an answer what one filter lets through. */
class FilteredDeltas implements ShownAnswer {
  readonly #filter: DeltaFilter;
  readonly #next: ShownAnswer;

  constructor(filter: DeltaFilter, next: ShownAnswer) {
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
    for (const shown of this.#filter.push(delta)) this.#next.push(shown);
  }

  flush(): void {
    for (const shown of this.#filter.flush()) this.#next.push(shown);
    this.#next.flush();
  }
}

/** What watchers are shown of one attempt at an answer, behind these filters, first to last. */
export function shownAnswer(open: ActiveStep, attempt: number, filters: readonly DeltaFilter[]): ShownAnswer {
  const shown: ShownAnswer = new DeltaStream(open, attempt);
  return filters.reduceRight((next, filter) => new FilteredDeltas(filter, next), shown);
}
