import type { randomUUID as randomUuid } from "node:crypto";
import type { Clock, IdSource, Random } from "../../kernel/index.ts";

/** Maximum delay of `setTimeout` in milliseconds. A longer delay would fire at once. */
const maxTimeoutMs = 2 ** 31 - 1;

/** The machine's clock. A timer keeps the process alive unless it is scheduled with `background: true`. */
export const systemClock: Clock = {
  now: () => Date.now(),
  schedule(atMs, callback, { background = false } = {}) {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const delayMs = Math.max(atMs - Date.now(), 0);
      timer = setTimeout(delayMs > maxTimeoutMs ? arm : callback, Math.min(delayMs, maxTimeoutMs));
      if (background) timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
};

/** `Math.random`. Not for secrets. */
export const systemRandom: Random = { next: () => Math.random() };

/** Loaded on first use: importing `node:crypto` takes a tenth of the time that importing the whole package takes. */
let randomUUID: typeof randomUuid | undefined;

/** Random UUIDs. */
export const uuidSource: IdSource = {
  next: () => (randomUUID ??= process.getBuiltinModule("node:crypto").randomUUID)(),
};
