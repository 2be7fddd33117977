import type { TaskId } from "../base/identity.ts";
import { toNanoUsdBound } from "../base/money.ts";
import { addSpend, findExcess, findRefusal } from "./account.ts";
import type { Account, Decision, Exhaustion, Ledger, ReserveCommand, Spend } from "./ledger.ts";
import { Priority } from "./priority.ts";

/** Whether the price of the call of a reservation is known (B4). */
export function isPriced({ input, output }: ReserveCommand): boolean {
  return input.costUsd !== null && output.usdPerToken !== null;
}

/** B1: returns the maximum cost of the call if it may write `outputTokens`. */
export function boundOf({ input, output, turns = 1 }: ReserveCommand, outputTokens: number): Spend {
  const { costUsd } = input;
  const { usdPerToken } = output;
  const priced = costUsd !== null && usdPerToken !== null;
  return {
    tokens: input.tokens + outputTokens,
    nanoUsd: priced ? toNanoUsdBound(costUsd + outputTokens * usdPerToken) : 0,
    turns,
  };
}

/**
 * Returns the output limit that the call could have if every open reservation were returned unspent. It is
 * `maxTokens`, reduced to what each account of the chain has left. If that is below `minTokens`, returns an
 * exhaustion, because waiting cannot help.
 */
function clampOutput(chain: readonly Account[], request: ReserveCommand): number | Exhaustion {
  const { maxTokens, minTokens = 1 } = request.output;
  const minimum = Math.min(minTokens, maxTokens);
  const floor = boundOf(request, minimum);
  let outputTokens = maxTokens;
  for (const account of chain) {
    const refusal = findRefusal(account, floor);
    if (refusal !== undefined) return refusal;
    const fits = (tokens: number): boolean =>
      findExcess(account, addSpend(account.spent, boundOf(request, tokens))) === undefined;
    outputTokens = largestOutput(fits, minimum, outputTokens);
  }
  return outputTokens;
}

/** Returns the accounts in which the bound does not fit in addition to the current reservations. */
function findTight(chain: readonly Account[], bound: Spend): readonly Account[] {
  return chain.filter((account) => !bears(account, bound));
}

/** Whether the bound fits in all accounts of the chain. */
export function isBearable(chain: readonly Account[], bound: Spend): boolean {
  for (const account of chain) if (!bears(account, bound)) return false;
  return true;
}

function bears(account: Account, bound: Spend): boolean {
  const { spent, reserved } = account;
  return findExcess(account, addSpend(addSpend(spent, reserved), bound)) === undefined;
}

/** Finds the largest output limit that fits, by bisection. The caller knows that the minimum fits. */
export function largestOutput(
  fits: (outputTokens: number) => boolean,
  minimum: number,
  maximum: number,
): number {
  if (fits(maximum)) return maximum;
  let low = minimum;
  let high = maximum;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * B6: returns the accounts against which a task's spending counts, from the account of the task to that of the
 * root.
 */
export function chainOf(accounts: Ledger["accounts"], taskId: TaskId): readonly Account[] {
  const chain: Account[] = [];
  for (let at: TaskId | null = taskId; at !== null;) {
    const account: Account | undefined = accounts[at];
    if (account === undefined) break;
    chain.push(account);
    at = account.parentId;
  }
  return chain;
}

export function joinQueue(ledger: Ledger, request: ReserveCommand): Ledger {
  const { passes, waiting } = levelPass(ledger, priorityOf(ledger, request));
  return { ...ledger, passes, waiting: [...waiting, request] };
}

/**
 * Sets the pass of a priority class in which no reservation waits to that of the class that is served next. So a
 * class gains nothing from the time in which it was idle, or from a change of class.
 */
export function levelPass(ledger: Ledger, priority: Priority): Ledger {
  const busy = ledger.waiting
    .map((each) => priorityOf(ledger, each))
    .filter((each) => each !== Priority.BACKGROUND);
  if (priority === Priority.BACKGROUND || busy.includes(priority)) return ledger;
  const level = busy.length === 0 ? 0 : Math.min(...busy.map((each) => ledger.passes[each] ?? 0));
  const pass = Math.max(ledger.passes[priority] ?? 0, level);
  return { ...ledger, passes: { ...ledger.passes, [priority]: pass } };
}

/** Resets the scheduler while no weighted reservation waits, because then there is nothing to distribute. */
export function settlePasses(ledger: Ledger): Ledger {
  const weighed = ledger.waiting.some((each) => priorityOf(ledger, each) !== Priority.BACKGROUND);
  return weighed || Object.keys(ledger.passes).length === 0 ? ledger : { ...ledger, passes: {} };
}

/**
 * Returns the next decision about the waiting reservations, or `undefined` if all of them must wait. B1:
 * reservations are served by weight (stride scheduling), first come first served within a class, BACKGROUND only
 * when no other class waits. A reservation that does not fit blocks later ones that need the same account, so that
 * small calls do not starve a large one.
 */
export function nextDecision(ledger: Ledger): Decision | undefined {
  if (ledger.waiting.length === 0) return undefined;
  const blocked = new Set<TaskId>();
  for (const request of inServingOrder(ledger)) {
    const chain = chainOf(ledger.accounts, request.taskId);
    const decision = decide(ledger, chain, request);
    if (!("tight" in decision)) {
      if (decision.kind !== "granted" || !chain.some(({ taskId }) => blocked.has(taskId))) return decision;
    } else for (const { taskId } of decision.tight) blocked.add(taskId);
  }
  return undefined;
}

/** Decides a request when no other request waits before it. The result is `undefined` if the request has to wait. */
export function decideAlone(ledger: Ledger, request: ReserveCommand): Decision | undefined {
  const decision = decide(ledger, chainOf(ledger.accounts, request.taskId), request);
  return "tight" in decision ? undefined : decision;
}

/** Decides one request without regard to others, or returns the accounts that have no room for it at the moment. */
function decide(
  ledger: Ledger,
  chain: readonly Account[],
  request: ReserveCommand,
): Decision | { readonly tight: readonly Account[] } {
  const { id } = request;
  if (ledger.overrun !== null) return { id, kind: "exhausted", exhaustion: ledger.overrun };
  const { maxTokens } = request.output;
  const unpriced = findUnpriced(ledger, chain, request);
  if (unpriced !== undefined) return { id, kind: "unknown_price", taskId: unpriced.taskId };
  // Fast path: the whole bound fits beside the open reservations.
  if (isBearable(chain, boundOf(request, maxTokens)))
    return { id, kind: "granted", outputTokens: maxTokens, clamped: false };
  const outputTokens = clampOutput(chain, request);
  if (typeof outputTokens !== "number") return { id, kind: "exhausted", exhaustion: outputTokens };
  const tight = findTight(chain, boundOf(request, outputTokens));
  if (tight.length > 0) return { tight };
  return { id, kind: "granted", outputTokens, clamped: outputTokens < maxTokens };
}

/**
 * Removes a request from the queue. If the request was served, the pass of its class increases by the stride of its
 * weight.
 */
export function leaveQueue(ledger: Ledger, id: string, served: boolean): Ledger {
  const request = ledger.waiting.find((each) => each.id === id);
  if (request === undefined) return ledger;
  const priority = priorityOf(ledger, request);
  const waiting = ledger.waiting.filter((each) => each !== request);
  if (!served || priority === Priority.BACKGROUND) return settlePasses({ ...ledger, waiting });
  const pass = (ledger.passes[priority] ?? 0) + Priority.CRITICAL / priority;
  return settlePasses({ ...ledger, waiting, passes: { ...ledger.passes, [priority]: pass } });
}

/** Returns the waiting requests in the order in which stride scheduling would serve them if all of them fitted. */
function inServingOrder(ledger: Ledger): readonly ReserveCommand[] {
  if (ledger.waiting.length < 2) return ledger.waiting;
  const classes = new Map<Priority, ReserveCommand[]>();
  for (const request of ledger.waiting) {
    const priority = priorityOf(ledger, request);
    const members = classes.get(priority);
    if (members === undefined) classes.set(priority, [request]);
    else members.push(request);
  }
  const background = classes.get(Priority.BACKGROUND) ?? [];
  classes.delete(Priority.BACKGROUND);
  if (classes.size === 0) return background;
  const passes = new Map([...classes.keys()].map((each) => [each, ledger.passes[each] ?? 0]));
  const order: ReserveCommand[] = [];
  while (classes.size > 0) {
    const priority = lowestPass(passes);
    const members = classes.get(priority) ?? [];
    const first = members.shift();
    if (first !== undefined) order.push(first);
    passes.set(priority, (passes.get(priority) ?? 0) + Priority.CRITICAL / priority);
    if (members.length > 0) continue;
    classes.delete(priority);
    passes.delete(priority);
  }
  return order;
}

/** Returns the class with the lowest pass. Among equal passes it is the one with the higher priority. */
function lowestPass(passes: ReadonlyMap<Priority, number>): Priority {
  let best: [Priority, number] = [Priority.BACKGROUND, Number.POSITIVE_INFINITY];
  for (const [priority, pass] of passes) {
    if (pass < best[1] || (pass === best[1] && priority > best[0])) best = [priority, pass];
  }
  return best[0];
}

/** B4: finds the account whose budget in dollars refuses a call without a known price. */
export function findUnpriced(
  ledger: Ledger,
  chain: readonly Account[],
  request: ReserveCommand,
): Account | undefined {
  if (isPriced(request) || ledger.unknownPrice === "ignore") return undefined;
  return chain.find(({ caps }) => caps.nanoUsd !== null);
}

function priorityOf({ accounts }: Ledger, { taskId }: ReserveCommand): Priority {
  return accounts[taskId]?.priority ?? Priority.NORMAL;
}
