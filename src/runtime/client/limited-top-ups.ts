import {
  Fault,
  fromNanoUsd,
  readTopUp,
  type ApprovalDecision,
  type ApprovalRequest,
  type JsonValue,
  type RunRecord,
  type RaisedCaps,
  type Spend,
  type StoredRecord,
  type TopUp,
  type TopUpQuestion,
} from "../../kernel/index.ts";
import type { RunStore } from "./run-store.ts";

/** The namespace of the records of the amounts that limited top-ups have added, by run. */
const namespace = "top-ups";

type TopUpStore = Pick<RunStore, "events" | "records">;

/** The amounts that limited top-ups have added to a run. */
interface Used extends Spend {
  /** Absent in records of earlier versions. */
  readonly deadlineMs?: number;
  /** Time at which the run was created. It is needed because a new run may get the id of a deleted run. */
  readonly createdAt: number;
}

/** B8: returns the amounts that limited top-ups may still add to a run. */
export async function topUpLeft(store: TopUpStore, run: RunRecord): Promise<TopUp> {
  const allowed = await topUpLimitOf(store, run);
  return toTopUp(difference(allowed, usedIn(await store.records.get(placeOf(run)), run)));
}

/**
 * B8: counts a limited top-up. Throws `permission_denied` if limited top-ups would add more to the run than they
 * may. The sum is stored in a record that is written only if no other process has changed it, so that several
 * servers together do not exceed the limit.
 */
export async function countTopUp(store: TopUpStore, run: RunRecord, add: Partial<TopUp>): Promise<void> {
  const wanted = readTopUp(add);
  const allowed = await topUpLimitOf(store, run);
  for (;;) {
    const found = await store.records.get(placeOf(run));
    const left = difference(allowed, usedIn(found, run));
    const rest = difference(left, wanted);
    if (Math.min(rest.tokens, rest.nanoUsd, rest.turns, rest.deadlineMs) < 0)
      throw exceeded(run, toTopUp(allowed), toTopUp(left));
    const used = difference(allowed, rest);
    const value = { ...used, createdAt: run.createdAt };
    const written = await store.records.put({ ...placeOf(run), value }, found?.version ?? "absent");
    if (written.kind === "stored") return;
  }
}

/**
 * Returns the limit of all limited top-ups of a run. It is in the first event of the run. For a run that was
 * started by name, it is in the second event, which reports the adoption by a worker (L18).
 */
async function topUpLimitOf({ events }: TopUpStore, { runId }: RunRecord): Promise<RaisedCaps> {
  let first: Partial<TopUp> = {};
  for await (const event of events.read(runId, 0)) {
    if (event.seq > 1) break;
    if (event.type === "run_start" || event.type === "run_adopt") first = event.data.topUp ?? first;
  }
  return readTopUp(first);
}

/**
 * B5, B8: returns the answer to a question for a top-up with its amount. If the caller is limited, the amount
 * counts against the limit.
 */
export async function topUpAnswer(
  store: TopUpStore,
  run: RunRecord,
  request: ApprovalRequest,
  given: ApprovalDecision,
  limited: boolean,
): Promise<ApprovalDecision> {
  if (given.decision !== "approved") return given;
  const add = approvedTopUp(request, given.input, limited ? await topUpLeft(store, run) : undefined);
  if (limited) await countTopUp(store, run, add);
  return { ...given, input: { ...add } };
}

/**
 * B5: returns the amount that the approval of a question for a top-up adds: the given amount, or the offered one.
 * For a limited caller the offered amount is reduced to what is `left`. Throws `invalid_argument` for an invalid
 * amount.
 */
function approvedTopUp(
  { approvalId, input }: ApprovalRequest,
  given: JsonValue | undefined,
  left: TopUp | undefined,
): Partial<TopUp> {
  const { name = "maxCostUsd", amount = 0 } = (input ?? {}) as unknown as Partial<TopUpQuestion>;
  const most = left?.[name] ?? 0;
  const offered = { [name]: most > 0 ? Math.min(amount, most) : amount };
  const add = (given ?? offered) as Partial<TopUp>;
  const { tokens, nanoUsd, turns, deadlineMs } = readTopUp(add, `decision on ${approvalId}`);
  if (tokens + nanoUsd + turns + deadlineMs > 0) return add;
  throw new Fault(
    "invalid_argument",
    `invalid decision on ${approvalId}: expected an amount above 0; use input: { ${name}: amount }`,
    { details: { approvalId } },
  );
}

function placeOf({ runId, tenantId }: RunRecord) {
  return { namespace, key: runId, tenantId };
}

function usedIn(found: StoredRecord | undefined, { createdAt }: RunRecord): RaisedCaps {
  const used = found?.value as Used | undefined;
  return used?.createdAt === createdAt ? { deadlineMs: 0, ...used } : readTopUp({});
}

function difference(from: RaisedCaps, take: RaisedCaps): RaisedCaps {
  return {
    deadlineMs: from.deadlineMs - take.deadlineMs,
    tokens: from.tokens - take.tokens,
    nanoUsd: from.nanoUsd - take.nanoUsd,
    turns: from.turns - take.turns,
  };
}

function toTopUp({ tokens, nanoUsd, turns, deadlineMs }: RaisedCaps): TopUp {
  return { maxTokens: tokens, maxCostUsd: fromNanoUsd(nanoUsd), maxTurns: turns, deadlineMs };
}

function exceeded({ runId, agentId }: RunRecord, allowed: TopUp, left: TopUp): Fault {
  return new Fault(
    "permission_denied",
    `${runId} cannot be topped up by this amount: without the scope admin, callers may add ${words(allowed)} in all, of which ${words(left)} is left; ask a caller with the scope admin, or raise the option topUp of agent ${agentId} for later runs`,
    { details: { runId, allowed: { ...allowed }, left: { ...left } } },
  );
}

/** The amounts that are not 0. */
function words({ maxCostUsd, maxTokens, maxTurns, deadlineMs }: TopUp): string {
  const parts = [
    maxTokens > 0 && `${maxTokens} tokens`,
    maxTurns > 0 && `${maxTurns} turns`,
    maxCostUsd > 0 && `${maxCostUsd} USD`,
    deadlineMs > 0 && `${deadlineMs} ms of time`,
  ].filter(Boolean);
  return parts.length === 0 ? "nothing" : parts.join(" and ");
}
