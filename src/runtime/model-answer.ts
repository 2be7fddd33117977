import {
  BudgetExhaustedError,
  CancellationError,
  classifyError,
  Fault,
  fromNanoUsd,
  retryDelayMs,
  type ClassifiedError,
  type DeltaFilter,
  type LlmReply,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type Usage,
} from "../kernel/index.ts";
import { reserveCall, type Grant } from "./call-reservation.ts";
import { DeltaStream } from "./delta-stream.ts";
import type { OpenStep } from "./open-step.ts";
import { priceUsage } from "./price-usage.ts";
import type { TaskRunner } from "./task-runner.ts";

/** What came of a call. `settle` is for the breath in which the step is recorded. */
export interface CalledModel {
  readonly settle: () => LlmReply;
  /** Whose count of input is that of the transcript as it stands; nobody's if something on the way changed it. */
  readonly countedBy: Model | undefined;
}

/** One request as it goes out. */
export interface Outgoing {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly role: string;
  /** B1: of input, at most, as this model may count. */
  readonly inputTokens: (model: Model) => number;
  readonly filters: readonly DeltaFilter[];
}

/** How often a step has called a model, whichever. B1: a turn counts once, with the first attempt that is charged. */
export interface Attempts {
  count: number;
  turns: number;
}

/** An answer, and the reservation it is paid from. */
export interface Answer {
  readonly response: ModelResponse;
  readonly model: Model;
  readonly grant: Grant;
}

/**
 * Reserve, call; again after a failure that may pass (J5: inside the step). Each attempt reserves anew, and one that ends without
 * reported usage is charged in full (B3). Of several models that may answer, each is asked once before there is a pause; not after
 * a piece of an answer was shown. What it resolves to has not been settled.
 */
export async function callAnswered(open: OpenStep, outgoing: Outgoing, attempts: Attempts): Promise<Answer> {
  const { runner } = open;
  const { retry, random } = runner.owner;
  const line = lineUp(outgoing);
  let place = 0;
  for (let attempt = 1; ; attempt++) {
    const round = await askInLine(open, outgoing, attempts, line.slice(place));
    const success = "response" in round;
    const ended = { type: "retry_end", data: { attempt: attempt - 1, success } } as const;
    if (success) {
      attempts.turns = 0;
      if (attempt > 1) open.tell(ended);
      return round;
    }
    const { kind, retryable, message, retryAfterMs } = round.error;
    const fault = new Fault(`model_${kind}`, message, { cause: round.cause });
    if (!retry.enabled || !retryable || fault.retry !== "backoff" || attempt > retry.maxRetries) {
      if (attempt > 1) open.tell(ended);
      throw fault;
    }
    // Whoever has begun to answer is asked again.
    place = round.shown
      ? Math.max(
          0,
          line.findIndex(({ model }) => model === round.model),
        )
      : 0;
    if (attempt > 1) runner.tell(ended);
    const delayMs = retryDelayMs(attempt, retry, random, retryAfterMs);
    const start = { attempt, maxAttempts: retry.maxRetries, delayMs, kind, message };
    runner.tell({ type: "retry_start", data: start });
    await delay(open, delayMs);
  }
}

/** A model that may answer, and whether a failure of its passes the request on. */
interface Candidate {
  readonly model: Model;
  readonly passesOn: (error: ClassifiedError) => boolean;
}

/** A model may stand for others that stand for others. The last of a line passes on by the rule of the line around it. */
function lineUp({
  model,
  request,
  role,
}: Pick<Outgoing, "model" | "request" | "role">): readonly Candidate[] {
  const { choice } = model;
  if (choice === undefined) return [{ model, passesOn: () => false }];
  const lines = choice.candidates(request, { role }).map((each) => lineUp({ model: each, request, role }));
  const passesOn = (error: ClassifiedError): boolean => choice.passesOn(error);
  return lines.flatMap((line, index) =>
    index === lines.length - 1
      ? line
      : line.map((each, place) => (place === line.length - 1 ? { ...each, passesOn } : each)),
  );
}

/** Asks one after the other until one answers. Of failures, one that may pass by waiting is the one that counts. */
async function askInLine(
  open: OpenStep,
  outgoing: Outgoing,
  attempts: Attempts,
  line: readonly Candidate[],
): Promise<Attempt> {
  let failed: Failed | undefined;
  for (const [place, { model, passesOn }] of line.entries()) {
    attempts.count++;
    const result = await attemptCall(open, { ...outgoing, model }, attempts);
    if ("response" in result) return result;
    if (result.charged) attempts.turns = 0;
    const { kind, retryable, message } = result.error;
    failed = failed === undefined || result.shown || (!failed.error.retryable && retryable) ? result : failed;
    const next = line[place + 1]?.model;
    if (next === undefined || result.shown || !passesOn(result.error)) break;
    const from = { provider: model.provider, modelId: model.modelId };
    const to = { provider: next.provider, modelId: next.modelId };
    open.runner.tell({ type: "model_fallback", data: { from, to, kind, message } });
  }
  if (failed === undefined) throw new Fault("invalid_argument", "a model's choice named no model to ask");
  return failed;
}

interface Failed {
  readonly error: ClassifiedError;
  readonly cause: unknown;
  readonly model: Model;
  readonly charged: boolean;
  /** Watchers have seen a piece of its answer. */
  readonly shown: boolean;
}

type Attempt = Answer | Failed;

async function attemptCall(open: OpenStep, outgoing: Outgoing, attempts: Attempts): Promise<Attempt> {
  const { runner, strand } = open;
  const { model, request, inputTokens } = outgoing;
  const { count: attempt, turns } = attempts;
  const { maxOutputTokens } = request;
  const grant = await reserveCall({
    open,
    model,
    inputTokens: inputTokens(model),
    maxOutputTokens,
    attempt,
    turns,
  });
  let parts = 0;
  try {
    open.start();
    await runner.live(runner.log.flush());
    runner.check(strand);
  } catch (error) {
    runner.tree.book(runner.taskId, { type: "refund", id: grant.id });
    throw error;
  }
  try {
    const limited = { ...outgoing, request: limit(request, grant) };
    const response = await runner.live(invoke(open, limited, attempt, () => parts++));
    return { response, model, grant };
  } catch (error) {
    const classified = classifyError(error, { now: runner.owner.clock.now() });
    // Refused before any body, or never sent: nothing was billed. Anything else may have been.
    const refused = Fault.is(error) && !(error instanceof CancellationError);
    const unsent = refused || unreached.has(classified.providerCode ?? "");
    const charged = parts > 0 || (classified.status === undefined && !unsent);
    if (charged) lose(runner, grant.id);
    else runner.tree.book(runner.taskId, { type: "refund", id: grant.id });
    open.end();
    const stop = strand.token.error;
    if (stop !== undefined) throw stop;
    if (Fault.is(error) && !isModelFault(error)) throw error;
    return { error: classified, cause: error, model, charged, shown: parts > 0 };
  }
}

/** Codes of the platform for a connection that never came about. */
const unreached: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
]);

/** Of a kind that trying again, or another model, may mend; any other fault of a model is about the request or the set-up. */
function isModelFault({ code }: Fault): boolean {
  return code.startsWith("model_");
}

/** B1, B3: what the answer cost, taken from its reservation. */
export function payFor({ runner }: OpenStep, { response, grant }: Answer): Usage {
  const { taskId, tree } = runner;
  const costUsd = priceUsage(grant.priceOf(response.usage.inputTokens), response.usage);
  const usage = { ...response.usage, costUsd };
  const tokens = usage.inputTokens + usage.outputTokens;
  tree.book(taskId, { type: "settle", id: grant.id, tokens, costUsd });
  if (runner.state.headcount.tasks[taskId]?.shielded === true) runner.log.seat({ type: "progress", taskId });
  return usage;
}

/** What the caller gets, and the journal keeps (J7). */
export function conclude(
  open: OpenStep,
  { model, grant }: Pick<Answer, "model"> & { readonly grant?: Grant },
  { message, stopReason, modelId }: ModelResponse,
  usage: Usage,
): LlmReply {
  const named = { provider: model.provider, modelId: modelId ?? model.modelId };
  open.tell({ type: "message_end", data: { message, stopReason, usage, model: named } });
  const cutBy = grant?.cutBy ?? null;
  if (cutBy !== null && stopReason === "length") {
    const { dimension, limit: most, used, taskId: of } = cutBy;
    open.tell({ type: "budget_exhausted", data: cutBy });
    const reason = "the answer was cut at what was left of the budget";
    throw new BudgetExhaustedError({ dimension, limit: most, used, details: { taskId: of, reason } });
  }
  return { message, stopReason, usage, model: named };
}

async function invoke(
  open: OpenStep,
  { model, request, filters }: Outgoing,
  attempt: number,
  onPart: () => void,
): Promise<ModelResponse> {
  const { runner, strand } = open;
  const { signal } = strand;
  if (!runner.task.record.streaming) return model.generate(request, { signal });
  const deltas = new DeltaStream(open, attempt, filters);
  deltas.begin();
  for await (const part of model.stream(request, { signal })) {
    onPart();
    if (part.type === "finish") {
      deltas.flush();
      const { type: _type, ...response } = part;
      return response;
    }
    deltas.push(part);
  }
  throw new Error("the stream ended without a finish: the connection was cut");
}

/** B3: it may have cost all that was held. */
function lose(runner: TaskRunner, reservationId: string): void {
  const { taskId, tree, state } = runner;
  const reservation = state.ledger.open[reservationId];
  if (reservation === undefined) return;
  const { attempt, held, priced } = reservation;
  const costUsd = priced ? fromNanoUsd(held.nanoUsd) : null;
  runner.tell({ type: "budget_lost", data: { reservationId, attempt, tokens: held.tokens, costUsd } });
  tree.book(taskId, { type: "lose", id: reservationId });
}

/** B1: a limit is sent when one was asked for, or when a cap stands: what was reserved is then all it may write. */
function limit(request: ModelRequest, { outputTokens, capped }: Grant): ModelRequest {
  if (!capped && request.maxOutputTokens === undefined) return request;
  return { ...request, maxOutputTokens: outputTokens };
}

/** Between two attempts. Not journaled. */
async function delay({ runner, strand }: OpenStep, delayMs: number): Promise<void> {
  const { clock } = runner.owner;
  const over = Promise.withResolvers<void>();
  const cancel = clock.schedule(clock.now() + delayMs, over.resolve);
  try {
    await runner.resting(strand, over.promise);
  } finally {
    cancel();
  }
}
