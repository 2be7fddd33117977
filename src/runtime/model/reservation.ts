import {
  Fault,
  fromNanoUsd,
  type Account,
  type Decision,
  type ExhaustedCap,
  type Exhaustion,
  type JsonObject,
  type ProviderToolBound,
  type ReserveCommand,
  type TaskId,
} from "../../kernel/index.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { askOrStop, exhausted, mayAsk } from "../task/budget-stop.ts";
import type { DrawnCapShare, TaskCapShare } from "../task/task-host.ts";
import { seatWithin } from "../task/seat-wait.ts";
import type { RunState } from "../journal/run-state.ts";
import { boundCost, type BoundedCall, type CostBound, type PriceOf } from "./call-cost.ts";

export interface CallReservation extends BoundedCall {
  /** Whether the caller set the output limit. If so, the request states it even if no cap applies. */
  readonly isLimited: boolean;
  /**
   * B1: counts the input tokens if the upper bound does not fit. It resolves to `undefined` if they cannot be
   * counted.
   */
  readonly count?: (() => Promise<number | undefined>) | undefined;
  /**
   * B5: how long the call waits for a top-up that a person is asked for, in milliseconds. If absent, it waits
   * without a limit.
   */
  readonly topUpWaitMs?: number | undefined;
  /** B5: called when the call would begin to wait for a top-up. If it returns `false`, the call does not wait. */
  readonly onTopUpWait?: (() => boolean) | undefined;
  /**
   * B4: whether a model without a known price is refused, unless the task has a budget of tokens and none of
   * dollars.
   */
  readonly needsPrice?: boolean | undefined;
  /**
   * H2: how long the call waits while its task has no seat, in milliseconds. If absent, it waits until the task has
   * a seat again.
   */
  readonly seatWaitMs?: number | undefined;
  /** B7: the outcome of the draw that precedes this reservation. */
  readonly drawn?: DrawnCapShare;
}

export interface Grant {
  /** Id of the reservation. */
  readonly id: string;
  /**
   * Output limit that the request states. `null` if the caller set none and no cap applies; the request then states
   * none.
   */
  readonly outputLimit: number | null;
  /** Output tokens that the reservation covers. */
  readonly outputTokens: number;
  /** The cap that lowered the output limit, or `null`. If the output reaches the limit, this cap is exhausted. */
  readonly cutBy: Exhaustion | null;
  /** Returns the price for a request of this size at the time of the reservation. `null` if the price is unknown. */
  readonly priceOf: PriceOf;
  /** What the tools that the provider executes cost. Absent if the call has none. */
  readonly providerTools?: ProviderToolBound | undefined;
}

/**
 * B1: reserves the upper bound of the cost of a call. When this returns or resolves, the task holds a seat and a
 * slot; the caller must start the call synchronously, because the task may lose them later.
 */
export function reserveCall(call: CallReservation): Grant | Promise<Grant> {
  const { runner } = call.step;
  const loading = runner.worker.prices.load?.();
  return loading === undefined ? reserve(call) : reserveAfter(runner.activity.whileAlive(loading), call);
}

function reserve(call: CallReservation): Grant | Promise<Grant> {
  const { runner, cancelScope } = call.step;
  if (call.seatWaitMs !== undefined && !runner.activity.hasSeat(cancelScope))
    return reserveAfter(seatWithin(call.step, call.seatWaitMs), call);
  const wait = runner.activity.whenReady(cancelScope);
  if (wait !== undefined) return reserveAfter(wait, call);
  requireLimitedTools(call);
  const needed = boundCost(call);
  if (call.needsPrice === true && needed.command.output.usdPerToken === null) requirePrice(call);
  if (call.count !== undefined && !runner.host.ledger.fits(needed.command))
    return reserveCounted(call, call.count);
  const prepared = coverCall(call, needed);
  if (prepared === undefined) return reserveDrawn(call, needed);
  const decision = runner.host.ledger.reserve(prepared.command);
  if (decision === undefined) return reserveLater(call, prepared);
  return decision.kind === "exhausted" && asksFor(call, decision)
    ? reserveToppedUp(call, decision)
    : grantOf(call, prepared, decision);
}

type ExhaustedDecision = Extract<Decision, { kind: "exhausted" }>;

function asksFor({ step }: CallReservation, decision: Decision): decision is ExhaustedDecision {
  return decision.kind === "exhausted" && mayAsk(step.runner, decision.exhaustion);
}

/**
 * B5: makes the reservation again after a top-up. The upper bound is computed again, because the answer of the
 * person may take days.
 */
async function reserveToppedUp(call: CallReservation, { exhaustion }: ExhaustedDecision): Promise<Grant> {
  const { drawn, ...again } = call;
  // What was drawn of the caps returns to the other runs meanwhile.
  if (drawn !== undefined) call.step.runner.host.capShare?.returnUnused();
  await askOrStop(call.step, exhaustion, call);
  return reserve(again);
}

async function reserveAfter(wait: Promise<void>, call: CallReservation): Promise<Grant> {
  await wait;
  return reserve(call);
}

/** B1: makes the reservation with counted input tokens, because the upper bound by bytes does not fit. */
async function reserveCounted(
  call: CallReservation,
  count: NonNullable<CallReservation["count"]>,
): Promise<Grant> {
  const inputTokens = (await count()) ?? call.inputTokens;
  return reserve({ ...call, inputTokens, count: undefined });
}

/** B7: returns the reservation if the run's cap share covers it. `undefined` if the run must draw first. */
function coverCall(call: CallReservation, prepared: CostBound): CostBound | undefined {
  const { capShare } = call.step.runner.host;
  if (capShare === undefined) return prepared;
  const { command } = prepared;
  const { drawn } = call;
  const covered = capShare.cover(command, drawn !== undefined);
  if (covered.kind === "unpriced") {
    const { provider, modelId } = call.model;
    throw unpricedCall(call.model, `${provider}/${modelId} has no known price and a spending cap applies`);
  }
  if (covered.kind === "short") return undefined;
  if (covered.kind === "whole") return prepared;
  const output = { ...command.output, maxTokens: covered.outputTokens };
  return { ...prepared, command: { ...command, output }, cutBy: drawn?.tight ?? null };
}

/**
 * B7: draws the amount that the call needs. If it is not available, the model counts the input tokens (B1). If the
 * call still does not fit, it waits for open calls of other runs, at most `capWaitMs`, and then for other open
 * calls of its run. It fails when no call is open.
 */
async function reserveDrawn(call: CallReservation, { command }: CostBound): Promise<Grant> {
  const { drawn: _drawn, ...again } = call;
  const { step, count } = call;
  const { activity, host } = step.runner;
  const { capShare } = host;
  if (capShare === undefined) return reserve(call);
  let drawn = await activity.whileAlive(capShare.draw(command, true));
  if (drawn.tight !== null && count !== undefined) return reserveCounted(again, count);
  if (drawn.kind === "waits") drawn = await drawLater(step, capShare, command, drawn.tight.cap);
  if (drawn.kind === "held")
    try {
      const grant = reserve({ ...call, drawn });
      // The caller starts the call in the section in which the reservation is granted.
      return grant instanceof Promise ? await grant : grant;
    } catch (error) {
      // The call was cancelled or refused after it drew.
      capShare.returnUnused();
      throw error;
    }
  const freed = host.ledger.whenFreed();
  if (freed === undefined) throw exhausted(step, drawn.tight, call);
  await activity.waitFor(step.cancelScope, freed, { name: "budget" });
  return reserve(again);
}

/**
 * B7: draws when other runs have returned what the call needs. After `capWaitMs`, the call takes the amount that
 * remains.
 */
async function drawLater(
  { runner, cancelScope }: ActiveStep,
  capShare: TaskCapShare,
  command: ReserveCommand,
  cap: ExhaustedCap,
): Promise<DrawnCapShare> {
  const { worker, state, taskId, task, activity } = runner;
  // The time passes also while no process executes the run: the seat is idle since an earlier owner began to wait.
  const isSame = state.headcount.tasks[taskId]?.idle === true && task.waitsFor.includes("cap");
  const since = isSame ? task.suspendedAt : worker.clock.now();
  const place = worker.capQueue.join(cap, since + worker.capWaitMs);
  const drawing = async (): Promise<DrawnCapShare> => {
    for (;;) {
      place.reset();
      const drawn = await capShare.draw(command, !place.isOver);
      // The call was cancelled meanwhile, so no code receives what is drawn.
      if (place.hasLeft) capShare.returnUnused();
      if (drawn.kind !== "waits" || place.hasLeft) return drawn;
      await place.wait();
      if (place.hasLeft) return drawn;
    }
  };
  try {
    return await activity.waitFor(cancelScope, drawing(), { name: "cap", staysHere: true });
  } finally {
    place.leave();
  }
}

/**
 * J3, B3: resolves once the reservation is durable. From this time on, a crash charges it in full. If the write
 * fails, or the step was cancelled before (C2), the request is not sent and the reservation is refunded.
 */
export async function whenDurable(
  { runner, cancelScope }: ActiveStep,
  { id }: Grant,
  flushed: Promise<void>,
): Promise<void> {
  try {
    await flushed;
    if (!runner.isDropped) cancelScope.check();
  } catch (error) {
    if (runner.isDropped) return pendingForever();
    runner.host.ledger.apply(runner.taskId, { type: "refund", id });
    throw error;
  }
}

/** Waits until the reservation is decided. */
async function reserveLater(call: CallReservation, prepared: CostBound): Promise<Grant> {
  const { runner, cancelScope } = call.step;
  const { id } = prepared.command;
  const decision = await waitForDecision(call.step, id);
  if (asksFor(call, decision)) return reserveToppedUp(call, decision);
  const grant = grantOf(call, prepared, decision);
  if (await runner.activity.isStillReady(cancelScope)) return grant;
  // The task lost its seat while it waited for the reservation. Another task may use the money meanwhile.
  runner.host.ledger.apply(runner.taskId, { type: "refund", id });
  const { drawn: _drawn, ...again } = call;
  return reserve(again);
}

/** Throws if the reservation was refused. */
function grantOf(
  call: CallReservation,
  { command, priceOf, cutBy: cap = null }: CostBound,
  decision: Decision,
): Grant {
  const { state, taskId, host } = call.step.runner;
  if (decision.kind !== "granted") throw refusalOf(call, decision);
  const { outputTokens, clamped } = decision;
  const cutBy = clamped ? findTightestCap(state, taskId, command.output.usdPerToken ?? 0) : cap;
  const isLimited = call.isLimited || host.capShare !== undefined || isCapped(state, taskId);
  const { providerTools } = call;
  const limit = isLimited ? outputTokens : null;
  return { id: command.id, outputLimit: limit, outputTokens, cutBy, priceOf, providerTools };
}

/**
 * Waits for the ledger's decision. If the wait fails, for example because of a cancel, the reservation is
 * withdrawn.
 */
export async function waitForDecision({ runner, cancelScope }: ActiveStep, id: string): Promise<Decision> {
  const { taskId, host } = runner;
  const decision = host.ledger.whenDecided(id);
  try {
    return await runner.activity.waitFor(cancelScope, decision, { name: "budget" });
  } catch (error) {
    host.ledger.apply(taskId, { type: "withdraw", id });
    host.ledger.apply(taskId, { type: "refund", id });
    throw error;
  }
}

function refusalOf(
  { step, model }: CallReservation,
  decision: Exclude<Decision, { kind: "granted" }>,
): Fault {
  if (decision.kind !== "unknown_price") return exhausted(step, decision.exhaustion, { model });
  const { provider, modelId } = model;
  const { taskId } = decision;
  const problem = `${provider}/${modelId} has no known price and task ${taskId} has a budget in dollars`;
  return unpricedCall(model, problem, { taskId });
}

/**
 * B4: throws for a model without a known price, unless a cap on tokens limits the call, or the runtime ignores
 * prices.
 */
function requirePrice({ step, model }: CallReservation): void {
  const { state, taskId } = step.runner;
  if (state.ledger.unknownPrice === "ignore" || hasCap(state, taskId, "tokens")) return;
  const { provider, modelId } = model;
  throw unpricedCall(model, `${provider}/${modelId} has no known price and no limit of tokens applies`);
}

/** B1: throws if a cap applies and nothing limits how often the provider executes a tool in the call. */
function requireLimitedTools({ step, model, providerTools }: CallReservation): void {
  const [name] = providerTools?.unlimited ?? [];
  if (name === undefined) return;
  const { state, taskId, host } = step.runner;
  if (!isCapped(state, taskId) && host.capShare === undefined) return;
  throw new Fault(
    "invalid_argument",
    `tool ${name} has no limit of uses in a call of ${model.provider}/${model.modelId}, and the run has a budget or a cap, which the call could exceed: set maxUses of providerTool() if the provider can limit the tool, or remove the tool or the limits of tokens and dollars`,
    { details: { toolName: name } },
  );
}

/** B4: creates the fault for a call without a known price under a budget in dollars. */
function unpricedCall(
  { provider, modelId }: CallReservation["model"],
  problem: string,
  details: JsonObject = {},
): Fault {
  return new Fault(
    "unknown_price",
    `${problem}: give its price with openRuntime({ prices: priceCatalog({ overrides: [{ provider: "${provider}", model: "${modelId}", usdPerMillion: { input, output } }] }) }), or set unknownPrice to "ignore"`,
    { details: { provider, modelId, ...details } },
  );
}

/**
 * Whether a cap applies to the task. B1: if so, the upper bound is valid only if the request states its output
 * limit.
 */
function isCapped(state: RunState, taskId: TaskId): boolean {
  return hasCap(state, taskId, "tokens") || hasCap(state, taskId, "nanoUsd");
}

/** Whether the task or an ancestor has a cap in this dimension. */
function hasCap({ ledger }: RunState, taskId: TaskId, dimension: "tokens" | "nanoUsd"): boolean {
  for (let at: Account | undefined = ledger.accounts[taskId]; at !== undefined;) {
    const { caps, parentId }: Account = at;
    if (caps[dimension] !== null) return true;
    at = parentId === null ? undefined : ledger.accounts[parentId];
  }
  return false;
}

/** Returns the cap, of the task or an ancestor, that has no room for one more token. */
function findTightestCap({ ledger }: RunState, taskId: TaskId, usdPerToken: number): Exhaustion | null {
  for (let at: Account | undefined = ledger.accounts[taskId]; at !== undefined;) {
    const { caps, spent, reserved }: Account = at;
    const tokens = spent.tokens + reserved.tokens + 1;
    if (caps.tokens !== null && tokens > caps.tokens)
      return { taskId: at.taskId, dimension: "tokens", limit: caps.tokens, used: tokens };
    const costUsd = fromNanoUsd(spent.nanoUsd + reserved.nanoUsd) + usdPerToken;
    if (caps.nanoUsd !== null && costUsd > fromNanoUsd(caps.nanoUsd))
      return { taskId: at.taskId, dimension: "costUsd", limit: fromNanoUsd(caps.nanoUsd), used: costUsd };
    at = at.parentId === null ? undefined : ledger.accounts[at.parentId];
  }
  return null;
}
