import { signal } from "@preact/signals";

/**
 * The sentence that a screen reader speaks. Only approvals, crashes, failures and ends are spoken, at most one per
 * 5 s.
 */
export const announcement = signal("");

const pauseMs = 5_000;
let waiting: string | null = null;
let isPaused = false;

export function announce(text: string): void {
  if (isPaused) {
    waiting = text;
    return;
  }
  announcement.value = text;
  isPaused = true;
  setTimeout(() => {
    isPaused = false;
    const next = waiting;
    waiting = null;
    if (next !== null) announce(next);
  }, pauseMs);
}
