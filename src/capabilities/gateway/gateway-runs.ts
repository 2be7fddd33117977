import {
  Fault,
  formatAgentId,
  type AgentResolver,
  type AttemptContext,
  type HostedAgent,
  type JsonObject,
  type JsonValue,
  type OnBudget,
  type RunContext,
  type RunId,
  type RunRecord,
  type Runtime,
} from "../../kernel/index.ts";
import { Access, AccessCounts, type AccessFigures } from "./access.ts";
import type { StoredAccesses } from "./gateway.ts";
import type { GatewayTokens } from "./gateway-tokens.ts";
import { Refusal } from "./refusal.ts";
import type { Wire } from "./wire.ts";

/**
 * The name of the agents of gateway runs. The key of such an agent is the name of the run. No file of a workspace
 * can have this agent name.
 */
export const gatewayAgentName = "reeve:gateway";

/** The input of a gateway run. */
export interface GatewayRunInput {
  /** Names of the models that may be called. `null` means the models of the gateway. */
  readonly models: readonly string[] | null;
  /** The only protocol (wire) that is served. `null` or absent means all protocols of the gateway. */
  readonly wire?: Wire["name"] | null;
  /** Time at which the run ends, in epoch milliseconds. `null` means that it ends only when it is revoked. */
  readonly expiresAt: number | null;
  /** J8: number of requests before the current journal. */
  readonly served: number;
}

/** Facts that `reeve gateway token` stores with a run, for people and for the server that executes it. */
export interface GatewayRunFacts {
  /** The name of the run. */
  readonly gateway: string;
  /** The budget with which the run was created, without top-ups. */
  readonly maxBudgetUsd: number;
  /**
   * B7: present if the budget renews at the start of each UTC day or month. If absent, the budget is for the whole
   * run.
   */
  readonly per?: "day" | "month";
  readonly wire?: Wire["name"];
}

/** J8: number of requests after which a run begins a new journal as soon as no request is open. */
const requestsPerHistory = 1_000;
/** Maximum time that a request waits for the new journal of its run, in milliseconds. */
const longestPause = 5_000;
/** Longest delay of a timer of Node, in milliseconds. */
const longestTimer = 2_147_483_647;

/** Returns the agent of a gateway run for a process that only submits it. A server executes the run. */
export function gatewayAgent(name: string, onBudget: OnBudget = "end"): HostedAgent {
  return {
    id: formatAgentId({ name: gatewayAgentName, key: name }),
    runKind: "gateway",
    onBudget,
    run: () => Promise.reject(new Fault("unsupported", "a gateway run is executed by reeve serve")),
  };
}

/**
 * The gateway runs that this process executes. Such a run has no code. It pays for the requests that arrive with
 * its tokens, and ends when it is revoked, expires or has used up its budget.
 */
export class GatewayRuns implements StoredAccesses {
  readonly #tokens: GatewayTokens;
  readonly #runs: Pick<Runtime, "findSubmitted">;
  readonly #live = new Map<RunId, Access>();
  /** What the accesses of each run have done in this process. */
  readonly #counts = new Map<RunId, AccessCounts>();
  /** The runs that begin a new journal, with a promise for requests that wait for it. */
  readonly #paused = new Map<RunId, PromiseWithResolvers<void>>();
  readonly #requestsPerHistory: number;
  readonly #serving = new Set<{ readonly settle: () => void; readonly over: Promise<void> }>();
  #isClosed = false;

  constructor(
    tokens: GatewayTokens,
    runs: Pick<Runtime, "findSubmitted">,
    perHistory: number = requestsPerHistory,
  ) {
    this.#tokens = tokens;
    this.#runs = runs;
    this.#requestsPerHistory = perHistory;
  }

  /** Creates the agents of the gateway runs of the store. */
  get resolver(): AgentResolver {
    return {
      name: gatewayAgentName,
      resolve: ({ agentId, metadata }: RunRecord): HostedAgent => ({
        id: agentId,
        runKind: "gateway",
        caps: renewingBudget(metadata),
        run: (ctx) => this.#run(ctx),
      }),
    };
  }

  /**
   * Admits no more requests. It ends the attempts when their open requests have ended; after `graceMs`, it ends
   * these requests too. The next server continues the runs.
   */
  async close(graceMs = 10_000): Promise<void> {
    this.#isClosed = true;
    for (const { settle } of this.#serving) settle();
    const timer = setTimeout(() => {
      for (const access of this.#live.values())
        access.close(new Refusal(503, "the server ends; repeat the request", 2));
    }, graceMs);
    await Promise.all([...this.#serving].map(({ over }) => over));
    clearTimeout(timer);
  }

  async find(tokenHash: string): Promise<Access | undefined> {
    const token = await this.#tokens.find(tokenHash);
    if (token === undefined) return undefined;
    const { runId } = token;
    if (this.#isClosed) throw new Refusal(503, "the server ends; repeat the request", 2);
    const access = this.#live.get(runId) ?? (await this.#afterPause(runId));
    if (access?.isClosed === false) return access;
    const refusal = await this.#refusal(runId);
    if (refusal === undefined) return undefined;
    throw refusal;
  }

  /** The runs that this process executes. */
  driven(): readonly RunId[] {
    return [...this.#live.keys()];
  }

  /** Returns the figures of a run since this process executes it. `undefined` if it does not execute the run. */
  figures(runId: RunId): AccessFigures | undefined {
    return this.#live.get(runId)?.figures;
  }

  async #run(ctx: RunContext): Promise<JsonValue> {
    // The process ends: the code waits until the run is released.
    if (this.#isClosed) return new Promise<never>(() => {});
    const input = ctx.input as unknown as GatewayRunInput;
    const { reason, requests } = await ctx.attempt(
      "requests",
      (attempt) => this.#serve(ctx, attempt, input),
      { holdsSlot: false },
    );
    const served = input.served + requests;
    if (reason === "full") return ctx.continueAsNew({ ...input, served });
    return { reason, requests: served };
  }

  /** Serves requests until the journal of the run is full or the run expires. Throws the refusal that ends the run. */
  async #serve(
    { facts: { runId } }: RunContext,
    attempt: AttemptContext,
    { models, wire, expiresAt }: GatewayRunInput,
  ): Promise<{ readonly reason: "full" | "expired"; readonly requests: number }> {
    const ended = Promise.withResolvers<"full" | "expired">();
    const counts = this.#counts.get(runId) ?? new AccessCounts();
    this.#counts.set(runId, counts);
    const access = new Access(attempt, {
      isOfRun: true,
      counts,
      runId,
      maxRequests: 2 * this.#requestsPerHistory,
      ...(models !== null && { models }),
      ...(wire != null && { wire }),
      onLeave: () => settle(),
    });
    const settle = (): void => {
      if (access.openRequests > 0) return;
      if (access.refusal !== undefined) ended.reject(access.refusal);
      else if (this.#isClosed || access.requests >= this.#requestsPerHistory) ended.resolve("full");
    };
    const over = Promise.withResolvers<void>();
    const serving = { settle, over: over.promise };
    this.#serving.add(serving);
    // With the cancellation as its error, the task ends as cancelled.
    const stop = (): void => ended.reject(attempt.signal.reason);
    attempt.signal.addEventListener("abort", stop);
    if (attempt.signal.aborted) stop();
    const timer = new ExpiryTimer(expiresAt, () => ended.resolve("expired"));
    this.#live.set(runId, access);
    this.#resume(runId);
    try {
      const reason = await ended.promise;
      if (reason === "full") this.#paused.set(runId, Promise.withResolvers());
      return { reason, requests: access.requests };
    } finally {
      timer.stop();
      this.#serving.delete(serving);
      over.resolve();
      attempt.signal.removeEventListener("abort", stop);
      if (this.#live.get(runId) === access) this.#live.delete(runId);
      access.close();
    }
  }

  #resume(runId: RunId): void {
    this.#paused.get(runId)?.resolve();
    this.#paused.delete(runId);
  }

  /** Waits until a run has begun a new journal. `undefined` if the run does not begin one in this process. */
  async #afterPause(runId: RunId): Promise<Access | undefined> {
    const paused = this.#paused.get(runId);
    if (paused === undefined) return undefined;
    const timer = setTimeout(() => this.#resume(runId), longestPause);
    await paused.promise;
    clearTimeout(timer);
    return this.#live.get(runId);
  }

  /** Returns why a run has no access in this process. `undefined` if it has ended and cannot continue. */
  async #refusal(runId: RunId): Promise<Refusal | undefined> {
    const run = await this.#runs.findSubmitted(runId);
    if (run === undefined) return undefined;
    const { status } = await run.summary();
    const order = `reeve top-up ${runId} --usd 1`;
    const isHeld = (await run.pendingApprovals()).some(({ kind }) => kind === "top_up");
    if (isHeld)
      return new Refusal(
        402,
        `the run ${runId} waits for a top-up; answer the question in the inbox, or use ${order}`,
      );
    switch (status) {
      case "completed":
      case "cancelled":
      case "failed":
        return undefined;
      case "budget_exhausted":
        return new Refusal(
          402,
          `the run ${runId} has used up its budget; top it up with ${order}, or ask a person who may`,
        );
      case "paused":
        return new Refusal(503, `the run ${runId} is paused; continue it with reeve resume ${runId}`, 30);
      default:
        return new Refusal(
          503,
          `the run ${runId} is not executed by this server; repeat the request, or start reeve serve`,
          2,
        );
    }
  }
}

/** B7: returns a budget that renews as a cap of the run's agent, because stores count caps, also over crashes. */
function renewingBudget(metadata: JsonObject): NonNullable<HostedAgent["caps"]> {
  const { per, maxBudgetUsd } = metadata as Partial<GatewayRunFacts>;
  if (per === undefined || maxBudgetUsd === undefined) return {};
  return { [per === "day" ? "perAgentPerDayUsd" : "perAgentPerMonthUsd"]: maxBudgetUsd };
}

/** Calls a function at a time that may be later than a timer of Node allows. */
class ExpiryTimer {
  #timer: NodeJS.Timeout | undefined;

  constructor(at: number | null, callback: () => void) {
    if (at === null) return;
    const arm = (): void => {
      const left = at - Date.now();
      if (left <= 0) return callback();
      this.#timer = setTimeout(arm, Math.min(left, longestTimer)).unref();
    };
    arm();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
