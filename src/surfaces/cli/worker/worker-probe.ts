import type { Clock, Store } from "../../../kernel/index.ts";
import { packageVersion } from "../package-root.ts";
import { exposition, expositionType } from "./prometheus.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

/** Maximum time that a probe waits for the store. */
const answerMs = 2_000;

/** Maximum length of the queue that is counted. */
const mostCounted = 10_000;

export interface WorkerProbeOptions {
  readonly store: Pick<Store, "leases">;
  readonly clock: Clock;
  readonly workerId: string;
  readonly engine: string;
  readonly metrics: WorkerMetrics;
}

/**
 * Answers `/healthz`, `/readyz` and `/metrics`. `/healthz` says that the process answers, so that a supervisor does not
 * restart a worker because its database is away. `/readyz` says whether the worker claims runs.
 */
export class WorkerProbe {
  readonly #options: WorkerProbeOptions;
  #isDraining = false;

  constructor(options: WorkerProbeOptions) {
    this.#options = options;
  }

  /** From now on the worker is not ready, because it claims no more runs. */
  noteDraining(): void {
    this.#isDraining = true;
  }

  async fetch({ method, url }: Request): Promise<Response> {
    const { pathname } = new URL(url);
    const answer = this.#answers[pathname];
    if (answer === undefined)
      return text(404, `${pathname} does not exist; use ${Object.keys(this.#answers).join(", ")}`);
    if (method !== "GET" && method !== "HEAD")
      return text(405, `${pathname} does not accept ${method}; use GET`, { allow: "GET, HEAD" });
    return answer();
  }

  /** No answer takes long enough to wait for it. */
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

  /** Why the worker is not ready. `undefined` if it is. */
  async #whyNotReady(): Promise<string | undefined> {
    const { store, workerId, clock } = this.#options;
    if (this.#isDraining) return "the worker is draining";
    if (!store.leases.isConfirmed(workerId)) return "the store has not confirmed the last heartbeat";
    // A claim that can return no run checks the registration and that the store answers.
    const claim = { workerId, limit: 1, only: [], now: clock.now() };
    const isAnswered = await answered(async () => store.leases.claim(claim));
    return isAnswered === undefined ? "the store does not answer claims" : undefined;
  }

  async #queueLength(): Promise<number | undefined> {
    const { store, clock } = this.#options;
    return answered(async () => store.leases.countReady(clock.now(), mostCounted));
  }
}

/** The result of a call to the store, or `undefined` if the call fails or takes too long. */
async function answered<Value>(call: () => Promise<Value>): Promise<Value | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), answerMs);
  try {
    return await Promise.race([call(), late.promise]);
  } catch {
    // The answer says that the store does not answer. The engine reports the error itself to the log.
    return undefined;
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
