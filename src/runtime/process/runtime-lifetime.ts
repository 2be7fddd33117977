import { Fault, type Guest, type Lifetime } from "../../kernel/index.ts";

/** The lifetime of a runtime, which `close()` ends. Readers and handles join it to be notified of the end. */
export class RuntimeLifetime implements Lifetime {
  #guests = new Set<Guest>();
  #fault: Fault | undefined;

  get fault(): Fault | undefined {
    return this.#fault;
  }

  /** Whether a caller waits for an event or the result of a run. */
  get isAwaited(): boolean {
    return this.#guests.size > 0;
  }

  /** Throws the fault with which the lifetime ended, if it has ended. Most often the fault is `closed`. */
  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  join(guest: Guest): void {
    this.#guests.add(guest);
  }

  leave(guest: Guest): void {
    this.#guests.delete(guest);
  }

  /** Ends the lifetime. `fault` is the fault that callers get. Default: `closed`. */
  end(fault = closed()): void {
    this.#fault = fault;
    const guests = this.#guests;
    this.#guests = new Set();
    for (const guest of guests) guest.lifeEnded(fault);
  }
}

function closed(): Fault {
  return new Fault(
    "closed",
    "the runtime was closed: open another runtime on its store to resume runs that have not ended",
  );
}
