import type { Fault } from "./fault.ts";

/** An object that uses a `Lifetime` and is notified when the lifetime ends. */
export interface Guest {
  /** Called once when the lifetime ends, after which no call is served. */
  lifeEnded(fault: Fault): void;
}

/** The time in which an object such as a runtime accepts calls. @advanced */
export interface Lifetime {
  /** The fault that every call throws after the end of the lifetime. `undefined` before the end. */
  readonly fault: Fault | undefined;
  /** Adds a guest, whose `lifeEnded` is called once when the lifetime ends, unless the guest has left before. */
  join(guest: Guest): void;
  leave(guest: Guest): void;
}
