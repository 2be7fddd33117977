import {
  Priority,
  type Account,
  type Decision,
  type Exhaustion,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type Overrun,
  type Reservation,
  type ReserveCommand,
  type Spend,
  type SpendDimension,
  type TaskId,
  type UnknownPrice,
} from "../../src/kernel/index.ts";

type Unit = keyof Spend;
type CommandOf<Type extends LedgerCommand["type"]> = Extract<LedgerCommand, { type: Type }>;

interface Purse {
  readonly taskId: TaskId;
  readonly parent: Purse | null;
  readonly warnAt: number;
  readonly caps: Record<Unit, number | null>;
  priority: Priority;
  warned: SpendDimension[];
  closed: boolean;
}

/** An amount that somebody spent. Booked on one purse; those above find it by looking down. */
interface Bill {
  readonly purse: Purse;
  readonly amount: Spend;
  readonly lost: boolean;
  readonly unpriced: boolean;
}

interface Hold {
  readonly id: string;
  readonly purse: Purse;
  readonly attempt: number;
  readonly amount: Spend;
  readonly priced: boolean;
}

interface Waiter {
  readonly request: ReserveCommand;
  readonly purse: Purse;
}

const nameOf: Record<Unit, SpendDimension> = { tokens: "tokens", nanoUsd: "costUsd", turns: "turns" };
const units = Object.keys(nameOf) as readonly Unit[];
const zero: Spend = { tokens: 0, nanoUsd: 0, turns: 0 };

/**
 * What `stepLedger` has to do, written to be plainly right and not to be fast: a flat list of bills, one of open holds
 * and a queue. Nothing is totalled until somebody asks. Takes whole nano-dollars, small token counts and a `warnAt` in
 * tenths, and no bad amounts.
 */
export class LedgerOracle {
  readonly #unknownPrice: UnknownPrice;
  readonly #bills: Bill[] = [];
  /** Of the classes with a weight, while anybody waits in one. */
  readonly #passes = new Map<Priority, number>();
  #purses: Purse[] = [];
  #holds: Hold[] = [];
  #queue: Waiter[] = [];
  #overrun: Overrun | null = null;
  #warnings: Exhaustion[] = [];
  #overran: Overrun | null = null;

  constructor(unknownPrice: UnknownPrice) {
    this.#unknownPrice = unknownPrice;
  }

  get openIds(): readonly string[] {
    return this.#holds.map(({ id }) => id);
  }

  get waitingIds(): readonly string[] {
    return this.#queue.map(({ request }) => request.id);
  }

  heldBy(id: string): Spend {
    return this.#holds.find((hold) => hold.id === id)?.amount ?? zero;
  }

  apply(command: LedgerCommand): LedgerOutcome {
    this.#warnings = [];
    this.#overran = null;
    const applied = this.#book(command);
    const decisions = applied ? this.#serve() : [];
    return { applied, decisions, warnings: this.#warnings, overrun: this.#overran };
  }

  /** All of a ledger but how it remembers the serving order. */
  view(): Omit<Ledger, "passes"> {
    return {
      unknownPrice: this.#unknownPrice,
      accounts: Object.fromEntries(this.#purses.map((purse) => [purse.taskId, this.#account(purse)])),
      open: Object.fromEntries(this.#holds.map((hold) => [hold.id, reservation(hold)])),
      waiting: this.#queue.map(({ request }) => request),
      overrun: this.#overrun,
    };
  }

  #account(purse: Purse): Account {
    const { taskId, parent, priority, caps, warnAt, warned, closed } = purse;
    const lost = this.#bills.filter((bill) => bill.lost);
    const unpriced = this.#bills.filter((bill) => bill.unpriced && isUnder(bill.purse, purse)).length;
    const children = this.#purses.filter((each) => each.parent === purse).length;
    return {
      ...{ taskId, parentId: parent?.taskId ?? null, priority, caps, warnAt, warned, closed },
      ...{ spent: sum(this.#bills, purse), reserved: sum(this.#holds, purse), lost: sum(lost, purse) },
      ...{ unpriced, children },
    };
  }

  #book(command: LedgerCommand): boolean {
    switch (command.type) {
      case "open":
        return this.#open(command);
      case "reserve":
        return this.#reserve(command);
      case "settle":
        return this.#settle(command);
      case "lose":
      case "refund":
        return this.#end(command.id, command.type === "lose");
      case "withdraw":
        return this.#withdraw(command.id);
      case "charge":
        return this.#charge(command);
      case "topUp":
        return this.#topUp(command);
      case "reprioritize":
        return this.#reprioritize(command);
      case "close":
        return this.#close(command.taskId);
      case "crash":
        for (const id of this.openIds) this.#end(id, true);
        this.#leave(this.#queue);
        return true;
    }
  }

  #open({ taskId, parentId, budget, priority, warnAt = 0.8 }: CommandOf<"open">): boolean {
    const parent = parentId === null ? null : this.#purse(parentId);
    if (parent === undefined || this.#purse(taskId) !== undefined) return false;
    const { maxTokens, maxCostUsd, maxTurns } = budget;
    const nanoUsd = maxCostUsd === null ? null : nanos(maxCostUsd);
    const caps = { tokens: maxTokens, nanoUsd, turns: maxTurns };
    this.#purses.push({ taskId, parent, warnAt, caps, priority, warned: [], closed: false });
    return true;
  }

  #reserve(request: ReserveCommand): boolean {
    const purse = this.#purse(request.taskId);
    if (purse === undefined || purse.closed) return false;
    if ([...this.openIds, ...this.waitingIds].includes(request.id)) return false;
    this.#arrive(purse.priority);
    this.#queue.push({ request, purse });
    return true;
  }

  #settle({ id, tokens, costUsd }: CommandOf<"settle">): boolean {
    const hold = this.#holds.find((each) => each.id === id);
    if (hold === undefined) return false;
    const { purse, amount, priced } = hold;
    const nanoUsd = costUsd === null ? amount.nanoUsd : nanos(costUsd);
    const billed = { tokens, nanoUsd, turns: amount.turns };
    this.#release(hold);
    this.#bill({ purse, amount: billed, lost: false, unpriced: !priced && costUsd === null });
    const above = units.find((unit) => billed[unit] > amount[unit] && (unit !== "nanoUsd" || priced));
    if (above !== undefined) this.#record(exhaustion(purse, above, amount, billed), id);
    // No bound to bill above when the price was not known: then it is the caps that tell.
    else if (!priced && costUsd !== null) this.#recordPassedCap(purse, id);
    return true;
  }

  #end(id: string, lost: boolean): boolean {
    const hold = this.#holds.find((each) => each.id === id);
    if (hold === undefined) return false;
    this.#release(hold);
    const { purse, amount, priced } = hold;
    this.#bill({ purse, amount: lost ? amount : zero, lost, unpriced: lost && !priced });
    return true;
  }

  #withdraw(id: string): boolean {
    const leaving = this.#queue.filter(({ request }) => request.id === id);
    this.#leave(leaving);
    return leaving.length > 0;
  }

  #charge({ taskId, tokens, costUsd, turns }: CommandOf<"charge">): boolean {
    const purse = this.#purse(taskId);
    if (purse === undefined) return false;
    const amount = { tokens, nanoUsd: costUsd === null ? 0 : nanos(costUsd), turns };
    this.#bill({ purse, amount, lost: false, unpriced: costUsd === null && tokens > 0 });
    this.#recordPassedCap(purse, null);
    return true;
  }

  #topUp({ taskId, add }: CommandOf<"topUp">): boolean {
    const purse = this.#purse(taskId);
    if (purse === undefined) return false;
    const { maxTokens = 0, maxCostUsd = 0, maxTurns = 0 } = add;
    const more = { tokens: maxTokens, nanoUsd: nanos(maxCostUsd), turns: maxTurns };
    for (const unit of units) {
      const cap = purse.caps[unit];
      if (cap !== null) purse.caps[unit] = cap + more[unit];
    }
    purse.warned = [];
    this.#overrun = null;
    return true;
  }

  #reprioritize({ taskId, priority }: CommandOf<"reprioritize">): boolean {
    const purse = this.#purse(taskId);
    if (purse === undefined) return false;
    if (this.#queue.some((waiter) => waiter.purse === purse)) this.#arrive(priority);
    purse.priority = priority;
    this.#forgetPasses();
    return true;
  }

  #close(taskId: TaskId): boolean {
    const purse = this.#purse(taskId);
    if (purse === undefined) return false;
    if ([...this.#holds, ...this.#queue].some((each) => each.purse === purse)) return false;
    purse.closed = true;
    for (let before = -1; before !== this.#purses.length;) {
      before = this.#purses.length;
      const isParent = (one: Purse): boolean => this.#purses.some(({ parent }) => parent === one);
      this.#purses = this.#purses.filter((each) => !each.closed || each.parent === null || isParent(each));
    }
    return true;
  }

  #purse(taskId: TaskId): Purse | undefined {
    return this.#purses.find((purse) => purse.taskId === taskId);
  }

  #release(hold: Hold): void {
    this.#holds = this.#holds.filter((each) => each !== hold);
  }

  #bill(bill: Bill): void {
    this.#bills.push(bill);
    for (const purse of chainOf(bill.purse)) {
      const spent = sum(this.#bills, purse);
      for (const unit of units) {
        const cap = purse.caps[unit];
        if (cap === null || spent[unit] === 0 || purse.warned.includes(nameOf[unit])) continue;
        if (spent[unit] * 10 < cap * Math.round(purse.warnAt * 10)) continue;
        this.#warnings.push(exhaustion(purse, unit, purse.caps, spent));
        purse.warned = [...purse.warned, nameOf[unit]];
      }
    }
  }

  #record(found: Exhaustion, reservationId: string | null): void {
    this.#overrun = { ...found, reservationId };
    this.#overran = this.#overrun;
  }

  #recordPassedCap(purse: Purse, reservationId: string | null): void {
    const [passed] = chainOf(purse).flatMap((each) => excess(each, this.#promised(each)));
    if (passed !== undefined) this.#record(passed, reservationId);
  }

  /** What is spent and held. */
  #promised(purse: Purse): Spend {
    return plus(sum(this.#bills, purse), sum(this.#holds, purse));
  }

  /** A class that nobody waits in starts level with the one served next, and not below where it was. */
  #arrive(priority: Priority): void {
    const busy = this.#queue.map(({ purse }) => purse.priority).filter((each) => each !== 0);
    if (priority === Priority.BACKGROUND || busy.includes(priority)) return;
    const level = busy.length === 0 ? 0 : Math.min(...busy.map((each) => this.#pass(each)));
    this.#passes.set(priority, Math.max(this.#pass(priority), level));
  }

  #leave(leaving: readonly Waiter[]): void {
    this.#queue = this.#queue.filter((waiter) => !leaving.includes(waiter));
    this.#forgetPasses();
  }

  #forgetPasses(): void {
    if (this.#queue.every(({ purse }) => purse.priority === Priority.BACKGROUND)) this.#passes.clear();
  }

  #pass(priority: Priority): number {
    return this.#passes.get(priority) ?? 0;
  }

  #serve(): readonly Decision[] {
    const decisions: Decision[] = [];
    for (;;) {
      const line = this.#line();
      const at = line.findIndex((_, index) => this.#decide(line, index) !== undefined);
      const waiter = line[at];
      const decision = this.#decide(line, at);
      if (waiter === undefined || decision === undefined) return decisions;
      decisions.push(decision);
      if (decision.kind === "granted") this.#grant(waiter, decision.outputTokens);
      this.#leave([waiter]);
    }
  }

  #grant({ request, purse }: Waiter, outputTokens: number): void {
    const { id, attempt } = request;
    this.#holds.push({ id, purse, attempt, amount: bound(request, outputTokens), priced: isPriced(request) });
    const { priority } = purse;
    if (priority !== Priority.BACKGROUND) this.#passes.set(priority, this.#pass(priority) + 8 / priority);
  }

  /** Whom to serve first, second and so on: the stride schedule played through with everyone who waits. */
  #line(): readonly Waiter[] {
    const left = this.#queue.filter(({ purse }) => purse.priority !== Priority.BACKGROUND);
    if (left.length === 0) return this.#queue;
    const passes = new Map(left.map(({ purse }) => [purse.priority, this.#pass(purse.priority)]));
    const passOf = ({ purse }: Waiter): number => passes.get(purse.priority) ?? 0;
    const line: Waiter[] = [];
    while (left.length > 0) {
      const ranked = left.toSorted(
        (one, other) => passOf(one) - passOf(other) || other.purse.priority - one.purse.priority,
      );
      for (const first of ranked.slice(0, 1)) {
        line.push(first);
        left.splice(left.indexOf(first), 1);
        passes.set(first.purse.priority, passOf(first) + 8 / first.purse.priority);
      }
    }
    return line;
  }

  #decide(line: readonly Waiter[], at: number): Decision | undefined {
    const waiter = line[at];
    if (waiter === undefined) return undefined;
    const { request, purse } = waiter;
    const { id } = request;
    if (this.#overrun !== null) return { id, kind: "exhausted", exhaustion: this.#overrun };
    const chain = chainOf(purse);
    const costCapped = chain.find(({ caps }) => caps.nanoUsd !== null);
    if (!isPriced(request) && this.#unknownPrice === "refuse" && costCapped !== undefined)
      return { id, kind: "unknown_price", taskId: costCapped.taskId };
    const least = bound(request, leastOutput(request));
    const [hopeless] = chain.flatMap((each) => excess(each, plus(sum(this.#bills, each), least)));
    if (hopeless !== undefined) return { id, kind: "exhausted", exhaustion: hopeless };
    const inTheWay = line.slice(0, at).flatMap((ahead) => this.#tight(ahead));
    if (this.#tight(waiter).length > 0 || chain.some((each) => inTheWay.includes(each))) return undefined;
    const outputTokens = this.#largestOutput(waiter);
    return { id, kind: "granted", outputTokens, clamped: outputTokens !== request.output.maxTokens };
  }

  /** The purses in which the waiter does not fit beside the holds. */
  #tight(waiter: Waiter): readonly Purse[] {
    const wanted = bound(waiter.request, this.#largestOutput(waiter));
    return chainOf(waiter.purse).filter(
      (each) => excess(each, plus(this.#promised(each), wanted)).length > 0,
    );
  }

  /** With all that is held given back. */
  #largestOutput({ request, purse }: Waiter): number {
    const spends = chainOf(purse).map((each) => [each, sum(this.#bills, each)] as const);
    let output = request.output.maxTokens;
    const fits = (): boolean =>
      spends.every(([each, spent]) => excess(each, plus(spent, bound(request, output))).length === 0);
    while (output > leastOutput(request) && !fits()) output -= 1;
    return output;
  }
}

function chainOf(purse: Purse): readonly Purse[] {
  return purse.parent === null ? [purse] : [purse, ...chainOf(purse.parent)];
}

function isUnder(purse: Purse, top: Purse): boolean {
  return purse === top || (purse.parent !== null && isUnder(purse.parent, top));
}

function sum(amounts: readonly { readonly purse: Purse; readonly amount: Spend }[], top: Purse): Spend {
  return amounts.filter(({ purse }) => isUnder(purse, top)).reduce((all, one) => plus(all, one.amount), zero);
}

function plus(one: Spend, other: Spend): Spend {
  return {
    tokens: one.tokens + other.tokens,
    nanoUsd: one.nanoUsd + other.nanoUsd,
    turns: one.turns + other.turns,
  };
}

function excess(purse: Purse, used: Spend): readonly Exhaustion[] {
  return units
    .filter((unit) => used[unit] > (purse.caps[unit] ?? Number.POSITIVE_INFINITY))
    .map((unit) => exhaustion(purse, unit, purse.caps, used));
}

function exhaustion(purse: Purse, unit: Unit, limits: Purse["caps"] | Spend, used: Spend): Exhaustion {
  const scale = unit === "nanoUsd" ? 1e9 : 1;
  const limit = (limits[unit] ?? Number.NaN) / scale;
  return { taskId: purse.taskId, dimension: nameOf[unit], limit, used: used[unit] / scale };
}

function isPriced({ input, output }: ReserveCommand): boolean {
  return input.costUsd !== null && output.usdPerToken !== null;
}

function bound({ input, output, turns }: ReserveCommand, outputTokens: number): Spend {
  const { costUsd } = input;
  const { usdPerToken } = output;
  const nanoUsd =
    costUsd === null || usdPerToken === null ? 0 : nanos(costUsd) + outputTokens * nanos(usdPerToken);
  return { tokens: input.tokens + outputTokens, nanoUsd, turns: turns ?? 1 };
}

function leastOutput({ output: { minTokens, maxTokens } }: ReserveCommand): number {
  return Math.min(minTokens ?? 1, maxTokens);
}

function reservation({ id, purse, attempt, amount, priced }: Hold): Reservation {
  return { id, taskId: purse.taskId, attempt, held: amount, priced };
}

function nanos(usd: number): number {
  return Math.round(usd * 1e9);
}
