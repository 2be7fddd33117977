import type { randomUUID as randomUuid } from "node:crypto";
import type { Clock, IdSource, Random } from "../../kernel/index.ts";

/** `setTimeout` takes at most this many milliseconds; further off, it fires at once. */
const longestTimer = 2 ** 31 - 1;

/** The machine's clock. A timer keeps the process alive unless told: whoever waits for a retry or a sleep is not cut off. */
export const systemClock: Clock = {
  now: () => Date.now(),
  schedule(atMs, callback, { background = false } = {}) {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const leftMs = atMs - Date.now();
      timer = setTimeout(leftMs > longestTimer ? arm : callback, Math.min(Math.max(leftMs, 0), longestTimer));
      if (background) timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
};

export const systemRandom: Random = { next: () => Math.random() };

/** Loaded on first use: importing `node:crypto` takes a tenth of the time that the import of the whole package takes. */
let randomUUID: typeof randomUuid | undefined;

/** Random UUIDs. */
export const uuidSource: IdSource = {
  next: () => (randomUUID ??= process.getBuiltinModule("node:crypto").randomUUID)(),
};
