import type { Fault } from "../../kernel/index.ts";

/** Whom a tree tells when there may be nothing left to do. */
export interface IdleListener {
  noteIdle(): void;
  stayAwake(): void;
  /** Every task has ended, and the log says so. */
  finish(): void;
  fail(fault: Fault): void;
}
