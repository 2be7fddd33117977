import type { RunId } from "../base/identity.ts";

/** Another process that wrote to the store. */
type OtherWriter = "worker" | "client";

/**
 * Why a store calls the listeners of `onChange`, so that an engine can decide what to do without a query.
 *
 * - `new`: the run was created. It is ready, or will be at `startAt` if that is given.
 * - `mail`: mail arrived for the run. Unless a live worker owns the run, it is ready.
 * - `consumed`: the owner of the run has consumed its mail.
 * - `released`: the owner has released the run. `isReady` tells whether a worker may claim it now.
 * - `seized`: the run has another owner.
 * - `message`: a message waits in the inbox of an agent, or may be delivered again.
 * - `worker`: a worker has unregistered or died. Its runs are ready.
 * - `record`: a record of the namespace was written or deleted. It makes no run ready.
 * - `other`: another process may have written to the store. Anything may have changed. `owned` lists the runs among those that
 *   this store owns that have changed; if it is absent, all of them may have.
 *
 * `writer` says which other process made the change, as far as the store learns it: one with a registered worker, whose engine knows
 * of the change, or one without. It is absent if this process made it.
 */
export type StoreChange =
  | {
      readonly kind: "new";
      readonly runId: RunId;
      readonly startAt: number | null;
      readonly writer?: OtherWriter;
    }
  | { readonly kind: "mail"; readonly runId: RunId; readonly writer?: OtherWriter }
  | { readonly kind: "consumed" | "seized"; readonly runId: RunId }
  | { readonly kind: "released"; readonly runId: RunId; readonly isReady: boolean }
  | { readonly kind: "record"; readonly namespace: string }
  | { readonly kind: "other"; readonly owned?: readonly RunId[] }
  | { readonly kind: "message" | "worker" };
