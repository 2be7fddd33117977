import { andThen, type Guest, type Mail, type RunId } from "../../kernel/index.ts";
import type { RuntimeLifetime } from "../process/runtime-lifetime.ts";
import type { RunStore } from "./run-store.ts";
import { mayResume } from "./stored-run.ts";

/** A run that has ended, in the store of a caller. */
interface EndedStoredRun {
  readonly runId: RunId;
  readonly store: RunStore;
  readonly life?: RuntimeLifetime | undefined;
}

/**
 * Whether an ended run has been resumed or may be by a command in its mailbox. Waits until the owner has handled such
 * commands. `next` is the seq after the last event that was read.
 */
export function isRunResumed(run: EndedStoredRun, next: number): boolean | Promise<boolean> {
  return andThen(run.store.mailbox.read(run.runId), (mail) => isResumedBy(run, mail, next));
}

function isResumedBy(run: EndedStoredRun, mail: readonly Mail[], next: number): boolean | Promise<boolean> {
  if (mayResume(mail)) return commandsHandled(run).then(() => true);
  // The owner may have handled such a command before the mailbox was read. Then the log has new events.
  return andThen(run.store.events.lastSeq(run.runId), (last) => last >= next);
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
