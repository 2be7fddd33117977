import {
  canonicalJson,
  Fault,
  HistoryRetention,
  sameCaller,
  type HostedAgent,
  type Commit,
  type Creation,
  type JsonValue,
  type Lease,
  type RunId,
  type RunRecord,
  type RunSummary,
  type SingleFlight,
  type Store,
  type SubmitOptions,
  type TaskRecord,
} from "../../kernel/index.ts";
import { type NewRun, newRun } from "../journal/new-run.ts";
import { anonymousUser, type RunClaimer, type WorkerContext } from "../process/worker-context.ts";
import { RunState } from "../journal/run-state.ts";
import { asksPerson, callOfApproval, isCall, mailOfSubmission } from "../journal/wait-names.ts";

/**
 * Starts a run, or finds the one that stands under its id, or hands the input to the one that is unfinished in the session (S5). What
 * becomes of it is decided in the store, with the commit.
 */
export function submitRun(
  worker: WorkerContext,
  claimer: RunClaimer,
  agent: HostedAgent,
  input: JsonValue,
  options: SubmitOptions,
): RunRecord | Promise<RunRecord> {
  const run = newRun(worker, agent, input, options);
  const flight = flightOf(run.record, input, options);
  const creation = worker.store.journal.createNow?.(run.record, run.first, flight);
  return creation?.kind === "created" ? run.record : standingRun(worker, claimer, run, flight, creation);
}

/** Where there is room for the run here, it is claimed along with it. */
async function createRun(
  { store: { journal } }: WorkerContext,
  claimer: RunClaimer,
  { record, first }: NewRun,
  flight: SingleFlight | undefined,
): Promise<Creation> {
  const offer = journal.createAndClaim === undefined ? undefined : claimer.reserveClaim();
  if (journal.createAndClaim === undefined || offer === undefined)
    return journal.create(record, first, flight);
  let lease: Lease | undefined;
  try {
    const creation = await journal.createAndClaim(record, first, flight, offer);
    if (creation.kind === "created") ({ lease } = creation);
    return creation;
  } finally {
    claimer.completeClaim(lease);
  }
}

/** The run that comes of it, after whatever else is in the way. `creation`: what it came to so far. */
async function standingRun(
  worker: WorkerContext,
  claimer: RunClaimer,
  run: NewRun,
  given: SingleFlight | undefined,
  creation?: Creation,
): Promise<RunRecord> {
  const { record } = run;
  const { journal } = worker.store;
  let flight = given;
  for (let came = creation; ; came = undefined) {
    came ??= await createRun(worker, claimer, run, flight);
    if (came.kind === "created") return record;
    if (came.kind !== "busy") {
      const runId = came.kind === "steered" ? came.runId : record.runId;
      const standing = await journal.find(runId);
      if (standing !== undefined && came.kind === "exists") await refuseOther(worker, standing, run);
      if (standing !== undefined) return standing;
      // It was deleted in between: there is nothing in the way any more.
      continue;
    }
    const { waits, names } = await waitsOf(worker, came.run);
    // All it does is wait, though its worker has not let go of it yet: it is as good as suspended. Unless it is another user's.
    if (!waits || flight === undefined || flight.always) throw busy(came.run, names, record);
    flight = { ...flight, always: true };
  }
}

/** Whoever submits again is given the run it began, and never somebody else's answer. Of words that are not kept nobody can tell. */
async function refuseOther(
  { store }: WorkerContext,
  standing: RunRecord,
  { record, first }: NewRun,
): Promise<void> {
  const { runId, agentId } = standing;
  if (!sameCaller(standing, record))
    throw new Fault(
      "already_exists",
      `${runId} is another user's: give this one a runId of its own, or none`,
      {
        details: { runId },
      },
    );
  const isOther = agentId !== record.agentId;
  const root = isOther ? undefined : await rootOf(store, runId);
  if (!isOther && (root === undefined || root.supervision.retention === HistoryRetention.NONE)) return;
  if (root !== undefined && canonicalJson(root.input) === canonicalJson(rootIn(first)?.input)) return;
  const why = isOther ? `is a run of ${agentId}` : "began with another input";
  throw new Fault("already_exists", `${runId} ${why}: give this one a runId of its own, or none`, {
    details: { runId, agentId },
  });
}

async function rootOf({ journal }: Store, runId: RunId): Promise<TaskRecord | undefined> {
  for await (const commit of journal.read(runId)) return rootIn(commit);
  return undefined;
}

/** The first commit creates it. */
function rootIn({ tasks = [] }: Commit): TaskRecord | undefined {
  for (const change of tasks) if (change.type === "create") return change.task;
  return undefined;
}

function flightOf(
  { runId, sessionId, createdAt: at }: RunRecord,
  input: JsonValue,
  { userId, whenBusy, sessionId: given }: SubmitOptions,
): SingleFlight | undefined {
  if (given !== sessionId) return undefined;
  const body = { type: "steer", input } as const;
  return {
    steering: { id: mailOfSubmission(runId), from: userId ?? anonymousUser, at, body },
    always: whenBusy === "steer",
  };
}

/** What an unfinished run waits for, as far as its journal says; and whether it does nothing else. */
async function waitsOf(
  { store, unknownPrice }: WorkerContext,
  { runId, status }: RunSummary,
): Promise<{ readonly waits: boolean; readonly names: readonly string[] }> {
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
  if (status === "pending") return { waits: false, names: ["a worker"] };
  if (state.paused) return { waits: true, names: ["resume"] };
  const names = live.flatMap(({ record, opened }) =>
    [...opened.keys()].filter(isCall).map((address) => {
      const at = `${record.taskId}/${address}`;
      // As `approve` takes it.
      return asksPerson(address) ? `approval ${approvals.get(parentOf(at)) ?? at}` : `call ${at}`;
    }),
  );
  const isAtRest = ({ record: { taskId } }: (typeof live)[number]): boolean =>
    state.headcount.tasks[taskId]?.idle ?? true;
  return { waits: live.length > 0 && live.every(isAtRest), names };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function busy(run: RunSummary, waitsFor: readonly string[], submitted: RunRecord): Fault {
  const { runId, agentId, sessionId, status } = run;
  const reason = waitsFor.length === 0 ? "" : `, waiting for ${waitsFor.join(", ")}`;
  const advice = sameCaller(run, submitted)
    ? 'Wait for its end, or submit with whenBusy: "steer"'
    : "It is another user's: wait for its end, or use a session of your own";
  return new Fault(
    "agent_busy",
    `${agentId} is in ${runId} in session ${sessionId}: ${status}${reason}. ${advice}`,
    { details: { runId, agentId, sessionId, status, waitsFor } },
  );
}

/** Fault of `deleteSession` for a session in which a run is unfinished. */
export function sessionBusy({ runId, agentId, sessionId, status, endedAt }: RunSummary): Fault {
  const standing = endedAt === null ? status : `${status}, with orders that it has not read yet`;
  return new Fault(
    "agent_busy",
    `${agentId} is in ${runId} in session ${sessionId}: ${standing}. Wait for its end or cancel it, then delete the session`,
    { details: { runId, agentId, sessionId, status } },
  );
}
