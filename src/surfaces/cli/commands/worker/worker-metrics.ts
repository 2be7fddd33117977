import type { Commit, Fault, Lease, UsageDelta } from "../../../../kernel/index.ts";
import type { StoreObserver } from "../../setup/observed-store.ts";
import type { Family, Sample } from "./prometheus.ts";

/** The data that a scrape reads from the store and the process. */
export interface WorkerState {
  /** Number of runs of the store that wait for a worker. `undefined` if the store does not answer. */
  readonly queueLength: number | undefined;
  readonly isReady: boolean;
  readonly version: string;
  readonly engine: string;
}

/** Token counts and costs of one model. Costs are in nano-dollars, so that sums are exact. */
interface ModelUsage {
  input: number;
  output: number;
  unreported: number;
  nanoUsd: number;
}

/** Counts the actions of a worker since the start of its process. */
export class WorkerMetrics implements StoreObserver {
  #owned = 0;
  #claimed = 0;
  #takenOver = 0;
  #steps = 0;
  #leasesLost = 0;
  #heartbeatsLost = 0;
  readonly #ended = new Map<string, number>();
  readonly #usage = new Map<string, ModelUsage>();

  claimed({ recoveries = 0 }: Lease): void {
    this.#owned++;
    this.#claimed++;
    if (recoveries > 0) this.#takenOver++;
  }

  released(): void {
    this.#owned--;
  }

  leaseLost(): void {
    this.#owned--;
    this.#leasesLost++;
  }

  registrationLost(_fault: Fault): void {
    this.#heartbeatsLost++;
  }

  committed(_lease: Lease, { steps = [], events = [], usage = [] }: Commit): void {
    this.#steps += steps.length;
    for (const event of events)
      if (event.type === "run_end")
        this.#ended.set(event.data.status, (this.#ended.get(event.data.status) ?? 0) + 1);
    for (const delta of usage) this.#add(delta);
  }

  #add({ model, inputTokens, outputTokens, lostTokens, nanoUsd }: UsageDelta): void {
    if (model === null) return;
    const known = this.#usage.get(model) ?? { input: 0, output: 0, unreported: 0, nanoUsd: 0 };
    known.input += inputTokens;
    known.output += outputTokens;
    // A correction lowers what was charged (B3), perhaps by another worker. A counter must not go down.
    known.unreported += Math.max(0, lostTokens);
    known.nanoUsd += Math.max(0, nanoUsd);
    this.#usage.set(model, known);
  }

  families({ queueLength, isReady, version, engine }: WorkerState): readonly Family[] {
    const usage = [...this.#usage];
    return [
      gauge("reeve_worker_info", "Version and engine of the worker. Always 1.", [
        { labels: { version, engine }, value: 1 },
      ]),
      gauge("reeve_worker_ready", "Whether the worker claims runs: 1, or 0.", one(isReady ? 1 : 0)),
      gauge("reeve_store_up", "Whether the store answers: 1, or 0.", one(queueLength === undefined ? 0 : 1)),
      gauge("reeve_runs_owned", "Runs whose lease this worker holds.", one(this.#owned)),
      gauge(
        "reeve_queue_length",
        "Runs of the store that are ready and wait for a worker, at most 10000.",
        queueLength === undefined ? [] : one(queueLength),
      ),
      counter("reeve_runs_claimed_total", "Runs that this worker has claimed.", one(this.#claimed)),
      counter("reeve_runs_taken_over_total", "Claimed runs whose former worker died.", one(this.#takenOver)),
      counter(
        "reeve_runs_ended_total",
        "Runs that ended in this worker, by status.",
        [...this.#ended].map(([status, value]) => ({ labels: { status }, value })),
      ),
      counter("reeve_steps_total", "Recorded steps.", one(this.#steps)),
      counter("reeve_leases_lost_total", "Runs that another worker has taken.", one(this.#leasesLost)),
      counter(
        "reeve_heartbeats_lost_total",
        "How often the registration of this worker was lost.",
        one(this.#heartbeatsLost),
      ),
      counter(
        "reeve_tokens_total",
        "Tokens of runs that waited or ended, by model and kind.",
        usage.flatMap(([model, { input, output, unreported }]) =>
          Object.entries({ input, output, unreported }).map(([kind, value]) => ({
            labels: { model, kind },
            value,
          })),
        ),
      ),
      counter(
        "reeve_cost_usd_total",
        "Dollars that runs which waited or ended have spent, by model.",
        usage.map(([model, { nanoUsd }]) => ({ labels: { model }, value: nanoUsd / 1e9 })),
      ),
      ...processFamilies(),
    ];
  }
}

/** Returns the process metrics that every Prometheus client library reports. */
function processFamilies(): readonly Family[] {
  const { user, system } = process.cpuUsage();
  const startedAt = Date.now() / 1_000 - process.uptime();
  return [
    counter("process_cpu_seconds_total", "Processor time of the process.", one((user + system) / 1e6)),
    gauge("process_resident_memory_bytes", "Resident memory of the process.", one(process.memoryUsage.rss())),
    gauge("process_start_time_seconds", "Start of the process since the epoch.", one(startedAt)),
  ];
}

function one(value: number): readonly Sample[] {
  return [{ value }];
}

function gauge(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "gauge", help, samples };
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "counter", help, samples };
}
