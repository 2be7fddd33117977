import { capShareKey, usageNameOf, type AgentId, type Commit } from "../../kernel/index.ts";

/** A reservation, or the request for one. */
interface CoveredReservation {
  readonly day?: string;
  readonly label?: { readonly agentId: AgentId };
}

/** B7: the cap shares of a run, as far as its owner knows them. */
export class HeldCapShare {
  /** The amounts that the run holds, by `capShareKey`, in nano-dollars. */
  readonly #amounts = new Map<string, number>();
  /** Whether a cap counts by agent, so that each agent of the run has its own cap share. */
  isByAgent = false;
  /**
   * Whether the store may hold a cap share of the run, which a commit must return. It is a field and not computed,
   * because every commit reads it.
   */
  mayExist = false;
  #returns = 0;

  /** How often the run has returned its cap share. The answer to a draw that began before a return is out of date. */
  get returns(): number {
    return this.#returns;
  }

  /** Records that the run may draw, or that an earlier owner of the run may have drawn. */
  expect(): void {
    this.mayExist = true;
  }

  /** Returns the agent whose cap share pays a call. `undefined` if the run has one cap share for all agents. */
  agentOf({ label }: CoveredReservation): string | undefined {
    if (!this.isByAgent) return undefined;
    return label === undefined ? "" : usageNameOf(label.agentId);
  }

  /**
   * Returns the key of the cap share that pays a call. `undefined` for a reservation that does not belong to a
   * call.
   */
  keyOf(reservation: CoveredReservation): string | undefined {
    const { day } = reservation;
    return day === undefined ? undefined : capShareKey(day, this.agentOf(reservation));
  }

  amount(key: string): number {
    return this.#amounts.get(key) ?? 0;
  }

  set(key: string, amount: number): void {
    this.#amounts.set(key, amount);
  }

  /** U8: applies a commit with `usage`, which returns the cap share except for what the run still holds. */
  giveBack(holds: Commit["holds"] = {}): void {
    this.#amounts.clear();
    for (const [key, amount] of Object.entries(holds)) this.#amounts.set(key, amount);
    this.mayExist = this.#amounts.size > 0;
    this.#returns++;
  }
}
