import { randomUUID } from "node:crypto";
import { runIdWithin, sha256 } from "../../runtime/index.ts";
import {
  assertAllowed,
  Fault,
  formatRunId,
  parseRunId,
  type JsonValue,
  type RunHandle,
  type SubmitOptions,
} from "../../kernel/index.ts";
import { hasScope, type Access } from "./access/access.ts";
import type { RouteRequest } from "./route.ts";
import { modelNames } from "./served-agents.ts";

/** The part of a request that starts a run. */
export type StartingRequest = Pick<RouteRequest, "runtime" | "access" | "server" | "request">;

export interface NewRunOptions extends Omit<SubmitOptions, "userId" | "tenantId" | "context" | "runId"> {
  /** Name of an agent of the server. */
  readonly agent: string;
  readonly input: JsonValue;
  /** Id of the run. Default: an id derived from the request's idempotency key, or a new id. */
  readonly runId?: string;
}

export interface StartedRun {
  /** The run. Its commands are recorded with the name of the caller. */
  readonly run: RunHandle;
  /** Whether the input was sent to this run as steering, because it was still unfinished in the session. */
  readonly isSteered: boolean;
  /** Sequence number of the first event of the run that can belong to the answer. */
  readonly fromSeq: number;
  /** Whether an earlier identical request has already started the run. */
  readonly isRepeated: boolean;
}

/**
 * Starts a run for the caller of a request. Tenant and user are taken from the token, regardless of the request.
 * Readers receive text while the model writes it.
 */
export async function startRun(request: StartingRequest, options: NewRunOptions): Promise<StartedRun> {
  const { runtime, access, server } = request;
  server.refuseIfDraining();
  const { agent: name, input, metadata = {}, runId: asked = newRunIdOf(request), ...rest } = options;
  const { tenantId, userId } = access;
  const known = await runtime.find(asked);
  const isKnown = known !== undefined;
  const runId = known?.runId ?? runIdWithin(tenantId, parseRunId(asked));
  if (server.workflows.has(name) && !server.agents.has(name)) {
    const own = { ...rest, metadata, runId, ...callerOf(access) };
    const run: RunHandle<unknown> = await runtime.start(name, input, own);
    // A handle of any run: `submit` returns the same for a workflow that this server hosts.
    return { run: run as RunHandle, isSteered: false, fromSeq: 0, isRepeated: isKnown };
  }
  const { sessionId } = rest;
  const started = await server.agents.start(name, { runId, input, sessionId, tenantId, userId });
  const { changes } = rest;
  if (changes !== undefined && !hasScope(access, "admin"))
    assertAllowed(
      {
        name,
        allowed: started.agent.allowedChanges ?? {},
        models: modelNames(started.agent),
      },
      changes,
    );
  const own = started.sessionId ?? sessionId;
  const run = await runtime.submit(started.agent, await server.agents.expand(name, input, own), {
    streaming: true,
    channel: "web",
    ...rest,
    metadata: { ...metadata, ...started.metadata },
    ...(own !== undefined && { sessionId: own }),
    runId,
    ...callerOf(access),
  });
  const isSteered = run.runId !== runId;
  const fromSeq = isSteered ? await placeOf(run, runId) : 0;
  return { run: run.as(access.userId ?? access.name), isSteered, fromSeq, isRepeated: isKnown && !isSteered };
}

/**
 * Returns the place at which a run received the submission `runId` as steering: the sequence number of its event,
 * or the end of the log if the event is not there yet.
 */
async function placeOf(run: RunHandle, runId: string): Promise<number> {
  let next = 0;
  for await (const event of run.events({ follow: false })) {
    if (!("seq" in event)) continue;
    if (event.type === "run_steer" && event.data.submittedAs === runId) return event.seq;
    next = event.seq + 1;
  }
  return next;
}

/**
 * Returns the user of a run that a caller without a tenant starts. For other callers the view of the runtime sets
 * tenant and user itself.
 */
function callerOf({ tenantId, userId }: Access): Pick<SubmitOptions, "userId"> {
  return tenantId === null && userId !== null ? { userId } : {};
}

const longestKey = 255;

/**
 * The id of the run of an idempotency key: the same for every repetition by the same caller. Without a key, a new id, so
 * that a steered run is recognised.
 */
export function newRunIdOf(request: Pick<StartingRequest, "request" | "access">): string {
  const key = idempotencyKey(request);
  return key === undefined ? formatRunId(randomUUID()) : runIdOfKey(request.access, key);
}

/** Returns the header `Idempotency-Key` of a request. `undefined` if it is absent. */
function idempotencyKey({ request }: Pick<RouteRequest, "request">): string | undefined {
  const key = request.headers.get("idempotency-key");
  if (key === null) return undefined;
  if (key === "" || key.length > longestKey)
    throw new Fault("invalid_argument", `invalid Idempotency-Key: expected 1 to ${longestKey} characters`);
  return key;
}

/**
 * Returns the input id for an idempotency key. Repetitions by the same caller get the same id (rule P1).
 * `undefined` without a key.
 */
export function inputIdOf(request: Pick<RouteRequest, "request" | "access">): string | undefined {
  const key = idempotencyKey(request);
  return key === undefined ? undefined : digestOf(request.access, key);
}

/**
 * Returns the stored id of the run that a caller starts with these values. For other callers, the same values
 * result in other ids.
 */
export function runIdOfKey(access: Access, ...key: readonly JsonValue[]): string {
  return runIdWithin(access.tenantId, formatRunId(digestOf(access, ...key)));
}

function digestOf({ tenantId, userId }: Access, ...key: readonly JsonValue[]): string {
  return sha256(JSON.stringify([tenantId, userId, ...key]));
}
