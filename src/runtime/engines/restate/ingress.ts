import { Fault, type RunId } from "../../../kernel/index.ts";
import type { Wake } from "./run-object.ts";

/** Longest time of a request to Restate. Milliseconds. */
const requestMs = 10_000;

/** Sends wake-ups of runs to Restate. */
export class Ingress {
  readonly #url: string;
  readonly #service: string;

  constructor(url: string, service: string) {
    this.#url = url.replace(/\/+$/u, "");
    this.#service = service;
  }

  /** Rejects with `engine_unavailable` if the ingress does not answer in this time. Milliseconds. */
  async check(timeoutMs = requestMs): Promise<void> {
    const problem = await request(`${this.#url}/restate/health`, { method: "GET" }, timeoutMs);
    if (problem === undefined) return;
    throw new Fault(
      "engine_unavailable",
      `the ingress of Restate at ${this.#url} cannot be reached: ${problem}; check the address and that Restate runs`,
      { details: { url: this.#url } },
    );
  }

  /** Resolves when Restate has stored the wake-up. Rejects with `engine_unavailable`. */
  send(runId: RunId, wake: Wake): Promise<void> {
    return this.#post(runId, wake, {});
  }

  /**
   * Sends a wake-up that may have been lost, or that other workers send as well. Restate ignores it while an
   * earlier wake-up of the run has not ended. So if a run waits for a worker, at most one of these wake-ups
   * remains, whatever the number of workers.
   */
  sendAgain(runId: RunId, wake: Wake): Promise<void> {
    return this.#post(runId, wake, { "idempotency-key": "sweep" });
  }

  async #post(runId: RunId, wake: Wake, headers: Readonly<Record<string, string>>): Promise<void> {
    const target = `${this.#url}/${this.#service}/${encodeURIComponent(runId)}/drive/send`;
    const problem = await request(target, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(wake),
    });
    if (problem === undefined) return;
    throw new Fault(
      "engine_unavailable",
      `Restate at ${this.#url} did not accept the wake-up of ${runId}: ${problem}. The run is stored, and a worker sends the wake-up again; check the address, and register the workers of the service ${this.#service} with reeve deploy`,
      { details: { runId, url: this.#url } },
    );
  }
}

/** Sends a request. Returns why it failed. */
async function request(
  target: string,
  init: RequestInit,
  timeoutMs = requestMs,
): Promise<string | undefined> {
  try {
    const response = await fetch(target, { ...init, signal: AbortSignal.timeout(timeoutMs) });
    const text = await response.text();
    return response.ok ? undefined : `${response.status} ${text.slice(0, 200)}`;
  } catch (error) {
    const { cause } = error as Error;
    return cause instanceof Error ? cause.message || String(cause) : (error as Error).message;
  }
}
