import type { Fault } from "./fault.ts";

/** An object that uses a `Lifetime` and is notified when it ends. */
export interface Guest {
  /** Called once when the lifetime ends; nothing is served afterwards. */
  lifeEnded(fault: Fault): void;
}

/** The time during which an object such as a runtime serves its users. */
export interface Lifetime {
  /** The fault with which every call is refused after the end; `undefined` before. */
  readonly fault: Fault | undefined;
  /** Adds a guest, which is notified once when the lifetime ends, unless it has left before. */
  join(guest: Guest): void;
  leave(guest: Guest): void;
}
