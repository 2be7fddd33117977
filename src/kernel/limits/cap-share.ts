import type { CapLimits, CapName } from "./budget.ts";

/**
 * B7: a request for a part of the spending caps, named cap share. A run holds a cap share for one UTC day; if a cap
 * counts by agent, each agent of the run holds one. A run pays only from its cap share, and draws more before a
 * call that does not fit. The commit that settles a call adds its cost to the totals and returns what no other open
 * call of the run needs. All amounts are in nano-dollars.
 *
 * @advanced
 */
export interface DrawRequest {
  /** The UTC day for which the run draws. */
  readonly day: string;
  /** Name of the agent for whose call the run draws. Present if a cap counts by agent. */
  readonly agent?: string;
  /**
   * The lowest amount that the run must hold: the new call, and what the run has spent and reserved since it last
   * returned its cap share.
   */
  readonly need: number;
  /** The amount that the run would like to hold. At least `need`. */
  readonly want: number;
  readonly caps: CapLimits;
  /**
   * Whether the run waits if other runs hold the difference between `need` and `want`. Otherwise it accepts less
   * than `want`. Default: `false`.
   */
  readonly mayWait?: boolean;
}

/** What is in use of one cap. */
export interface CapUse {
  readonly name: CapName;
  readonly limit: number;
  /** The amount already in the totals of the day or the month. */
  readonly spent: number;
  /** The amount that other runs, and other agents of this run, hold. */
  readonly held: number;
}

/**
 * Returns the key of a cap share of a run, for `Commit.holds` and for stores. A space separates day and agent,
 * because a day contains none.
 */
export function capShareKey(day: string, agent?: string): string {
  return agent === undefined ? day : `${day} ${agent}`;
}

/** The outcome of a draw. If its kind is not `held`, the run holds the same amount as before. @advanced */
export type DrawOutcome =
  /**
   * `tight` is the cap because of which the run holds less than it wanted. `null` if the run holds all that it
   * wanted.
   */
  | { readonly kind: "held"; readonly amount: number; readonly tight: CapUse | null }
  /** Other runs hold the amount that this run wants, and may return it. */
  | { readonly kind: "waits"; readonly tight: CapUse }
  | { readonly kind: "exhausted"; readonly tight: CapUse };

/**
 * Decides a draw of a run that already holds `own`. Afterwards, for each cap, `spent` plus everything that is held
 * is at most `limit`. The amount that a run holds never shrinks here, because the run may have reserved it.
 *
 * @advanced
 */
export function decideDraw(
  own: number,
  { need, want, mayWait = false }: Pick<DrawRequest, "need" | "want" | "mayWait">,
  uses: readonly CapUse[],
): DrawOutcome {
  const tightest = uses.toSorted((one, other) => roomOf(one) - roomOf(other))[0];
  const room = tightest === undefined ? Number.POSITIVE_INFINITY : roomOf(tightest);
  const amount = Math.max(own, Math.min(want, room));
  const tight = tightest !== undefined && amount < want ? tightest : null;
  if (mayWait && tight !== null) {
    // What the run can have once all other runs have returned what they hold.
    const within = Math.min(want, ...uses.map(({ limit, spent }) => limit - spent));
    if (within >= need && within > amount) return { kind: "waits", tight };
  }
  if (amount < need && tight !== null) return { kind: "exhausted", tight };
  return { kind: "held", amount, tight };
}

/** What a run may hold of a cap. */
function roomOf({ limit, spent, held }: CapUse): number {
  return limit - spent - held;
}
