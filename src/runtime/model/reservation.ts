import { exhausted } from "../task/budget-stop.ts";
import {
  Fault,
  fromNanoUsd,
  systemMessage,
  type Account,
  type Decision,
  type Exhaustion,
  type LlmRequest,
  type Model,
  type ModelPrice,
  type ModelRequest,
  type ReserveCommand,
  type TaskId,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { maxInputUsdPerToken, maxOutputUsdPerToken } from "./max-price.ts";
import type { RunState } from "../journal/run-state.ts";
import { boundFormat, boundMessages, boundTools } from "./token-bound.ts";

/** What the provider has counted already: the tokens of an earlier request. */
export interface SentPrefix {
  readonly request: LlmRequest;
  readonly tokens: number;
  /** Who counted; another model counts otherwise. */
  readonly by: Pick<Model, "provider" | "modelId">;
}

export interface CallReservation {
  readonly open: ActiveStep;
  readonly model: Model;
  /** At most. */
  readonly inputTokens: number;
  readonly maxOutputTokens: number | undefined;
  readonly attempt: number;
  readonly turns: number;
}

export interface Grant {
  /** Of the reservation. */
  readonly id: string;
  /** `null`: nobody asked for a limit and no cap stands, so the call sends none. */
  readonly outputLimit: number | null;
  /** The cap that left less output than was asked for; an answer cut at its limit means the budget ran out. */
  readonly cutBy: Exhaustion | null;
  /** Prices may step with the size of what was sent; they are those of the moment the call was reserved. */
  readonly priceOf: (inputTokens: number) => ModelPrice | null;
}

/** Of a model that is not listed, however much was sent. */
const unknownPrice = (): null => null;

/** An output limit for models that do not say theirs. */
const defaultOutputTokens = 8_192;

/** B1: holds the most a call can cost. When it is there, the task has a seat and a slot, and the call may start in the same breath. */
export function reserveCall(call: CallReservation): Grant | Promise<Grant> {
  const { runner } = call.open;
  const loading = runner.worker.prices.load?.();
  return loading === undefined ? reserve(call) : reserveAfter(runner.whileAlive(loading), call);
}

function reserve(call: CallReservation): Grant | Promise<Grant> {
  const { runner, cancelScope } = call.open;
  const wait = runner.ready(cancelScope);
  if (wait !== undefined) return reserveAfter(wait, call);
  const asked = reservationOf(call);
  const decision = runner.host.ledger.reserve(asked.command);
  return decision === undefined ? reserveLater(call, asked) : grantOf(call, asked, decision);
}

async function reserveAfter(wait: Promise<void>, call: CallReservation): Promise<Grant> {
  await wait;
  return reserve(call);
}

/** Once there is money for it. */
async function reserveLater(call: CallReservation, asked: AskedReservation): Promise<Grant> {
  const { runner, cancelScope } = call.open;
  const { id } = asked.command;
  const grant = grantOf(call, asked, await decided(call.open, id));
  if (await runner.stillReady(cancelScope)) return grant;
  // Its seat went while it waited for money: whoever has one may use the money.
  runner.host.ledger.apply(runner.taskId, { type: "refund", id });
  return reserve(call);
}

/** Throws where it was refused. */
function grantOf(call: CallReservation, { command, priceOf }: AskedReservation, decision: Decision): Grant {
  const { state, taskId } = call.open.runner;
  if (decision.kind !== "granted") throw refusalOf(call, decision);
  const { outputTokens, clamped } = decision;
  const cutBy = clamped ? findTightest(state, taskId, command.output.usdPerToken ?? 0) : null;
  const asked = call.maxOutputTokens !== undefined || isCapped(state, taskId);
  return { id: command.id, outputLimit: asked ? outputTokens : null, cutBy, priceOf };
}

/** While others have reservations open, some of it may come back. */
async function decided({ runner, cancelScope }: ActiveStep, id: string): Promise<Decision> {
  const { taskId, host } = runner;
  const decision = host.ledger.whenDecided(id);
  try {
    return await runner.waitFor(cancelScope, decision, { name: "budget" });
  } catch (error) {
    host.ledger.apply(taskId, { type: "withdraw", id });
    host.ledger.apply(taskId, { type: "refund", id });
    throw error;
  }
}

interface AskedReservation {
  readonly command: ReserveCommand;
  readonly priceOf: Grant["priceOf"];
}

function reservationOf(call: CallReservation): AskedReservation {
  const { open, model, inputTokens: tokens, maxOutputTokens, attempt, turns } = call;
  const { taskId, worker } = open.runner;
  const { provider, modelId } = model;
  const at = attempt === 1 ? open.startedAt : worker.clock.now();
  const price = worker.prices.find({ provider, modelId, inputTokens: tokens, at });
  const priceOf =
    price === null
      ? unknownPrice
      : (inputTokens: number): ModelPrice | null =>
          worker.prices.find({ provider, modelId, inputTokens, at });
  const command: ReserveCommand = {
    type: "reserve",
    id: `${taskId} ${open.address} ${attempt}`,
    taskId,
    attempt,
    input: { tokens, costUsd: price === null ? null : inputCost(price, tokens) },
    output: {
      maxTokens: maxOutputTokens ?? model.maxOutputTokens ?? defaultOutputTokens,
      usdPerToken: price === null ? null : maxOutputUsdPerToken(price),
    },
    turns,
    label: open.runner.nameOf(model).label,
  };
  return { command, priceOf };
}

function refusalOf(
  { open, model }: CallReservation,
  decision: Exclude<Decision, { kind: "granted" }>,
): Fault {
  if (decision.kind === "unknown_price") {
    const { provider, modelId } = model;
    return new Fault(
      "unknown_price",
      `${provider}/${modelId} has no known price and task ${decision.taskId} has a cost cap: give its price with openRuntime({ prices: priceCatalog({ overrides: [{ provider: "${provider}", model: "${modelId}", usdPerMillion: { input, output } }] }) }), or set unknownPrice to "ignore"`,
      { details: { provider, modelId, taskId: decision.taskId } },
    );
  }
  return exhausted(open, decision.exhaustion);
}

function inputCost(price: ModelPrice, tokens: number): number {
  return tokens * maxInputUsdPerToken(price) + (price.requestUsd ?? 0);
}

/** B1: then the bound holds only if the call says its limit. */
function isCapped({ ledger }: RunState, taskId: TaskId): boolean {
  for (let at: Account | undefined = ledger.accounts[taskId]; at !== undefined;) {
    const { caps, parentId }: Account = at;
    if (caps.tokens !== null || caps.nanoUsd !== null) return true;
    at = parentId === null ? undefined : ledger.accounts[parentId];
  }
  return false;
}

/** Where not one token more would have fitted. */
function findTightest({ ledger }: RunState, taskId: TaskId, usdPerToken: number): Exhaustion | null {
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

/** B1: the model's own count for what it has seen, and one token per byte for what is new. */
export function boundInput(request: LlmRequest, sent: SentPrefix | undefined, model: Model): number {
  const { transcript, instructions = "", tools = [] } = request;
  const extra = boundFormat(request);
  if (sent !== undefined && isSame(sent.by, model) && continues(request, sent)) {
    return sent.tokens + boundMessages(transcript, sent.request.transcript.length) + extra;
  }
  return boundMessages([systemMessage(instructions)]) + boundTools(tools) + boundMessages(transcript) + extra;
}

/** The same for a request that something on its way has changed: nothing of it is known to be counted. */
export function boundRequest({ messages, tools = [], ...request }: ModelRequest): number {
  return boundMessages(messages) + boundTools(tools) + boundFormat(request);
}

function isSame(one: Pick<Model, "provider" | "modelId">, other: Model): boolean {
  return one.provider === other.provider && one.modelId === other.modelId;
}

/** Whether all that was sent before is sent again, so that its count holds. A provider that counts nothing says nothing. */
function continues(request: LlmRequest, { request: before, tokens }: SentPrefix): boolean {
  const { length } = before.transcript;
  return (
    tokens > 0 &&
    length > 0 &&
    length <= request.transcript.length &&
    request.transcript.at(0) === before.transcript.at(0) &&
    request.transcript.at(length - 1) === before.transcript.at(length - 1) &&
    (request.instructions ?? "") === (before.instructions ?? "") &&
    (request.tools === before.tools || boundTools(request.tools ?? []) <= boundTools(before.tools ?? []))
  );
}
