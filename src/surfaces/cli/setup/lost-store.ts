import type { Fault } from "../../../kernel/index.ts";

/** Ends a command that executes runs when its runtime reports that the store is lost. */
export class LostStore {
  readonly #lost = Promise.withResolvers<never>();

  constructor() {
    // The command may have ended already.
    this.#lost.promise.catch(() => undefined);
  }

  /** Receives the errors of the runtime. */
  note(fault: Fault): void {
    if (fault.code === "store_lost") this.#lost.reject(fault);
  }

  /** Resolves together with `end`, which ends the command. Rejects with `store_lost` if the store is lost before. */
  before(end: Promise<void>): Promise<void> {
    return Promise.race([end, this.#lost.promise]);
  }
}
