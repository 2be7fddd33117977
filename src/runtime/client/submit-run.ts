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
  type MaybePromise,
  type RunId,
  type RunRecord,
  type RunSummary,
  type SingleFlight,
  type Store,
  type SubmitOptions,
  type TaskRecord,
} from "../../kernel/index.ts";
import { type NewRun, newRun } from "../journal/new-run.ts";
import type { WorkerContext, RunTaker } from "../process/worker-context.ts";
import { unnamed } from "../process/anonymous-user.ts";
import { RunState } from "../journal/run-state.ts";
import { callOfApproval } from "../journal/wait-names.ts";
import { asksPerson, isCall, mailOfSubmission } from "../journal/wait-names.ts";

/**
 * Starts a run, or finds the one that stands under its id, or hands the input to the one that is unfinished in the session (S5). What
 * becomes of it is decided in the store, with the commit.
 */
export function submitRun(
  owner: WorkerContext,
  taker: RunTaker,
  agent: HostedAgent,
  input: JsonValue,
  options: SubmitOptions,
): RunRecord | Promise<RunRecord> {
  const run = newRun(owner, agent, input, options);
  const flight = flightOf(run.record, input, options);
  const creation = createRun(owner, taker, run, flight);
  if (!(creation instanceof Promise) && creation.kind === "created") return run.record;
  return standingRun(owner, taker, run, flight, creation);
}

/** Claims the run as well if the store can do both in one transaction and this worker has room for the run. */
function createRun(
  { store: { journal } }: WorkerContext,
  taker: RunTaker,
  { record, first }: NewRun,
  flight: SingleFlight | undefined,
): MaybePromise<Creation> {
  const offer = journal.createAndClaim === undefined ? undefined : taker.offer();
  if (journal.createAndClaim === undefined || offer === undefined)
    return journal.create(record, first, flight);
  return takeCreated(taker, journal.createAndClaim(record, first, flight, offer));
}

async function takeCreated(taker: RunTaker, creating: Promise<Creation>): Promise<Creation> {
  let lease: Lease | undefined;
  try {
    const creation = await creating;
    if (creation.kind === "created") ({ lease } = creation);
    return creation;
  } finally {
    taker.take(lease);
  }
}

/** Resolves with the run that the submission starts or joins. `creation` is the outcome of the first attempt to create it. */
async function standingRun(
  owner: WorkerContext,
  taker: RunTaker,
  run: NewRun,
  given: SingleFlight | undefined,
  creation: MaybePromise<Creation>,
): Promise<RunRecord> {
  const { record } = run;
  const { journal } = owner.store;
  let flight = given;
  for (let creating = creation; ; creating = createRun(owner, taker, run, flight)) {
    const came = await creating;
    if (came.kind === "created") return record;
    if (came.kind !== "busy") {
      const runId = came.kind === "steered" ? came.runId : record.runId;
      const standing = await journal.find(runId);
      if (standing !== undefined && came.kind === "exists") await refuseOther(owner, standing, run);
      if (standing !== undefined) return standing;
      // It was deleted in between: there is nothing in the way any more.
      continue;
    }
    const { waits, names } = await waitsOf(owner, came.run);
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
    steering: { id: mailOfSubmission(runId), from: userId ?? unnamed, at, body },
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
