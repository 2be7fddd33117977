import type { randomUUID as randomUuid } from "node:crypto";
import type { Clock, EventLoop, IdSource, Random } from "../../kernel/index.ts";

/**
 * Maximum delay of one `setTimeout`, in milliseconds. Node's timers count neither the sleep of the machine nor
 * changes of its clock. A longer delay is therefore split, and compared with the clock after each part.
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

/**
 * The UUID function of `node:crypto`, loaded when it is first used. Importing that module takes a tenth of the time
 * that importing the whole package takes.
 */
let randomUUID: typeof randomUuid | undefined;

/** Random UUIDs. */
export const uuidSource: IdSource = {
  next: () => (randomUUID ??= process.getBuiltinModule("node:crypto").randomUUID)(),
};
