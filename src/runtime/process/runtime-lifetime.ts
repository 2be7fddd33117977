import { Fault, type Guest, type Lifetime } from "../../kernel/index.ts";
import { CompactingMap } from "./compacting-map.ts";

/** Until a runtime is closed. */
export class RuntimeLifetime implements Lifetime {
  #guests = new CompactingMap<Guest, Guest>();
  #fault: Fault | undefined;

  get fault(): Fault | undefined {
    return this.#fault;
  }

  /** Throws once it is over. */
  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  join(guest: Guest): void {
    this.#guests.set(guest, guest);
  }

  leave(guest: Guest): void {
    this.#guests.delete(guest);
  }

  end(): void {
    const fault = new Fault(
      "closed",
      "the runtime was closed: a run that has not ended goes on where another is opened on its store",
    );
    this.#fault = fault;
    const guests = this.#guests;
    this.#guests = new CompactingMap();
    for (const guest of guests.values()) guest.lifeEnded(fault);
  }
}
