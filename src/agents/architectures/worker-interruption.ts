import type { AgentSession, EmittableEvent, TaskOutcome } from "../../kernel/index.ts";

/** Thrown where a worker that is needed met a bound of its own, or a dead end. No fault, for nothing failed. */
export class WorkerInterruption extends Error {
  readonly interruption: NonNullable<TaskOutcome["interruption"]>;

  constructor(worker: string, met: NonNullable<TaskOutcome["interruption"]>) {
    super(`${worker} ended as ${met.status}: ${met.reason}`);
    this.interruption = met;
  }
}

/** Work of those whom others work for: it ends by the bound that one it needs has met. What it had said by then is what there is. */
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
