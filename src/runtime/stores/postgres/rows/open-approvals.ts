import {
  Fault,
  type ApprovalPage,
  type ApprovalQuery,
  type Event,
  type OpenApproval,
} from "../../../../kernel/index.ts";
import { noTenant, tenantText, type RunKey } from "../../codec/stored-run.ts";
import { approvalCursorOf, openApproval, type ApprovalChange } from "../../approval-changes.ts";
import { Conditions } from "../../sql/conditions.ts";
import type { Database } from "../db/database.ts";
import type { Queries } from "../db/queries.ts";
import { runKeyColumns } from "../../sql/run-row.ts";
import type { Transaction } from "../db/transaction.ts";
import type { CommitRows } from "./commit-rows.ts";

interface ApprovalRow extends RunKey {
  readonly place: number;
  readonly number: number;
  readonly seq: number;
}

const removeOne = "DELETE FROM {approvals} WHERE run = $1 AND approval_id = $2";
const removeOfTask = "DELETE FROM {approvals} WHERE run = $1 AND task_id = $2";
/** Ids that begin with a text that ends with "/". "0" is the character after "/". */
const removeUnder = "DELETE FROM {approvals} WHERE run = $1 AND approval_id >= $2 AND approval_id < $3";
const insert = `INSERT INTO {approvals} (run, approval_id, task_id, requester, number, seq) VALUES ($1, $2, $3, $4, $5, $6)`;

/** The commit that changes the open questions of its run. */
interface AskingCommit {
  readonly run: number;
  readonly number: number;
}

/** K4: the open questions of all runs. A row holds the place of the event that asks; the log holds the question. */
export class OpenApprovals {
  readonly #database: Database;
  readonly #rows: CommitRows;

  constructor(database: Database, rows: CommitRows) {
    this.#database = database;
    this.#rows = rows;
  }

  /** Applies the changes of a commit, inside its transaction. */
  async apply(
    transaction: Transaction,
    commit: AskingCommit,
    changes: readonly ApprovalChange[],
  ): Promise<void> {
    // Places are then in the order of the commits, so that a reader of pages misses no question.
    if (changes.some(({ type }) => type === "open")) await transaction.lock("approvals");
    for (const change of changes) await applyOne(transaction, commit, change);
  }

  async read(query: ApprovalQuery = {}): Promise<ApprovalPage> {
    const { after, limit } = approvalCursorOf(query);
    const where = conditionsOf(query).add("run_id IS NOT NULL AND place > ?", after);
    const sql = `SELECT place, number, seq, ${runKeyColumns} FROM {approvals} JOIN {runs} AS runs ON runs.id = run
       WHERE ${where.sql} ORDER BY place LIMIT ${where.value(limit + 1)}`;
    return this.#database.read(async (queries) => {
      const found = await queries.all<ApprovalRow>(sql, ...where.values);
      const shown = found.slice(0, limit);
      const next = found.length > limit ? String(shown.at(-1)?.place) : null;
      const approvals: OpenApproval[] = [];
      for (const row of shown) approvals.push(await this.#question(queries, row));
      return { approvals, next };
    });
  }

  async #question(queries: Queries, run: ApprovalRow): Promise<OpenApproval> {
    const row = await this.#rows.row(queries, run, run.number);
    const isAsked = (event: Event): event is Event<"approval_request"> =>
      event.seq === run.seq && event.type === "approval_request";
    const event = row && this.#rows.events(run, row).find(isAsked);
    if (event === undefined)
      throw new Fault("store_corrupt", `event ${run.seq} of ${run.runId} asks a person and is missing`);
    return openApproval(run, event);
  }
}

async function applyOne(queries: Queries, commit: AskingCommit, change: ApprovalChange): Promise<void> {
  const { run, number } = commit;
  switch (change.type) {
    case "open": {
      const { data, taskId, agentId, seq } = change.event;
      await queries.run(removeOne, run, data.approvalId);
      await queries.run(insert, run, data.approvalId, taskId, agentId, number, seq);
      break;
    }
    case "answer":
      await queries.run(removeOne, run, change.approvalId);
      break;
    case "end":
      await queries.run(removeOfTask, run, change.taskId);
      break;
    case "leave":
      await queries.run(removeUnder, run, change.prefix, `${change.prefix.slice(0, -1)}0`);
      break;
  }
}

function conditionsOf({ runId, agentId, tenantId, userId }: ApprovalQuery): Conditions {
  const where = new Conditions();
  if (runId !== undefined) where.add("run = (SELECT id FROM {runs} WHERE run_id = ?)", runId);
  if (agentId !== undefined) where.add("requester = ?", agentId);
  if (tenantId === null) where.add(`tenant = '${noTenant}'`);
  else if (tenantId !== undefined) where.add("tenant = ?", tenantText(tenantId));
  if (userId === null) where.add("user_id IS NULL");
  else if (userId !== undefined) where.add("user_id = ?", userId);
  return where;
}
