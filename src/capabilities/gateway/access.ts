import { createHash, randomBytes } from "node:crypto";
import {
  BudgetExhaustedError,
  type AttemptContext,
  type ExhaustedCap,
  type Fault,
  type RunId,
} from "../../kernel/index.ts";
import { Refusal } from "./refusal.ts";
import type { Wire } from "./wire.ts";

/** What pays for the requests of a program: the context of an attempt. */
export type GatewayMeter = Pick<AttemptContext, "metered" | "signal" | "emitEvent">;

/** Which requests an access serves. */
export interface AccessLimits {
  /** Names of the models that may be called, in addition to the rule of the gateway. If absent, only that rule counts. */
  readonly models?: readonly string[];
  /** The only wire that is served. If absent, every wire of the gateway is. */
  readonly wire?: Wire["name"];
  /** Number of requests after which no further one is let in. If absent, there is no limit. */
  readonly maxRequests?: number;
  /**
   * Whether the access belongs to a gateway run, which has no end of its own: a refusal because of its budget ends it. One
   * because of a cap does not, and neither does one while a person is asked for a top-up. Default: `false`.
   */
  readonly isOfRun?: boolean;
  /** The run that pays, for the text of a refusal. */
  readonly runId?: RunId;
  /** Called when a request has ended. */
  readonly onLeave?: (access: Access) => void;
}

/** The access of one program, or of all programs of a gateway run: who pays, and which requests are open. */
export class Access {
  readonly meter: GatewayMeter;
  readonly models: readonly string[] | undefined;
  readonly wire: Wire["name"] | undefined;
  readonly #limits: AccessLimits;
  /** The open requests, with the bytes of their bodies. */
  readonly #open = new Map<AbortController, number>();
  #refusal: Fault | undefined;
  #requests = 0;

  constructor(meter: GatewayMeter, limits: AccessLimits = {}) {
    this.meter = meter;
    this.models = limits.models;
    this.wire = limits.wire;
    this.#limits = limits;
  }

  /** The first refusal because of money. */
  get refusal(): Fault | undefined {
    return this.#refusal;
  }

  /** Number of open requests. */
  get openRequests(): number {
    return this.#open.size;
  }

  /** Number of requests so far. */
  get requests(): number {
    return this.#requests;
  }

  /** Lets a request in. The returned controller cuts it. Throws if too many are open. */
  enter(maxOpenRequests: number): AbortController {
    if (this.#open.size >= maxOpenRequests)
      throw new Refusal(429, `the token has ${maxOpenRequests} open requests; wait for one of them`, 1);
    const { maxRequests, isOfRun = false } = this.#limits;
    if (isOfRun && this.#refusal !== undefined) throw this.refusalOf(this.#refusal);
    if (maxRequests !== undefined && this.#requests >= maxRequests)
      throw new Refusal(503, "the run of the token begins a new history; repeat the request", 1);
    this.#requests++;
    const cut = new AbortController();
    this.#open.set(cut, 0);
    return cut;
  }

  /** Notes the size of the body of an open request. Throws if those of all open requests need too much memory. */
  hold(cut: AbortController, bytes: number, maxBytes: number): void {
    this.#open.set(cut, bytes);
    const held = [...this.#open.values()].reduce((sum, each) => sum + each, 0);
    if (held > maxBytes)
      throw new Refusal(
        429,
        `the open requests of the token have more than ${maxBytes} bytes; wait for one of them`,
        1,
      );
  }

  leave(cut: AbortController): void {
    this.#open.delete(cut);
    this.#limits.onLeave?.(this);
  }

  /** Returns the error for the program. A refusal because of money says how to top up, or when the budget renews. */
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

  /** Notes why a request was refused, if the reason is money. */
  note(error: unknown): void {
    if (!(error instanceof BudgetExhaustedError)) return;
    if (this.#limits.isOfRun === true && (error.cap !== null || isAsked(error))) return;
    this.#refusal ??= error;
  }

  /** Cuts the open requests. */
  close(): void {
    for (const cut of this.#open.keys()) cut.abort();
  }
}

/** B5: whether the question for a top-up is still open. */
function isAsked({ details }: BudgetExhaustedError): boolean {
  return details?.["isAsked"] === true;
}

/** A gateway run continues by itself when a cap resets, so that no person has to resume it. */
function describeCap({ name, limitUsd, spentUsd, neededUsd, resetsAt }: ExhaustedCap): string {
  return `the cap ${name} of ${limitUsd} USD is used up: ${spentUsd} USD are spent, and the request needs up to ${neededUsd} USD; it resets at ${resetsAt}, and cannot be topped up`;
}

/** Returns a new token. */
export function newToken(): string {
  return `rvg_${randomBytes(32).toString("base64url")}`;
}

/** Returns the hash of a token. No token is compared or kept as it is. */
export function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
