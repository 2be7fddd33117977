import type { Fault } from "./fault.ts";

/** Someone who is served for as long as a lifetime lasts. */
export interface Guest {
  /** Nothing more comes. */
  lifeEnded(fault: Fault): void;
}

/** How long something serves others, such as a runtime. */
export interface Lifetime {
  /** By what everyone is refused once it is over. */
  readonly fault: Fault | undefined;
  /** Told of its end, once, unless it leaves before. */
  join(guest: Guest): void;
  leave(guest: Guest): void;
}
