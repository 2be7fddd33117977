import type { randomUUID as randomUuid } from "node:crypto";
import type { Clock, EventLoop, IdSource, Random } from "../../kernel/index.ts";

/**
 * Longest delay of one `setTimeout`. A timer of Node counts neither the sleep of the machine nor a change of its clock, so
 * that a longer delay is compared with the clock in between.
 */
const maxTimeoutMs = 60_000;

/** The machine's clock. A timer keeps the process alive unless it is scheduled with `background: true`. */
export const systemClock: Clock = {
  now: () => Date.now(),
  schedule(atMs, callback, { background = false } = {}) {
    let timer: NodeJS.Timeout;
    const arm = (delayMs: number): void => {
      timer = setTimeout(wake, Math.min(Math.max(delayMs, 0), maxTimeoutMs));
      if (background) timer.unref();
    };
    const wake = (): void => {
      const delayMs = atMs - Date.now();
      if (delayMs > 0) arm(delayMs);
      else callback();
    };
    arm(atMs - Date.now());
    return () => clearTimeout(timer);
  },
};

/** The event loop of this process. */
export const systemEventLoop: EventLoop = {
  soon: (callback) => queueMicrotask(callback),
  // Scheduled from a microtask, the tick runs when no microtask is left.
  whenBlocked: (callback) => queueMicrotask(() => process.nextTick(callback)),
  nextTurn: (callback) => void setImmediate(callback),
  elapsed: () => performance.now(),
};

/** `Math.random`. Not for secrets. */
export const systemRandom: Random = { next: () => Math.random() };

/** Loaded on first use: importing `node:crypto` takes a tenth of the time that importing the whole package takes. */
let randomUUID: typeof randomUuid | undefined;

/** Random UUIDs. */
export const uuidSource: IdSource = {
  next: () => (randomUUID ??= process.getBuiltinModule("node:crypto").randomUUID)(),
};
