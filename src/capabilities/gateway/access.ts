import { createHash, randomBytes } from "node:crypto";
import {
  BudgetExhaustedError,
  Fault,
  type AttemptContext,
  type EventData,
  type ExhaustedCap,
  type RunId,
} from "../../kernel/index.ts";
import { Refusal } from "./refusal.ts";
import { ByteLimit } from "./request-body.ts";
import type { Wire } from "./wire.ts";

/** The part of an attempt's context that pays for the requests of a program. */
export type GatewayMeter = Pick<AttemptContext, "metered" | "signal" | "emitEvent">;

/** Which requests an access serves. */
export interface AccessLimits {
  /**
   * Names of the models that may be called, in addition to the rule of the gateway. If absent, only the gateway's
   * rule applies.
   */
  readonly models?: readonly string[];
  /** The only protocol (wire) that is served. If absent, all protocols of the gateway are served. */
  readonly wire?: Wire["name"];
  /** Maximum number of requests. If absent, there is no limit. */
  readonly maxRequests?: number;
  /**
   * Whether the access belongs to a gateway run, which has no end of its own. A refusal because of its budget ends
   * such an access. A refusal because of a cap, or while a person is asked for a top-up, does not. Default:
   * `false`.
   */
  readonly isOfRun?: boolean;
  /** The run that pays. The text of a refusal names it. */
  readonly runId?: RunId;
  /**
   * H2: how long a request waits while the task of the program has no seat, in milliseconds. When this time has
   * passed, the request is refused. If absent, it waits until the task has a seat again.
   */
  readonly seatWaitMs?: number;
  /**
   * Called with the reason when a request was refused because of a budget or cap, or because the task had no seat
   * for `seatWaitMs`.
   */
  readonly onRefusal?: (fault: Fault) => void;
  /** Counts over all accesses of the run. If absent, only this access is counted. */
  readonly counts?: AccessCounts;
  /** Called when a request has ended. */
  readonly onLeave?: (access: Access) => void;
}

/** Figures of an access since this process executes its run. */
export interface AccessFigures {
  readonly open: number;
  /** Number of open requests that wait for a top-up. */
  readonly held: number;
  readonly refused: number;
  /**
   * How long the gateway delayed the last requests before it sent them, on average, in milliseconds. `null` before
   * the first request.
   */
  readonly addedDelayMs: number | null;
}

/** Counts the requests of all accesses of one run. */
export class AccessCounts {
  refused = 0;
  readonly #delays: number[] = [];

  addDelay(ms: number): void {
    this.#delays.push(ms);
    if (this.#delays.length > countedDelays) this.#delays.shift();
  }

  get addedDelayMs(): number | null {
    const count = this.#delays.length;
    return count === 0 ? null : this.#delays.reduce((sum, ms) => sum + ms, 0) / count;
  }
}

/** Number of last requests from which the average delay is computed. */
const countedDelays = 100;

/** A request that an access has let in. */
export interface OpenRequest {
  /** Hash of the token with which it came. */
  readonly token: string;
  /** Ends the request. If the reason of the abort is a `Refusal`, the program receives it. */
  readonly cut: AbortController;
}

/** Number of token counts that an access may request at once. The same number is added per second. */
const countsAtOnce = 60;
const countsPerSecond = 1;
/** Number of unpaid requests at once for which an event is written. The same number is added per second. */
const eventsAtOnce = 30;
const eventsPerSecond = 1 / 30;
/** Longest text of a refusal in the log. */
const longestReason = 500;

/**
 * The access of one program, or of all programs of a gateway run. It knows who pays, and which requests are open.
 * It closes when its attempt ends, is cancelled, or loses its run to another process.
 */
export class Access {
  readonly meter: GatewayMeter;
  readonly models: readonly string[] | undefined;
  readonly wire: Wire["name"] | undefined;
  readonly #limits: AccessLimits;
  readonly #open = new Set<OpenRequest>();
  /** The open requests that wait for a top-up. They do not count against the limit of open requests. */
  readonly #held = new Set<OpenRequest>();
  readonly counts: AccessCounts;
  readonly #tokenCounts = new Bucket(countsAtOnce, countsPerSecond);
  readonly #events = new Bucket(eventsAtOnce, eventsPerSecond);
  #bytes: ByteLimit | undefined;
  #skipped = 0;
  #refusal: Fault | undefined;
  #requests = 0;
  #isClosed = false;

  constructor(meter: GatewayMeter, limits: AccessLimits = {}) {
    this.meter = meter;
    this.models = limits.models;
    this.wire = limits.wire;
    this.#limits = limits;
    this.counts = limits.counts ?? new AccessCounts();
    const { signal } = meter;
    if (signal.aborted) this.#isClosed = true;
    signal.addEventListener("abort", () => this.close());
  }

  /** The first refusal because of money. */
  get refusal(): Fault | undefined {
    return this.#refusal;
  }

  /** Number of open requests. */
  get openRequests(): number {
    return this.#open.size;
  }

  get figures(): AccessFigures {
    const { refused, addedDelayMs } = this.counts;
    return { open: this.#open.size, held: this.#held.size, refused, addedDelayMs };
  }

  /** How long a request waits for the seat of the task. */
  get seatWaitMs(): number | undefined {
    return this.#limits.seatWaitMs;
  }

  /** Number of requests so far. */
  get requests(): number {
    return this.#requests;
  }

  /** No request is let in any more. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Returns the limit of the bytes that the open requests of the access may have. */
  bytes(maxBytes: number): ByteLimit {
    return (this.#bytes ??= new ByteLimit(maxBytes));
  }

  /** Admits a request. Throws if too many requests with its token are open. */
  enter(token: string, maxOpenRequests: number): OpenRequest {
    let open = 0;
    for (const each of this.#open) if (each.token === token && !this.#held.has(each)) open++;
    if (open >= maxOpenRequests)
      throw new Refusal(429, `the token has ${maxOpenRequests} open requests; wait for one of them`, 1);
    const { maxRequests, isOfRun = false } = this.#limits;
    if (isOfRun && this.#refusal !== undefined) throw this.refusalOf(this.#refusal);
    if (maxRequests !== undefined && this.#requests >= maxRequests)
      throw new Refusal(503, "the run of the token begins a new history; repeat the request", 1);
    this.#requests++;
    const request: OpenRequest = { token, cut: new AbortController() };
    this.#open.add(request);
    return request;
  }

  /**
   * Records that a request waits for a top-up. Returns `false` if the request must not wait, because too many
   * requests already wait.
   */
  hold(request: OpenRequest, maxHeld: number): boolean {
    if (this.#held.size >= maxHeld || !this.#open.has(request)) return false;
    this.#held.add(request);
    return true;
  }

  /** Records that a request may be sent. Returns whether it waited for a top-up. */
  release(request: OpenRequest): boolean {
    return this.#held.delete(request);
  }

  leave(request: OpenRequest): void {
    this.#open.delete(request);
    this.#held.delete(request);
    this.#limits.onLeave?.(this);
  }

  /**
   * Takes one token count from the limit. Counting is free at the provider, but limited per minute for all programs
   * together. Throws if the limit is reached.
   */
  takeCount(now: number): void {
    if (!this.#tokenCounts.take(now))
      throw new Refusal(429, "the program counts tokens too often; wait a second", 1);
  }

  /**
   * Returns the error for the program. A refusal because of a budget says how to top up, or when the budget renews.
   */
  refusalOf(error: unknown): unknown {
    if (!(error instanceof BudgetExhaustedError)) return error;
    const { message, cap } = error;
    const { runId, isOfRun = false } = this.#limits;
    if (cap !== null)
      return new Refusal(402, isOfRun ? describeCap(cap) : `${message}; a cap cannot be topped up`);
    const order = runId === undefined ? "reeve top-up" : `reeve top-up ${runId} --usd 1`;
    const asked = isAsked(error) ? "a person was asked for a top-up in the inbox; or " : "";
    return new Refusal(402, `${message}; ${asked}top up the run with ${order}, or ask a person who may`);
  }

  /** Records why a request was refused, if the reason is a budget, a cap or the seat of the task. */
  note(error: unknown): void {
    const isForSeat = Fault.is(error) && error.code === "seat_lost";
    if (isForSeat || error instanceof BudgetExhaustedError) this.#limits.onRefusal?.(error);
    if (!(error instanceof BudgetExhaustedError)) return;
    this.counts.refused++;
    if (this.#limits.isOfRun === true && (error.cap !== null || isAsked(error))) return;
    this.#refusal ??= error;
  }

  /**
   * Adds an unpaid request to the log, so that the owner of the run sees refused requests. If there are very many,
   * only a few get an event.
   */
  log(now: number, data: Omit<EventData["gateway_request"], "skipped">): void {
    if (data.reason !== undefined) this.counts.refused++;
    if (this.#isClosed) return;
    if (!this.#events.take(now)) {
      this.#skipped++;
      return;
    }
    const { reason } = data;
    const skipped = this.#skipped;
    this.#skipped = 0;
    this.meter.emitEvent({
      type: "gateway_request",
      data: {
        ...data,
        ...(reason !== undefined && { reason: reason.slice(0, longestReason) }),
        ...(skipped > 0 && { skipped }),
      },
    });
  }

  /** Admits no more requests, and ends the open ones. */
  close(reason: Refusal = this.#gone()): void {
    this.#isClosed = true;
    for (const { cut } of this.#open) cut.abort(reason);
  }

  #gone(): Refusal {
    // The next owner of a gateway run serves its tokens.
    if (this.#limits.isOfRun === true)
      return new Refusal(503, "the run of the token is not executed here any more; repeat the request", 2);
    return goneRefusal();
  }
}

/** The refusal of a token that was valid. */
export function goneRefusal(): Refusal {
  return new Refusal(
    401,
    "the token is not known, or its task has ended; use the token that the gateway gave",
  );
}

/** Limits how often something happens: a number of times at once, and the same number per second. */
class Bucket {
  readonly #capacity: number;
  readonly #perSecond: number;
  #left: number;
  #at: number | undefined;

  constructor(capacity: number, perSecond: number) {
    this.#capacity = capacity;
    this.#perSecond = perSecond;
    this.#left = capacity;
  }

  /** `now` in milliseconds. */
  take(now: number): boolean {
    const gained = (Math.max(0, now - (this.#at ?? now)) / 1000) * this.#perSecond;
    this.#left = Math.min(this.#capacity, this.#left + gained);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}

/** B5: whether the question for a top-up is still open. */
function isAsked({ details }: BudgetExhaustedError): boolean {
  return details?.["isAsked"] === true;
}

/**
 * Describes an exhausted cap. A gateway run continues by itself when the cap resets, so that no person must resume
 * it.
 */
function describeCap({ name, limitUsd, spentUsd, neededUsd, resetsAt }: ExhaustedCap): string {
  return `the cap ${name} of ${limitUsd} USD is used up: ${spentUsd} USD are spent, and the request needs up to ${neededUsd} USD; it resets at ${resetsAt}, and cannot be topped up`;
}

/** Returns a new token. */
export function newToken(): string {
  return `rvg_${randomBytes(32).toString("base64url")}`;
}

/** Returns the hash of a token. Only hashes of tokens are compared and stored. */
export function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
