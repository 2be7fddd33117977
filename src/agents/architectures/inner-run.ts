import {
  addUsage,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
} from "../../kernel/index.ts";

/**
 * Runs an architecture inside another one and emits its events to the context of `deps`. In a branch, the events go to
 * that branch.
 */
export async function runAndEmit(
  architecture: Architecture,
  session: AgentSession,
  deps: Dependencies,
  prompt: string,
): Promise<void> {
  for await (const draft of architecture.run(session, deps, prompt)) deps.ctx.emitEvent(draft);
}

/** An architecture to run in its own session, inside the session of an invocation. */
export interface InnerRun {
  /** The architecture to run. */
  readonly base: Architecture;
  /** The session in which the architecture runs. */
  readonly inner: AgentSession;
  readonly deps: Dependencies;
  readonly prompt: string;
}

/**
 * Runs an architecture in its own session. Its turns and usage always count for the invocation, also if it fails.
 * B5: if the inner run is stopped, its output so far becomes the output of the invocation, unless the invocation
 * has one already.
 */
export async function* runInner(session: AgentSession, run: InnerRun): AsyncGenerator<EmittableEvent, void> {
  const { base, inner, deps, prompt } = run;
  let isDone = false;
  try {
    yield* base.run(inner, deps, prompt);
    isDone = true;
  } finally {
    session.turns += inner.turns;
    session.cumulativeUsage = addUsage(session.cumulativeUsage, inner.cumulativeUsage);
    session.replies.addAll(inner.replies);
    if (!isDone && session.output === "") session.output = inner.output;
  }
}

/** Copies messages, output, interruption and metadata of an inner session to the session of the invocation. */
export function adoptOutcome(session: AgentSession, inner: AgentSession): void {
  session.messages = inner.messages;
  session.settled = inner.settled;
  session.output = inner.output;
  session.interrupted = inner.interrupted;
  session.interruptionReason = inner.interruptionReason;
  Object.assign(session.metadata, inner.metadata);
}
