import type { RunRecord, RunStanding, RunSummary, WaitCause } from "../../kernel/index.ts";
import type { RunEnd } from "./run-end.ts";

/**
 * Which worker has the run, or why none has it. `owned`: a worker. `ready`: the run has work. `bound`: it has work,
 * but only workers of one machine may claim it (L21). `suspended`: it waits. `scheduled`: its start time has not
 * come (L9). `held`: a compaction of its session must end first (S5). `queued`: its limits do not admit it yet
 * (L17).
 */
export type Holder = "owned" | "ready" | "bound" | "suspended" | "scheduled" | "held" | "queued";

const nothing: readonly WaitCause[] = Object.freeze([]);
const aWorker: readonly WaitCause[] = Object.freeze(["worker"]);
const aMachine: readonly WaitCause[] = Object.freeze(["host"]);
const aCompaction: readonly WaitCause[] = Object.freeze(["compaction"]);
const itsTurn: readonly WaitCause[] = Object.freeze(["queue"]);
const time: readonly WaitCause[] = Object.freeze(["time"]);

/**
 * K1: returns the status of a run. A paused run is `paused`, even if a worker has it. A waiting run that received a
 * message is `pending` until a worker claims it.
 */
export function statusOf(
  end: Pick<RunEnd, "status"> | null,
  standing: RunStanding | null,
  holder: Holder,
): Pick<RunSummary, "status" | "waitsFor"> {
  if (end !== null) return { status: end.status, waitsFor: nothing };
  if (standing?.status === "paused") return standing;
  if (holder === "ready") return { status: "pending", waitsFor: aWorker };
  if (holder === "bound") return { status: "pending", waitsFor: aMachine };
  if (holder === "held") return { status: "pending", waitsFor: aCompaction };
  if (holder === "queued") return { status: "pending", waitsFor: itsTurn };
  if (holder === "scheduled") return { status: "pending", waitsFor: time };
  if (holder === "owned" && standing?.status !== "waiting") return { status: "running", waitsFor: nothing };
  return { status: "waiting", waitsFor: standing?.waitsFor ?? nothing };
}

/** Returns the record of a run for lists. A workflow has no session in it. */
export function listedRecord(
  record: RunRecord,
): Omit<RunRecord, "sessionId"> & Pick<RunSummary, "sessionId"> {
  if (record.kind !== "workflow") return record;
  const { sessionId: _none, ...listed } = record;
  return listed;
}
