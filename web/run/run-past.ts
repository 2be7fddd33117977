import type { Event } from "../../src/kernel/index.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import { RunFold } from "../../src/surfaces/view/run-fold.ts";
import { StepLog } from "../../src/surfaces/view/step-log.ts";
import { isMessage } from "./message-events.ts";
import { RunTrace } from "./run-trace.ts";

/** What only all events of a run from the first one on can tell: its steps, and what the dock draws over time. */
export class RunPast {
  readonly trace = new RunTrace();
  readonly steps = new StepLog((step) => this.trace.addEnded(step));
  /** Counts the seats until the past has reached the newest event. */
  #fold: RunFold | null = new RunFold();
  #seq = -1;
  /** Numbers of the events with messages that agents and people sent to each other. */
  readonly #messages: number[] = [];

  /** Number of messages up to an event. */
  messagesAt(seq: number): number {
    const later = this.#messages.findLastIndex((each) => each <= seq);
    return later + 1;
  }

  /** Number of the last event that was added, or -1. */
  get seq(): number {
    return this.#seq;
  }

  /** Adds the next event. Ignores any other: the caller adds those between first. `seats` is the number after it. */
  add(event: Event, seats?: number): void {
    if (event.seq !== this.#seq + 1) return;
    this.#seq = event.seq;
    if (isMessage(event)) this.#messages.push(event.seq);
    if (seats === undefined) this.#fold?.add(event);
    else this.#fold = null;
    this.trace.add(event, seats ?? this.#fold?.seats ?? 0);
    this.steps.add(event);
  }
}

/**
 * Whether the page has read all events up to the one that is shown. Steps, messages and curves need all of them; until
 * then they are incomplete, and the views say so.
 */
export function isPastRead(
  { past }: { readonly past: Pick<RunPast, "seq"> },
  { seq }: Pick<RunView, "seq">,
): boolean {
  return past.seq >= seq;
}
