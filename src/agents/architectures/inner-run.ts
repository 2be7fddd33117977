import {
  addUsage,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
} from "../../kernel/index.ts";

/** Runs an architecture inside another, telling what it yields where it works: in a branch, into the branch. */
export async function runAndEmit(
  architecture: Architecture,
  session: AgentSession,
  deps: Dependencies,
  prompt: string,
): Promise<void> {
  for await (const draft of architecture.run(session, deps, prompt)) deps.ctx.emitEvent(draft);
}

/** A session of an architecture's own, inside that of an invocation. */
export interface InnerRun {
  readonly base: Architecture;
  readonly inner: AgentSession;
  readonly deps: Dependencies;
  readonly prompt: string;
}

/**
 * Runs an architecture in a session of its own. What it took counts in the invocation's, however it ends. B5: one that is stopped leaves
 * what it had said, where nothing better was there.
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
    if (!isDone && session.output === "") session.output = inner.output;
  }
}

/** What was said and come to in an inner session is what was said and come to in the invocation's. */
export function adoptOutcome(session: AgentSession, inner: AgentSession): void {
  session.messages = inner.messages;
  session.settled = inner.settled;
  session.output = inner.output;
  session.interrupted = inner.interrupted;
  session.interruptionReason = inner.interruptionReason;
  Object.assign(session.metadata, inner.metadata);
}
