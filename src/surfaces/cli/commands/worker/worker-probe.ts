import { Fault, type Clock, type Store } from "../../../../kernel/index.ts";
import { packageVersion } from "../../../../assembly/package-root.ts";
import { checkOrigin, hostNames } from "../../../http/access/gate.ts";
import { exposition, expositionType } from "./prometheus.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

/** Maximum time that a probe waits for the store, and for the engine's server. Milliseconds. */
const answerMs = 2_000;

/**
 * Time for which a probe reuses the last answer of the engine's server, so that frequent probes cause no load.
 * Milliseconds.
 */
const trustMs = 1_000;

/** Maximum queue length that is counted. */
const mostCounted = 10_000;

export interface WorkerProbeOptions {
  readonly store: Pick<Store, "leases">;
  readonly clock: Clock;
  readonly workerId: string;
  readonly engine: string;
  /** Rejects if the engine's server does not answer in this time. `undefined` if the engine has no server. */
  readonly checkEngine: ((timeoutMs: number) => Promise<void>) | undefined;
  readonly metrics: WorkerMetrics;
  /** Host names with which clients may address the probes, without a port. */
  readonly hosts: readonly string[];
}

/**
 * Answers `/healthz`, `/readyz` and `/metrics`. `/healthz` reports only whether the process answers, so that a
 * supervisor does not restart a worker because its database is unreachable. `/readyz` reports whether the worker
 * can claim runs: the store must answer, and the engine's server, if it has one.
 */
export class WorkerProbe {
  readonly #options: WorkerProbeOptions;
  readonly #hosts: ReadonlySet<string>;
  #isDraining = false;
  /** The last check of the engine's server. */
  #engineLook: { readonly at: number; readonly problem: Promise<string | undefined> } | undefined;

  constructor(options: WorkerProbeOptions) {
    this.#options = options;
    this.#hosts = hostNames(options.hosts);
  }

  /** From now on the worker reports that it is not ready, because it claims no more runs. */
  noteDraining(): void {
    this.#isDraining = true;
  }

  async fetch(request: Request): Promise<Response> {
    const { method, url } = request;
    const { pathname } = new URL(url);
    try {
      checkOrigin(request, this.#hosts);
    } catch (error) {
      return text(403, Fault.from(error).message);
    }
    const answer = this.#answers[pathname];
    if (answer === undefined)
      return text(404, `${pathname} does not exist; use ${Object.keys(this.#answers).join(", ")}`);
    if (method !== "GET" && method !== "HEAD")
      return text(405, `${pathname} does not accept ${method}; use GET`, { allow: "GET, HEAD" });
    return answer();
  }

  /** Does nothing: every answer of the probe is so fast that no waiting is necessary. */
  async drain(): Promise<void> {}

  readonly #answers: Readonly<Record<string, () => Promise<Response>>> = {
    "/healthz": async () => text(200, "ok"),
    "/readyz": async () => {
      const problem = await this.#whyNotReady();
      return problem === undefined ? text(200, "ready") : text(503, problem);
    },
    "/metrics": async () => {
      const { metrics, engine } = this.#options;
      const [problem, queueLength] = await Promise.all([this.#whyNotReady(), this.#queueLength()]);
      const isReady = problem === undefined;
      const families = metrics.families({ queueLength, isReady, version: packageVersion(), engine });
      return text(200, exposition(families), { "content-type": expositionType });
    },
  };

  /** Returns the reason why the worker is not ready, or `undefined` if it is ready. */
  async #whyNotReady(): Promise<string | undefined> {
    const { store, workerId } = this.#options;
    if (this.#isDraining) return "the worker is draining";
    if (!store.leases.isConfirmed(workerId)) return "the store has not confirmed the last heartbeat";
    const [claims, engine] = await Promise.all([this.#claimProblem(), this.#engineProblem()]);
    return claims ?? engine;
  }

  /**
   * Returns the reason why the store returns no runs. It makes a claim that cannot return a run, which checks the
   * registration, the clock, and that the store answers.
   */
  #claimProblem(): Promise<string | undefined> {
    const { store, workerId, clock } = this.#options;
    const claim = { workerId, limit: 1, only: [], now: clock.now() };
    const claiming = async (): Promise<string | undefined> => {
      try {
        await store.leases.claim(claim);
        return undefined;
      } catch (error) {
        return `the store refuses claims: ${Fault.from(error).message}`;
      }
    };
    return inTime(claiming, "the store does not answer claims");
  }

  /** Returns the reason why the engine cannot work, or `undefined` if it can. Simultaneous probes share one check. */
  #engineProblem(): Promise<string | undefined> {
    const { clock, checkEngine } = this.#options;
    const now = clock.now();
    const known = this.#engineLook;
    if (known !== undefined && now >= known.at && now < known.at + trustMs) return known.problem;
    const problem = (checkEngine?.(answerMs) ?? Promise.resolve()).then(
      () => undefined,
      (error: unknown) => Fault.from(error).message,
    );
    this.#engineLook = { at: now, problem };
    return problem;
  }

  async #queueLength(): Promise<number | undefined> {
    const { store, clock } = this.#options;
    const counting = async (): Promise<number | undefined> => {
      try {
        return await store.leases.countReady(clock.now(), mostCounted);
      } catch {
        // The metrics say that the store does not answer. The engine reports the error itself to the log.
        return undefined;
      }
    };
    return inTime(counting, undefined);
  }
}

/** Returns the result of a call, or `otherwise` if the call takes too long. */
async function inTime<Value>(call: () => Promise<Value>, otherwise: Value): Promise<Value> {
  const late = Promise.withResolvers<Value>();
  const timer = setTimeout(() => late.resolve(otherwise), answerMs);
  try {
    return await Promise.race([call(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function text(status: number, body: string, headers: Record<string, string> = {}): Response {
  const type = "text/plain; charset=utf-8";
  const end = body.endsWith("\n") ? "" : "\n";
  return new Response(`${body}${end}`, {
    status,
    headers: { "content-type": type, "cache-control": "no-store", ...headers },
  });
}
