import {
  Fault,
  type ApprovalPage,
  type ApprovalQuery,
  type Event,
  type OpenApproval,
} from "../../../kernel/index.ts";
import { approvalCursorOf, openApproval, type ApprovalChange } from "../approval-changes.ts";
import { noTenant, tenantText, type RunKey } from "../codec/stored-run.ts";
import { Conditions } from "./conditions.ts";
import { runKeyColumns } from "./run-row.ts";
import type { SqlTables } from "./tables.ts";
import { all, lock, run, type Work } from "./work.ts";

/** An open question: its run, and the position of the event that asks. */
export interface ApprovalRow extends RunKey {
  readonly place: number;
  readonly seq: number;
  /** Number of the commit with the event. Absent in SQLite. */
  readonly number?: number;
}

/** The commit that changes the open questions of its run. */
interface AskingCommit {
  readonly run: number;
  readonly number: number;
}

const removeOne = "DELETE FROM {approvals} WHERE run = $1 AND approval_id = $2";
const removeOfTask = "DELETE FROM {approvals} WHERE run = $1 AND task_id = $2";
/** SQL that removes questions whose id begins with a text that ends with "/". "0" is the character after "/". */
const removeUnder = "DELETE FROM {approvals} WHERE run = $1 AND approval_id >= $2 AND approval_id < $3";
const insert =
  "INSERT INTO {approvals} (run, approval_id, task_id, requester, seq) VALUES ($1, $2, $3, $4, $5)";
const insertWithNumber = `INSERT INTO {approvals} (run, approval_id, task_id, requester, seq, number)
  VALUES ($1, $2, $3, $4, $5, $6)`;

/**
 * K4: the open questions of all runs. A row contains the place of the event that asks; the log contains the
 * question itself.
 */
export class OpenApprovals {
  readonly #tables: SqlTables;
  readonly #eventsOf: (row: ApprovalRow) => Work<readonly Event[]>;

  /** `eventsOf` returns the events of the commit that asks. */
  constructor(tables: SqlTables, eventsOf: (row: ApprovalRow) => Work<readonly Event[]>) {
    this.#tables = tables;
    this.#eventsOf = eventsOf;
  }

  /** Applies the changes of a commit, inside its transaction. */
  *apply(commit: AskingCommit, changes: readonly ApprovalChange[]): Work<void> {
    // Places are then in the order of the commits, so that a reader of pages misses no question.
    if (changes.some(({ type }) => type === "open")) yield* lock("approvals");
    for (const change of changes) yield* this.#applyOne(commit, change);
  }

  *#applyOne(commit: AskingCommit, change: ApprovalChange): Work<void> {
    const { run: id, number } = commit;
    switch (change.type) {
      case "open": {
        const { data, taskId, agentId, seq } = change.event;
        const values = [id, data.approvalId, taskId, agentId, seq];
        yield* run(removeOne, id, data.approvalId);
        if (this.#tables.dialect.hasApprovalNumbers) yield* run(insertWithNumber, ...values, number);
        else yield* run(insert, ...values);
        break;
      }
      case "answer":
        yield* run(removeOne, id, change.approvalId);
        break;
      case "end":
        yield* run(removeOfTask, id, change.taskId);
        break;
      case "leave":
        yield* run(removeUnder, id, change.prefix, `${change.prefix.slice(0, -1)}0`);
        break;
    }
  }

  async read(query: ApprovalQuery = {}): Promise<ApprovalPage> {
    const { after, limit } = approvalCursorOf(query);
    return this.#tables.snapshot(() => this.#page(query, after, limit));
  }

  *#page(query: ApprovalQuery, after: number, limit: number): Work<ApprovalPage> {
    const where = conditionsOf(query).add("run_id IS NOT NULL AND place > ?", after);
    const number = this.#tables.dialect.hasApprovalNumbers ? "number, " : "";
    const found = yield* all<ApprovalRow>(
      `SELECT place, seq, ${number}${runKeyColumns} FROM {approvals} AS approvals CROSS JOIN {runs} AS runs
       WHERE runs.id = approvals.run AND ${where.sql} ORDER BY place LIMIT ${where.value(limit + 1)}`,
      ...where.values,
    );
    const shown = found.slice(0, limit);
    const approvals: OpenApproval[] = [];
    for (const row of shown) approvals.push(yield* this.#question(row));
    return { approvals, next: found.length > limit ? String(shown.at(-1)?.place) : null };
  }

  *#question(row: ApprovalRow): Work<OpenApproval> {
    const isAsked = (event: Event): event is Event<"approval_request"> =>
      event.seq === row.seq && event.type === "approval_request";
    const event = (yield* this.#eventsOf(row)).find(isAsked);
    if (event === undefined)
      throw new Fault("store_corrupt", `event ${row.seq} of ${row.runId} asks a person and is missing`);
    return openApproval(row, event);
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
