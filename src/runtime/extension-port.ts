import {
  Fault,
  firstUnfinishedRun,
  type ExtensionError,
  type ExtensionPort,
  type ExtensionSurface,
  type RunHandle,
  type Runtime,
  type TenantScope,
} from "../kernel/index.ts";
import type { PortOwner, WorkerContext } from "./process/worker-context.ts";

/** Maximum number of errors that `Runtime.extensionErrors` returns. */
const mostErrors = 1_000;

/** The newest errors of extensions in this process. */
export class ExtensionErrors {
  #errors: ExtensionError[] = [];

  /**
   * Adds an error in constant time on average: old errors are removed only when as many are superfluous as are
   * kept.
   */
  add(error: ExtensionError): void {
    this.#errors.push(error);
    if (this.#errors.length >= 2 * mostErrors) this.#errors = this.#errors.slice(-mostErrors);
  }

  /** S6: returns the errors that belong to this tenant and user, oldest first. */
  list(scope: TenantScope | undefined): readonly ExtensionError[] {
    const newest = this.#errors.slice(-mostErrors);
    if (scope === undefined) return newest;
    const { tenantId, userId } = scope;
    return newest.filter(
      (each) => each.tenantId === tenantId && (userId === undefined || each.userId === userId),
    );
  }
}

export interface ExtensionPortOptions {
  readonly worker: WorkerContext;
  readonly errors: ExtensionErrors;
  readonly surface: ExtensionSurface | null;
  /** Returns the runtime in the view of this tenant and user. */
  readonly view: (scope: TenantScope | undefined) => Pick<Runtime, "sessions" | "find" | "list">;
}

/**
 * Creates the functions of the runtime that the extensions of an agent use. S6: with a tenant, the extensions see
 * only the sessions of that tenant.
 */
export function extensionPort(
  { worker, errors, surface, view }: ExtensionPortOptions,
  { sessionId, runId, tenantId, userId, signal, hasQueued = () => false, emitEvent = () => {} }: PortOwner,
): ExtensionPort {
  const scope = tenantId === null ? undefined : { tenantId, ...(userId !== null && { userId }) };
  const runtime = view(scope);
  const { clock, store, resolveModel } = worker;
  const run = async (): Promise<RunHandle | undefined> => (runId === null ? undefined : runtime.find(runId));
  return {
    clock,
    cwd: process.cwd(),
    sessionId,
    runId,
    sessions: runtime.sessions,
    surface,
    newSignal: () => {
      const controller = new AbortController();
      return {
        signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
        abort: (reason) => controller.abort(reason),
      };
    },
    findModel: (name) => resolveModel?.(name),
    cancel: (reason) => {
      void run()
        .then((handle) => handle?.cancel(reason))
        .catch((error: unknown) => worker.onError(Fault.from(error)));
    },
    hasPendingMessages: async () => {
      if (runId === null) return false;
      if (hasQueued()) return true;
      const mail = await store.mailbox.read(runId);
      return mail.some(({ body }) => body.type === "steer" || body.type === "follow_up");
    },
    untilIdle: async () => {
      for (;;) {
        const open = await firstUnfinishedRun(runtime, { sessionId });
        if (open === undefined) return;
        await (await runtime.find(open.runId))?.result();
      }
    },
    emitEvent,
    reportError: (reported) => {
      const error = { ...reported, at: clock.now(), sessionId, runId, tenantId, userId };
      errors.add(error);
      if (runId === null) surface?.reportError?.(error);
    },
  };
}
