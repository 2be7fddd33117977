import {
  followExperiment,
  meanOf,
  readExperiment,
  type ExperimentResult,
  type TrialResult,
} from "../../../../experiments/index.ts";
import type { Failure, RunHandle } from "../../../../kernel/index.ts";
import { counted, dollars, duration } from "../../terminal/format.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

/** How a run of an experiment ended. */
export interface EndedExperiment {
  readonly result: ExperimentResult;
  /** The error with which the run failed. `null` if it did not fail. */
  readonly failure: Failure | null;
}

/**
 * Follows a run to its end and shows its progress. If the person interrupts, returns `undefined` and leaves the run
 * unchanged.
 */
export async function untilEnded(run: RunHandle, terminal: Terminal): Promise<EndedExperiment | undefined> {
  const progress = new Progress(terminal);
  const stopped = new AbortController();
  const forget = terminal.onInterrupt(() => {
    if (stopped.signal.aborted) process.kill(process.pid, "SIGKILL");
    stopped.abort();
    terminal.say("reeve: stopping; press Ctrl-C again to end this process at once");
  });
  try {
    let failure: Failure | null = null;
    for await (const seen of followExperiment(run, stopped.signal)) {
      if (seen.kind === "head") progress.expected = seen.head.expectedTrials;
      if (seen.kind === "trial") progress.add(seen.trial);
      if (seen.kind === "question")
        terminal.say(
          `reeve: ${run.runId} waits for an answer of a person: ${printable(seen.question)}; answer it with reeve approve ${run.runId}`,
        );
      if (seen.kind === "end") failure = seen.failure;
    }
    terminal.status?.("");
    if (stopped.signal.aborted) return undefined;
    return { result: await readExperiment(run), failure };
  } finally {
    forget();
  }
}

/** Shows the progress of an experiment in one line. */
class Progress {
  expected = 0;
  readonly #terminal: Terminal;
  readonly #startedAt = Date.now();
  readonly #scores = new Map<string, number[]>();
  #ended = 0;
  #costUsd: number | null = 0;
  #tenth = 0;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  add({ costUsd, scores }: TrialResult): void {
    this.#ended += 1;
    this.#costUsd = this.#costUsd === null || costUsd === null ? null : this.#costUsd + costUsd;
    for (const [scorer, { score }] of Object.entries(scores)) {
      if (score === null) continue;
      const known = this.#scores.get(scorer);
      if (known === undefined) this.#scores.set(scorer, [score]);
      else known.push(score);
    }
    const { status } = this.#terminal;
    if (status !== undefined) return status(this.#line());
    // A log gets at most ten lines.
    const tenth = Math.floor((10 * this.#ended) / Math.max(1, this.expected));
    if (tenth > this.#tenth) this.#terminal.say(this.#line());
    this.#tenth = tenth;
  }

  #line(): string {
    const means = [...this.#scores].map(
      ([scorer, scores]) => `${printable(scorer)} ${meanOf(scores).toFixed(3)}`,
    );
    const left = Math.max(0, this.expected - this.#ended);
    const leftMs = ((Date.now() - this.#startedAt) / this.#ended) * left;
    return [
      `${counted(this.#ended)} of ${counted(this.expected)} trials`,
      ...means,
      dollars(this.#costUsd),
      left === 0 ? "done" : `${duration(leftMs)} left`,
    ].join("  ");
  }
}
