import type { AgentSession, EmittableEvent, TaskOutcome } from "../../kernel/index.ts";

/**
 * An error that says that a required worker reached a limit, such as `maxTurns`, or could not continue. It is not a
 * `Fault`, because nothing failed.
 */
export class WorkerInterruption extends Error {
  readonly interruption: NonNullable<TaskOutcome["interruption"]>;

  constructor(worker: string, interruption: NonNullable<TaskOutcome["interruption"]>) {
    super(`${worker} ended with status ${interruption.status}: ${interruption.reason}`);
    this.interruption = interruption;
  }
}

/**
 * Runs an architecture that needs workers. If a required worker is interrupted, the architecture ends with the same
 * interruption and keeps its output so far.
 */
export async function* endOnWorkerInterruption(
  session: AgentSession,
  work: AsyncIterable<EmittableEvent>,
): AsyncIterable<EmittableEvent> {
  try {
    yield* work;
  } catch (error) {
    if (!(error instanceof WorkerInterruption)) throw error;
    session.interrupted = true;
    session.interruptionReason = error.interruption.reason;
  }
}
