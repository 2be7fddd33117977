import { Fault, rootTaskId as root, type Guest, type RunId, type RunRecord } from "../../kernel/index.ts";
import { whyFinal } from "../journal/resume-plan.ts";
import type { RuntimeLifetime } from "../process/runtime-lifetime.ts";
import type { RunStore } from "./run-store.ts";
import { mayResume, type StoredRun } from "./stored-run.ts";

/**
 * Throws if a workflow cannot be continued because it is final: `whyFinal` gives a reason, or it was a call of an
 * object and other calls have used its key since then (L19). A run that has not ended can be paused and resumed in
 * both cases.
 */
export async function refuseIfFinal({ runId, kind, flow }: RunRecord, live: StoredRun): Promise<void> {
  if (kind !== "workflow") return;
  const { ended, tasks } = await live.readState();
  if (!ended) return;
  const task = tasks.get(root);
  const reason = task && whyFinal(task);
  if (reason !== undefined)
    throw new Fault("invalid_argument", `run ${runId} cannot be resumed, because ${reason}`, {
      details: { runId },
    });
  if (flow?.object === undefined) return;
  const { name, key } = flow.object;
  throw new Fault(
    "invalid_argument",
    `run ${runId} cannot be resumed, because it was a call of object ${name} and no longer holds key ${JSON.stringify(key)}; call the object again`,
    { details: { runId, object: name, key } },
  );
}

/**
 * L19: throws for a fork of a call of an object, because the fork would change the state of the key at the same
 * time as other calls.
 */
export function refuseForkOfCall({ runId, flow }: RunRecord): void {
  if (flow?.object === undefined) return;
  const { name, key } = flow.object;
  throw new Fault(
    "invalid_argument",
    `run ${runId} cannot be forked, because it is a call of object ${name} and key ${JSON.stringify(key)} has one writer at a time; call the object again`,
    { details: { runId, object: name, key } },
  );
}

/**
 * Whether the run of a workflow has stopped at its budget. If so, a cancel makes it run its compensations. A call
 * of an object has already run them at its end.
 */
export async function isStoppedWork({ kind, flow }: RunRecord, stored: StoredRun): Promise<boolean> {
  if (kind !== "workflow" || flow?.object !== undefined) return false;
  return (await stored.summary()).status === "budget_exhausted";
}

/** A run that has ended, in the store of a caller. */
interface EndedStoredRun {
  readonly runId: RunId;
  readonly store: RunStore;
  readonly life?: RuntimeLifetime | undefined;
}

/**
 * Whether an ended run was resumed, or a command in its mailbox may resume it. Waits until the owner has handled
 * such commands. `next` is the sequence number that follows that of the last event that was read.
 */
export async function isRunResumed(run: EndedStoredRun, next: number): Promise<boolean> {
  const { runId, store } = run;
  if (mayResume(await store.mailbox.read(runId))) {
    await commandsHandled(run);
    return true;
  }
  // The owner may have handled such a command before the mailbox was read. Then the log has new events.
  return (await store.events.lastSeq(runId)) >= next;
}

async function commandsHandled({ runId, store, life }: EndedStoredRun): Promise<void> {
  const { mailbox } = store;
  for (let isPending = true; isPending;) {
    const changed = Promise.withResolvers<void>();
    const unsubscribe = store.onChange(() => changed.resolve());
    const guest: Guest = { lifeEnded: () => changed.resolve() };
    life?.join(guest);
    // Read again: the mailbox may have changed before the subscription.
    if (mayResume(await mailbox.read(runId)) && life?.fault === undefined) await changed.promise;
    unsubscribe();
    life?.leave(guest);
    life?.check();
    isPending = mayResume(await mailbox.read(runId));
  }
}
