import {
  assertJson,
  Fault,
  type Clock,
  type JsonValue,
  type PromiseOutcome,
  type RunPromise,
  type TenantScope,
} from "../../kernel/index.ts";
import { parsePromiseId, settlingMail } from "../journal/promise-ids.ts";
import type { RuntimeLifetime } from "../process/runtime-lifetime.ts";
import type { SizeLimit } from "../process/size-limit.ts";
import { anonymousUser } from "../process/worker-context.ts";
import { rejectionOf } from "../journal/recorded-faults.ts";
import type { RunStore } from "./run-store.ts";
import { mayResume, StoredRun } from "./stored-run.ts";

export interface StoredPromiseOptions {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly life: RuntimeLifetime;
  readonly sizes: SizeLimit;
  /** S6: the scope of the view. A promise belongs to the tenant of its run. */
  readonly scope: TenantScope | undefined;
}

/** Creates a promise of a run that code outside the run settles. */
export function storedPromise(options: StoredPromiseOptions, id: string): RunPromise {
  const { store, clock, life, sizes, scope } = options;
  const place = parsePromiseId(id);
  const { runId } = place;
  const settle = async (outcome: PromiseOutcome): Promise<boolean> => {
    life.check();
    const content: unknown = outcome;
    assertJson(content, `the value of promise ${id}`);
    sizes.assertInput(content, `the value of promise ${id}`);
    if ((await store.journal.find(runId, scope)) === undefined)
      throw new Fault(
        "not_found",
        `promise ${JSON.stringify(id)} does not exist: its run is not in this store`,
        { details: { promiseId: id } },
      );
    await new StoredRun(runId, store).refuseIfOver(`value of promise ${JSON.stringify(id)}`);
    const from = scope?.userId ?? anonymousUser;
    const mail = settlingMail(place, outcome, { from, at: clock.now() });
    if (await store.mailbox.put(mail, scope)) return true;
    // J5: a resume that no worker has handled yet may reopen the promise. The owner ignores the mail if it does not.
    const resume = (await store.mailbox.read(runId)).find((each) => mayResume([each]));
    const again = resume === undefined ? mail : { ...mail, id: `${mail.id} after ${resume.id}` };
    return store.mailbox.put(again, scope);
  };
  return {
    id,
    resolve: (value: JsonValue = null) => settle({ status: "resolved", value }),
    reject: (error: unknown) => settle(rejectionOf(error)),
  };
}
