import {
  agentNameOf,
  latencyBucket,
  noUsageDelta,
  Priority,
  type CostLabel,
  type CostLine,
  type Decision,
  type Exhaustion,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type Overrun,
  type ReportedSpend,
  type Reservation,
  type ReserveCommand,
  type Spend,
  type SpendDimension,
  type TaskId,
  type UnknownPrice,
  type UsageDelta,
} from "../../../src/kernel/index.ts";

type Unit = keyof Spend;
type CommandOf<Type extends LedgerCommand["type"]> = Extract<LedgerCommand, { type: Type }>;

interface Account {
  readonly taskId: TaskId;
  readonly parent: Account | null;
  readonly warnAt: number;
  readonly caps: Record<Unit, number | null>;
  priority: Priority;
  warned: SpendDimension[];
  closed: boolean;
}

/**
 * An amount that was spent. It belongs to one task only; the totals of the tasks above are computed from the tasks
 * below.
 */
interface Bill {
  readonly account: Account;
  readonly amount: Spend;
  readonly lost: boolean;
  readonly unpriced: boolean;
  readonly label?: CostLabel | undefined;
  readonly day?: string | undefined;
  readonly hour?: number | undefined;
  readonly durationMs?: number | undefined;
  readonly failed?: boolean;
  /** Whether the bill is zero, for a failed call that cost nothing. Such a bill counts only in the number of calls. */
  readonly isFree?: boolean;
  readonly reported?: ReportedSpend;
  /** Id of the reservation of an unreported call, until another unreported call has it. */
  readonly lostId?: string;
  readonly priced?: boolean;
}

const nameOf: Record<Unit, SpendDimension> = { tokens: "tokens", nanoUsd: "costUsd", turns: "turns" };
const units = Object.keys(nameOf) as readonly Unit[];
const { BACKGROUND, CRITICAL } = Priority;

/**
 * A second, simple and slow implementation of `stepLedger`, with which tests compare the first. It has a list of bills,
 * a list of open reservations and a queue, and computes totals on demand. Amounts must be valid: whole nano-dollars,
 * small token counts and a `warnAt` in tenths.
 */
export class LedgerOracle {
  readonly #unknownPrice: UnknownPrice;
  #bills: Bill[] = [];
  /** Stride scheduling position of each weighted priority class in which a call waits. */
  readonly #passes = new Map<Priority, number>();
  #accounts: Account[] = [];
  #holds: Reservation[] = [];
  #queue: ReserveCommand[] = [];
  #overrun: Overrun | null = null;
  #said: { warnings: Exhaustion[]; overrun: Overrun | null } = { warnings: [], overrun: null };

  constructor(unknownPrice: UnknownPrice) {
    this.#unknownPrice = unknownPrice;
  }

  apply(command: LedgerCommand): LedgerOutcome {
    this.#said = { warnings: [], overrun: null };
    const applied = this.#book(command);
    return { applied, decisions: applied ? this.#serve() : [], ...this.#said };
  }

  /** The ledger's state except `passes`, which the real ledger stores differently. */
  view(): Omit<Ledger, "passes"> {
    const accounts: Ledger["accounts"] = Object.fromEntries(
      this.#accounts.map((account) => {
        const { taskId, parent, warnAt, caps, priority, warned, closed } = account;
        const bills = this.#bills.filter((bill) => isUnder(bill.account, account));
        const [spent, reserved] = [this.#spent(account), this.#reserved(account)];
        const lost = total(bills.filter((bill) => bill.lost).map(({ amount }) => amount));
        const unpriced = bills.filter((bill) => bill.unpriced).length;
        const children = this.#accounts.filter((each) => each.parent === account).length;
        const fields = { taskId, parentId: parent?.taskId ?? null, warnAt, caps, priority, warned, closed };
        return [taskId, { ...fields, spent, reserved, lost, unpriced, children }];
      }),
    );
    const [unknownPrice, waiting, overrun] = [this.#unknownPrice, this.#queue, this.#overrun];
    const [lines, tally] = [this.#lines(), this.#tally()];
    const lostCalls = this.#lostCalls();
    const elsewhere = total([]);
    const open = [...this.#holds];
    return { unknownPrice, accounts, open, waiting, overrun, lines, tally, lostCalls, elsewhere };
  }

  #lostCalls(): Ledger["lostCalls"] {
    return Object.fromEntries(
      this.#bills.flatMap(({ lostId, account, amount, priced = false, label, day, hour }) => {
        if (lostId === undefined) return [];
        const chain = chainOf(account).filter((each) => this.#accounts.includes(each));
        const call = {
          taskId: account.taskId,
          chain: chain.map(({ taskId }) => taskId),
          charged: amount,
          priced,
        };
        return [
          [lostId, { ...call, ...(label && { label }), ...(day && { day }), ...hourIn({ hour }) }] as const,
        ];
      }),
    );
  }

  #tally(): Ledger["tally"] {
    const tally: Record<string, UsageDelta> = {};
    for (const bill of this.#bills) {
      const { label, day, hour, amount, lost, unpriced, reported, durationMs, failed = false } = bill;
      if (label === undefined || day === undefined) continue;
      const [agent, model] = [agentNameOf(label.agentId), `${label.provider}/${label.modelId}`];
      const key = `${day} ${hour ?? ""} ${keyOf(label)}`;
      const line = tally[key] ?? { ...noUsageDelta, day, ...hourIn({ hour }), agent, model };
      const name = durationMs === undefined ? undefined : (`b${latencyBucket(durationMs)}` as const);
      const { tokens = 0, outputTokens = 0, cachedTokens = 0 } = reported ?? {};
      tally[key] = {
        ...line,
        inputTokens: line.inputTokens + tokens - outputTokens,
        outputTokens: line.outputTokens + outputTokens,
        cachedTokens: line.cachedTokens + cachedTokens,
        turns: line.turns + amount.turns,
        nanoUsd: line.nanoUsd + amount.nanoUsd,
        lostTokens: line.lostTokens + (lost ? amount.tokens : 0),
        lostNanoUsd: line.lostNanoUsd + (lost ? amount.nanoUsd : 0),
        lostCalls: line.lostCalls + (lost ? 1 : 0),
        unpriced: line.unpriced + (unpriced ? 1 : 0),
        failedCalls: line.failedCalls + (failed ? 1 : 0),
        latency:
          name === undefined ? line.latency : { ...line.latency, [name]: (line.latency[name] ?? 0) + 1 },
      };
    }
    return tally;
  }

  #lines(): Ledger["lines"] {
    const charged = this.#bills.filter(({ isFree = false }) => !isFree);
    const labels = charged.flatMap(({ label }) => label ?? []);
    return Object.fromEntries(
      labels.map((label): [string, CostLine] => {
        const bills = charged.filter((bill) => bill.label && keyOf(bill.label) === keyOf(label));
        const spent = total(bills.map(({ amount }) => amount));
        const lost = total(bills.filter((bill) => bill.lost).map(({ amount }) => amount));
        const unpriced = bills.filter((bill) => bill.unpriced).length;
        const lostCalls = bills.filter((bill) => bill.lost).length;
        return [keyOf(label), { label, calls: bills.length, lostCalls, spent, lost, unpriced }];
      }),
    );
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
        return this.#end(command.id, command.type === "lose", command.failed);
      case "narrow":
        return this.#narrow(command);
      case "correct":
        return this.#correct(command);
      case "withdraw":
        return this.#leave(this.#queue.filter(({ id }) => id === command.id));
      case "charge":
        return this.#charge(command);
      case "topUp":
        return this.#topUp(command);
      case "reprioritize":
        return this.#reprioritize(command);
      case "close":
        return this.#close(command.taskId);
      case "crash":
        for (const { id } of this.#holds) this.#end(id, true);
        this.#leave(this.#queue);
        return true;
    }
  }

  #open({ taskId, parentId, budget, priority, warnAt = 0.8 }: CommandOf<"open">): boolean {
    const parent = parentId === null ? null : this.#find(parentId);
    if (parent === undefined || this.#find(taskId) !== undefined) return false;
    const nanoUsd = budget.maxCostUsd === null ? null : nanos(budget.maxCostUsd);
    const caps = { tokens: budget.maxTokens, nanoUsd, turns: budget.maxTurns };
    this.#accounts.push({ taskId, parent, warnAt, caps, priority, warned: [], closed: false });
    return true;
  }

  #reserve(request: ReserveCommand): boolean {
    const account = this.#find(request.taskId);
    const isTaken = [...this.#holds, ...this.#queue].some(({ id }) => id === request.id);
    if (account === undefined || account.closed || isTaken) return false;
    this.#arrive(account.priority);
    this.#queue = [...this.#queue, request];
    return true;
  }

  #settle(reported: CommandOf<"settle">): boolean {
    const { id, tokens, costUsd, durationMs } = reported;
    const hold = this.#release(id);
    if (hold === undefined) return false;
    const [{ held, priced, label, day, hour }, account] = [hold, this.#accountOf(hold)];
    const billed = { ...held, tokens, nanoUsd: costUsd === null ? held.nanoUsd : nanos(costUsd) };
    const unpriced = !priced && costUsd === null;
    this.#bill({ account, amount: billed, lost: false, unpriced, label, day, hour, reported, durationMs });
    this.#compare(id, account, { held, priced, billed, costUsd });
    return true;
  }

  #compare(
    id: string,
    account: Account,
    call: {
      readonly held: Spend;
      readonly priced: boolean;
      readonly billed: Spend;
      readonly costUsd: number | null;
    },
  ): void {
    const { held, priced, billed, costUsd } = call;
    const cappedIn = (unit: keyof Spend) => chainOf(account).find(({ caps }) => caps[unit] !== null);
    const above = units.find(
      (unit) => billed[unit] > held[unit] && cappedIn(unit) && (unit !== "nanoUsd" || priced),
    );
    if (above) this.#overran(id, [exhaustion(cappedIn(above) ?? account, above, held, billed)]);
    // A call without a known price has no bound to exceed, so the caps decide whether it is an overrun.
    else if (!priced && costUsd !== null) this.#overran(id, this.#passedCaps(account));
  }

  #narrow({ id, tokens, costUsd }: CommandOf<"narrow">): boolean {
    const hold = this.#holds.find((each) => each.id === id);
    if (hold === undefined) return false;
    const { held } = hold;
    const nanoUsd = costUsd === null ? held.nanoUsd : Math.min(held.nanoUsd, nanos(costUsd));
    const narrowed = { ...held, tokens: Math.min(held.tokens, tokens), nanoUsd };
    this.#holds = this.#holds.map((each) => (each === hold ? { ...hold, narrowed } : each));
    return true;
  }

  #correct(reported: CommandOf<"correct">): boolean {
    const { id, tokens, costUsd } = reported;
    const bill = this.#bills.find(({ lostId }) => lostId === id);
    if (bill === undefined) return false;
    const { lostId: _lostId, priced = false, account, amount: charged, ...rest } = bill;
    const amount = { tokens, nanoUsd: costUsd === null ? charged.nanoUsd : nanos(costUsd), turns: 0 };
    const unpriced = !priced && costUsd === null;
    const next: Bill = { ...rest, account, amount, lost: false, unpriced, reported };
    this.#bills = this.#bills.map((each) => (each === bill ? next : each));
    this.#warn(account);
    const [nearest] = chainOf(account).filter((each) => this.#accounts.includes(each));
    if (nearest !== undefined) this.#compare(id, nearest, { held: charged, priced, billed: amount, costUsd });
    return true;
  }

  #end(id: string, lost: boolean, failed = false): boolean {
    const hold = this.#release(id);
    if (hold === undefined) return false;
    const { held, narrowed = held, priced, day, hour } = hold;
    const amount = lost ? { ...narrowed, turns: 0 } : total([]);
    const label = lost || failed ? hold.label : undefined;
    const unpriced = lost && !priced;
    if (lost) this.#bills = this.#bills.map((bill) => withoutId(bill, id));
    const call = lost ? { lostId: id, priced } : {};
    this.#bill({
      account: this.#accountOf(hold),
      amount,
      lost,
      unpriced,
      label,
      day,
      hour,
      failed,
      isFree: !lost,
      ...call,
    });
    return true;
  }

  #release(id: string): Reservation | undefined {
    const hold = this.#holds.find((each) => each.id === id);
    this.#holds = this.#holds.filter((each) => each !== hold);
    return hold;
  }

  #charge({ taskId, tokens, costUsd, turns }: CommandOf<"charge">): boolean {
    const account = this.#find(taskId);
    if (account === undefined) return false;
    const amount = { tokens, nanoUsd: nanos(costUsd ?? 0), turns };
    this.#bill({ account, amount, lost: false, unpriced: costUsd === null && tokens > 0 });
    this.#overran(null, this.#passedCaps(account));
    return true;
  }

  #topUp({ taskId, add }: CommandOf<"topUp">): boolean {
    const account = this.#find(taskId);
    if (account === undefined) return false;
    const { maxTokens = 0, maxCostUsd = 0, maxTurns = 0 } = add;
    const more = { tokens: maxTokens, nanoUsd: nanos(maxCostUsd), turns: maxTurns };
    for (const unit of units) if (account.caps[unit] !== null) account.caps[unit] += more[unit];
    account.warned = account.warned.filter((name) =>
      units.every((unit) => nameOf[unit] !== name || more[unit] === 0),
    );
    this.#overrun = null;
    return true;
  }

  #reprioritize({ taskId, priority }: CommandOf<"reprioritize">): boolean {
    const account = this.#find(taskId);
    if (account === undefined) return false;
    if (this.#queue.some((each) => each.taskId === taskId)) this.#arrive(priority);
    account.priority = priority;
    this.#leave([]);
    return true;
  }

  #close(taskId: TaskId): boolean {
    const account = this.#find(taskId);
    const isBusy = [...this.#holds, ...this.#queue].some((each) => each.taskId === taskId);
    if (account === undefined || isBusy) return false;
    account.closed = true;
    for (let before = -1; before !== this.#accounts.length;) {
      before = this.#accounts.length;
      const isParent = (one: Account): boolean => this.#accounts.some(({ parent }) => parent === one);
      this.#accounts = this.#accounts.filter(
        (each) => !each.closed || each.parent === null || isParent(each),
      );
    }
    return true;
  }

  #find(taskId: TaskId): Account | undefined {
    return this.#accounts.find((account) => account.taskId === taskId);
  }

  /**
   * The account of a call that is open or waits. It always exists, because its task cannot be closed before the call
   * ends.
   */
  #accountOf({ taskId }: { readonly taskId: TaskId }): Account {
    return this.#find(taskId) as Account;
  }

  #spent(top: Account): Spend {
    return total(this.#bills.filter(({ account }) => isUnder(account, top)).map(({ amount }) => amount));
  }

  #reserved(top: Account): Spend {
    return total(this.#holds.filter((hold) => isUnder(this.#accountOf(hold), top)).map(({ held }) => held));
  }

  #bill(bill: Bill): void {
    this.#bills.push(bill);
    this.#warn(bill.account);
  }

  #warn(charged: Account): void {
    for (const account of chainOf(charged)) {
      if (!this.#accounts.includes(account)) continue;
      const spent = this.#spent(account);
      for (const unit of units) {
        const cap = account.caps[unit];
        if (cap === null || spent[unit] === 0 || account.warned.includes(nameOf[unit])) continue;
        if (spent[unit] * 10 < cap * Math.round(account.warnAt * 10)) continue;
        this.#said.warnings.push(exhaustion(account, unit, account.caps, spent));
        account.warned = [...account.warned, nameOf[unit]];
      }
    }
  }

  #passedCaps(account: Account): readonly Exhaustion[] {
    return chainOf(account).flatMap((each) => excess(each, total([this.#spent(each), this.#reserved(each)])));
  }

  #overran(reservationId: string | null, [first]: readonly Exhaustion[]): void {
    if (first === undefined) return;
    this.#overrun = { ...first, reservationId };
    this.#said.overrun = this.#overrun;
  }

  /**
   * A priority class that was empty starts at the position of the class served next, and never before its previous
   * position.
   */
  #arrive(priority: Priority): void {
    const busy = this.#queue
      .map((each) => this.#accountOf(each).priority)
      .filter((each) => each !== BACKGROUND);
    if (priority === BACKGROUND || busy.includes(priority)) return;
    const level = busy.length === 0 ? 0 : Math.min(...busy.map((each) => this.#pass(each)));
    this.#passes.set(priority, Math.max(this.#pass(priority), level));
  }

  #leave(leaving: readonly ReserveCommand[]): boolean {
    this.#queue = this.#queue.filter((each) => !leaving.includes(each));
    if (this.#queue.every((each) => this.#accountOf(each).priority === BACKGROUND)) this.#passes.clear();
    return leaving.length > 0;
  }

  #pass(priority: Priority): number {
    return this.#passes.get(priority) ?? 0;
  }

  #serve(): readonly Decision[] {
    const decisions: Decision[] = [];
    for (;;) {
      const line = this.#line();
      const at = line.findIndex((_, index) => this.#decide(line, index) !== undefined);
      const [request, decision] = [line[at], this.#decide(line, at)];
      if (request === undefined || decision === undefined) return decisions;
      decisions.push(decision);
      if (decision.kind === "granted") {
        const { id, taskId, attempt, label, day, hour } = request;
        const { priority } = this.#accountOf(request);
        const held = bound(request, decision.outputTokens);
        const priced = isPriced(request);
        const whose = { ...(label && { label }), ...(day && { day }), ...hourIn({ hour }) };
        this.#holds.push({ id, taskId, attempt, held, priced, ...whose });
        if (priority !== BACKGROUND) this.#passes.set(priority, this.#pass(priority) + CRITICAL / priority);
      }
      this.#leave([request]);
    }
  }

  /** Returns the waiting calls in the order in which they are served, by computing the schedule for all of them. */
  #line(): readonly ReserveCommand[] {
    const classOf = (request: ReserveCommand): Priority => this.#accountOf(request).priority;
    let left = this.#queue.filter((each) => classOf(each) !== BACKGROUND);
    if (left.length === 0) return this.#queue;
    const passes = new Map(this.#passes);
    const passOf = (request: ReserveCommand): number => passes.get(classOf(request)) ?? 0;
    const line: ReserveCommand[] = [];
    while (left.length > 0) {
      const [first] = left.toSorted((a, b) => passOf(a) - passOf(b) || classOf(b) - classOf(a));
      if (first === undefined) break;
      line.push(first);
      left = left.filter((each) => each !== first);
      passes.set(classOf(first), passOf(first) + CRITICAL / classOf(first));
    }
    return line;
  }

  #decide(line: readonly ReserveCommand[], at: number): Decision | undefined {
    const request = line[at];
    if (request === undefined) return undefined;
    const { id } = request;
    if (this.#overrun !== null) return { id, kind: "exhausted", exhaustion: this.#overrun };
    const chain = chainOf(this.#accountOf(request));
    const costCapped = chain.find(({ caps }) => caps.nanoUsd !== null);
    if (!isPriced(request) && this.#unknownPrice === "refuse" && costCapped !== undefined)
      return { id, kind: "unknown_price", taskId: costCapped.taskId };
    const least = bound(request, leastOutput(request));
    const [hopeless] = chain.flatMap((each) =>
      excess(each, total([this.#spent(each), least])).map((found) => this.#refusal(each, found, least)),
    );
    if (hopeless !== undefined) return { id, kind: "exhausted", exhaustion: hopeless };
    const inTheWay = line.slice(0, at).flatMap((ahead) => this.#tight(ahead));
    if (this.#tight(request).length > 0 || chain.some((each) => inTheWay.includes(each))) return undefined;
    const outputTokens = this.#largestOutput(request);
    return { id, kind: "granted", outputTokens, clamped: outputTokens !== request.output.maxTokens };
  }

  #refusal(account: Account, found: Exhaustion, least: Spend): Exhaustion {
    const unit = units.find((each) => nameOf[each] === found.dimension) as Unit;
    const scale = unit === "nanoUsd" ? 1e9 : 1;
    const mine = this.#bills.filter((bill) => isUnder(bill.account, account));
    const lost = total(mine.filter((bill) => bill.lost).map(({ amount }) => amount));
    const [cap, spent] = [Number(account.caps[unit]), this.#spent(account)[unit]];
    const refused = {
      reserved: least[unit] / scale,
      remaining: spent > cap ? 0 : (cap - spent) / scale,
      spent: spent / scale,
      unreported: lost[unit] / scale,
    };
    return { ...found, refused };
  }

  /** Returns the accounts without enough room for the call besides the open reservations. */
  #tight(request: ReserveCommand): readonly Account[] {
    const wanted = bound(request, this.#largestOutput(request));
    return chainOf(this.#accountOf(request)).filter(
      (each) => excess(each, total([this.#spent(each), this.#reserved(each), wanted])).length > 0,
    );
  }

  /** Returns the largest output of the call that would fit if all open reservations were refunded. */
  #largestOutput(request: ReserveCommand): number {
    const accounts = chainOf(this.#accountOf(request)).map((each) => [each, this.#spent(each)] as const);
    const fits = (output: number): boolean =>
      accounts.every(([each, spent]) => excess(each, total([spent, bound(request, output)])).length === 0);
    let output = request.output.maxTokens;
    while (output > leastOutput(request) && !fits(output)) output -= 1;
    return output;
  }
}

function withoutId(bill: Bill, id: string): Bill {
  if (bill.lostId !== id) return bill;
  const { lostId: _lostId, ...rest } = bill;
  return rest;
}

function keyOf({ agentId, provider, modelId }: CostLabel): string {
  return `${agentId} ${provider.length} ${provider} ${modelId}`;
}

function chainOf(account: Account): readonly Account[] {
  return account.parent === null ? [account] : [account, ...chainOf(account.parent)];
}

function isUnder(account: Account, top: Account): boolean {
  return account === top || (account.parent !== null && isUnder(account.parent, top));
}

function total(amounts: readonly Spend[]): Spend {
  const sum = (unit: Unit): number => amounts.reduce((all, amount) => all + amount[unit], 0);
  return { tokens: sum("tokens"), nanoUsd: sum("nanoUsd"), turns: sum("turns") };
}

function excess(account: Account, used: Spend): readonly Exhaustion[] {
  return units
    .filter((unit) => used[unit] > (account.caps[unit] ?? Number.POSITIVE_INFINITY))
    .map((unit) => exhaustion(account, unit, account.caps, used));
}

function exhaustion({ taskId }: Account, unit: Unit, limits: Account["caps"], used: Spend): Exhaustion {
  const scale = unit === "nanoUsd" ? 1e9 : 1;
  return { taskId, dimension: nameOf[unit], limit: Number(limits[unit]) / scale, used: used[unit] / scale };
}

function isPriced({ input, output }: ReserveCommand): boolean {
  return input.costUsd !== null && output.usdPerToken !== null;
}

function bound(request: ReserveCommand, outputTokens: number): Spend {
  const { input, output, turns = 1 } = request;
  const nanoUsd = nanos(input.costUsd ?? 0) + outputTokens * nanos(output.usdPerToken ?? 0);
  return { tokens: input.tokens + outputTokens, nanoUsd: isPriced(request) ? nanoUsd : 0, turns };
}

function leastOutput({ output: { minTokens = 1, maxTokens } }: ReserveCommand): number {
  return Math.min(minTokens, maxTokens);
}

function nanos(usd: number): number {
  return Math.round(usd * 1e9);
}

function hourIn({ hour }: { readonly hour?: number | undefined }): { readonly hour?: number } {
  return hour === undefined ? {} : { hour };
}
