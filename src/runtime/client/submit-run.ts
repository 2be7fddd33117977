import {
  Fault,
  sameCaller,
  type HostedAgent,
  type Creation,
  type JsonValue,
  type Lease,
  type RunClaimer,
  type RunRecord,
  type RunSummary,
  type SessionId,
  type SingleFlight,
  type SubmitOptions,
  type TenantScope,
} from "../../kernel/index.ts";
import { refuseOther } from "../journal/existing-run.ts";
import { newRun, type NewRun, type NewRunOptions } from "../journal/new-run.ts";
import { RunState } from "../journal/run-state.ts";
import { asksPerson, callOfApproval, isCall, mailOfSubmission } from "../journal/wait-names.ts";
import { anonymousUser, type WorkerContext } from "../process/worker-context.ts";

/**
 * Creates a run. If a run with this id was submitted before, returns that run. If the unfinished run of the session
 * takes the input as steering, returns that one (S5). The store decides this in the transaction that would create
 * the run.
 */
export async function submitRun(
  worker: WorkerContext,
  claimer: RunClaimer | undefined,
  agent: HostedAgent,
  input: JsonValue,
  options: NewRunOptions,
  scope?: TenantScope,
): Promise<RunRecord> {
  const { kind = "invocation", child, messages } = options;
  const isAsked = kind === "invocation" && child === undefined && messages === undefined;
  const read = isAsked ? agent.readInput?.(input, "caller") : undefined;
  const accepted = read === undefined ? input : read instanceof Promise ? await read : read;
  const run = newRun(worker, agent, accepted, options);
  const { record } = run;
  const { journal } = worker.store;
  let flight = singleFlightOf(record, accepted, options, scope);
  for (;;) {
    const outcome = await createRun(worker, claimer, run, flight);
    if (outcome.kind === "created") return record;
    if (outcome.kind === "foreign") throw foreignSession(record);
    if (outcome.kind !== "busy") {
      const runId = outcome.kind === "steered" ? outcome.runId : record.runId;
      const existing = await journal.find(runId);
      if (existing !== undefined && outcome.kind === "exists") await refuseOther(worker.store, existing, run);
      if (existing !== undefined) return existing;
      // The existing run was deleted meanwhile. Submit again.
      continue;
    }
    if (record.kind === "compaction") throw sessionBusy(record.sessionId, outcome.run);
    const { onlyWaits, waitsFor } = await readWaits(worker, outcome.run);
    // A run that only waits takes the input as steering, like a suspended run, although its worker still owns it. To
    // another user the store answers `busy` again.
    if (!onlyWaits || flight === undefined || flight.always) throw agentBusy(outcome.run, waitsFor, record);
    flight = { ...flight, always: true };
  }
}
/**
 * Creates a run, and also claims it if the store can do both in one transaction and this worker has room for the
 * run.
 */
async function createRun(
  { store: { journal } }: WorkerContext,
  claimer: RunClaimer | undefined,
  { record, first }: NewRun,
  singleFlight: SingleFlight | undefined,
): Promise<Creation> {
  const claim = journal.createAndClaim === undefined ? undefined : claimer?.reserveClaim();
  if (journal.createAndClaim === undefined || claimer === undefined || claim === undefined)
    return journal.create(record, first, singleFlight);
  let lease: Lease | undefined;
  try {
    const creation = await journal.createAndClaim(record, first, singleFlight, claim);
    if (creation.kind === "created") ({ lease } = creation);
    return creation;
  } finally {
    // The engine executes the run if it was created and claimed.
    claimer.completeClaim(lease);
  }
}

/**
 * Returns how the store handles an unfinished run in the session. `undefined` for a new session, which has no runs.
 */
function singleFlightOf(
  { runId, sessionId, createdAt: at }: RunRecord,
  input: JsonValue,
  { userId, whenBusy, metadata, sessionId: namedSession }: SubmitOptions,
  scope: TenantScope | undefined,
): SingleFlight | undefined {
  if (namedSession !== sessionId) return undefined;
  const body = { type: "steer", input, ...(metadata !== undefined && { metadata }) } as const;
  return {
    steering: { id: mailOfSubmission(runId), from: userId ?? anonymousUser, at, body },
    always: whenBusy === "steer",
    ...(scope !== undefined && { scope }),
  };
}

interface RunWaits {
  /** Whether every unfinished task of the run only waits. */
  readonly onlyWaits: boolean;
  /** The things for which the run waits, as readable names. */
  readonly waitsFor: readonly string[];
}

/** Reads from the journal of an unfinished run for what it waits. */
async function readWaits(
  { store, clock, unknownPrice }: WorkerContext,
  { runId, status, startAt }: RunSummary,
): Promise<RunWaits> {
  // A run that mail has woken before its start time has an owner, and still takes no input as steering.
  if (startAt !== null && startAt > clock.now()) return { onlyWaits: false, waitsFor: ["its start time"] };
  const state = new RunState(unknownPrice);
  const approvals = new Map<string, string>();
  for await (const commit of store.journal.read(runId)) {
    state.fold(commit);
    for (const event of commit.events ?? []) {
      if (event.type === "approval_request")
        approvals.set(callOfApproval(event.data.approvalId), event.data.approvalId);
    }
  }
  const live = [...state.tasks.values()].filter(({ outcome }) => outcome === null);
  if (status === "pending") return { onlyWaits: false, waitsFor: ["a worker"] };
  if (state.paused) return { onlyWaits: true, waitsFor: ["resume"] };
  const waitsFor = live.flatMap(({ record, opened }) =>
    [...opened.keys()].filter(isCall).map((address) => {
      const path = `${record.taskId}/${address}`;
      // An approval is named by the id that `RunHandle.approve` takes.
      return asksPerson(address) ? `approval ${approvals.get(parentOf(path)) ?? path}` : `call ${path}`;
    }),
  );
  const isIdle = ({ record: { taskId } }: (typeof live)[number]): boolean =>
    state.headcount.tasks[taskId]?.idle ?? true;
  return { onlyWaits: live.length > 0 && live.every(isIdle), waitsFor };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/**
 * S6: returns the fault of a submission to a session that belongs to another tenant or user. The caller must not
 * learn that it exists.
 */
function foreignSession({ sessionId }: RunRecord): Fault {
  return new Fault("not_found", `session ${sessionId} does not exist; choose another sessionId, or omit it`, {
    details: { sessionId },
  });
}

/** Returns the fault of a submission to a session in which a run is unfinished. */
function agentBusy(run: RunSummary, waitsFor: readonly string[], submitted: RunRecord): Fault {
  const { runId, agentId, status } = run;
  const { sessionId } = submitted;
  const reason = waitsFor.length === 0 ? "" : `, waiting for ${waitsFor.join(", ")}`;
  const advice = sameCaller(run, submitted)
    ? 'Wait until the run ends, or submit with whenBusy: "steer"'
    : "The run belongs to another user: wait until it ends, or use another session";
  return new Fault(
    "agent_busy",
    `${agentId} is busy with ${runId} in session ${sessionId}: ${status}${reason}. ${advice}`,
    { details: { runId, agentId, sessionId, status, waitsFor } },
  );
}

/** S5: the fault of a change that needs an idle session. */
export function sessionBusy(sessionId: SessionId, { runId, agentId, status, endedAt }: RunSummary): Fault {
  const state = endedAt === null ? status : `${status}, with commands that it has not read yet`;
  return new Fault(
    "agent_busy",
    `${agentId} is busy with ${runId} in session ${sessionId}: ${state}. Wait until the run ends or cancel it, then try again`,
    { details: { runId, agentId, sessionId, status } },
  );
}
