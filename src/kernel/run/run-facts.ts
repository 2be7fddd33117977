import type { RunId, SessionId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";

/**
 * Facts about a run: its user, tenant, session and context. Read-only. Tools and hooks read them with
 * `getRunContext()` anywhere inside the run.
 */
export interface RunFacts<Context = unknown> {
  /** Id of the tenant. Memory, permissions and caches are separate for each tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** Id of the user. Memory, permissions and caches are separate for each user. `null` for a run without a user. */
  readonly userId: string | null;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the run. */
  readonly runId: RunId;
  /** Data that the caller passed to `submit`. */
  readonly metadata: JsonObject;
  /**
   * The live value that the caller passed as `context`, or that the factory of `Runtime.register` returned. It is
   * never stored and not part of any digest. `undefined` if the run has none.
   */
  readonly context: Context;
}

/**
 * Returns the context of a run that was not submitted in this process, for example because a worker resumes it. The
 * worker calls it each time it loads the run, before the run's code.
 */
export type ContextFactory<Context = unknown> = (
  facts: Omit<RunFacts, "context">,
) => Context | Promise<Context>;

/** The fields of a middleware context that say from where the call is made. */
const fixedMembers = ["agentId", "runId", "taskId", "sessionId", "tenantId", "facts"] as const;

/**
 * Makes these fields read-only in a middleware context. All middleware around a call shares this context and may
 * change its other fields. Returns the context.
 */
export function withFixedPlace<Context extends Readonly<Record<(typeof fixedMembers)[number], unknown>>>(
  context: Context,
): Context {
  for (const name of fixedMembers)
    Object.defineProperty(context, name, { writable: false, configurable: false });
  return context;
}
