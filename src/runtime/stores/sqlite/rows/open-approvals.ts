import {
  Fault,
  type ApprovalPage,
  type ApprovalQuery,
  type Event,
  type OpenApproval,
} from "../../../../kernel/index.ts";
import { approvalCursorOf, openApproval, type ApprovalChange } from "../../approval-changes.ts";
import { noTenant, tenantText, type RunKey } from "../../codec/stored-run.ts";
import { runKeyColumns } from "../../sql/run-row.ts";
import type { Tables } from "../db/tables.ts";
import type { CommitRows } from "./commit-rows.ts";

interface ApprovalRow extends RunKey {
  readonly place: number;
  readonly seq: number;
}

const insert = `INSERT OR REPLACE INTO approvals (run, approval_id, task_id, requester, seq) VALUES (?, ?, ?, ?, ?)`;
const removeOne = "DELETE FROM approvals WHERE run = ? AND approval_id = ?";
const removeOfTask = "DELETE FROM approvals WHERE run = ? AND task_id = ?";
/** Ids that begin with a text that ends with "/". "0" is the character after "/". */
const removeUnder = "DELETE FROM approvals WHERE run = ? AND approval_id >= ? AND approval_id < ?";

/** A condition and its parameters. */
type Term = readonly [sql: string, ...values: (string | number)[]];

/** K4: the open questions of all runs. A row holds the seq of the event that asks; the log holds the question. */
export class OpenApprovals {
  readonly #tables: Tables;
  readonly #rows: CommitRows;

  constructor(tables: Tables, rows: CommitRows) {
    this.#tables = tables;
    this.#rows = rows;
  }

  /** Applies the changes of a commit, inside its transaction. */
  applyNow(run: number, changes: readonly ApprovalChange[]): void {
    for (const change of changes) this.#applyOne(run, change);
  }

  #applyOne(run: number, change: ApprovalChange): void {
    const { database } = this.#tables;
    switch (change.type) {
      case "open": {
        const { data, taskId, agentId, seq } = change.event;
        database.run(insert, run, data.approvalId, taskId, agentId, seq);
        break;
      }
      case "answer":
        database.run(removeOne, run, change.approvalId);
        break;
      case "end":
        database.run(removeOfTask, run, change.taskId);
        break;
      case "leave":
        database.run(removeUnder, run, change.prefix, `${change.prefix.slice(0, -1)}0`);
        break;
    }
  }

  async read(query: ApprovalQuery = {}): Promise<ApprovalPage> {
    const { after, limit } = approvalCursorOf(query);
    const terms: Term[] = [...conditionsOf(query), ["place > ?", after]];
    return this.#tables.read(() =>
      this.#tables.database.transaction("DEFERRED", () => {
        const found = this.#tables.database.all<ApprovalRow>(
          `SELECT place, seq, ${runKeyColumns} FROM approvals CROSS JOIN runs ON runs.id = approvals.run
           WHERE run_id IS NOT NULL AND ${terms.map(([sql]) => sql).join(" AND ")}
           ORDER BY place LIMIT ?`,
          ...terms.flatMap(([, ...values]) => values),
          limit + 1,
        );
        const shown = found.slice(0, limit);
        const next = found.length > limit ? String(shown.at(-1)?.place) : null;
        return { approvals: shown.map((row) => this.#question(row)), next };
      }),
    );
  }

  #question(run: ApprovalRow): OpenApproval {
    const row = this.#rows.row(run, this.#rows.numberOf(run, run.seq));
    const isAsked = (event: Event): event is Event<"approval_request"> =>
      event.seq === run.seq && event.type === "approval_request";
    const event = row && this.#rows.events(run, row).find(isAsked);
    if (event === undefined)
      throw new Fault("store_corrupt", `event ${run.seq} of ${run.runId} asks a person and is missing`);
    return openApproval(run, event);
  }
}

function conditionsOf({ runId, agentId, tenantId, userId }: ApprovalQuery): Term[] {
  const terms: Term[] = [];
  if (runId !== undefined) terms.push(["run = (SELECT id FROM runs WHERE run_id = ?)", runId]);
  if (agentId !== undefined) terms.push(["requester = ?", agentId]);
  if (tenantId === null) terms.push([`tenant = '${noTenant}'`]);
  else if (tenantId !== undefined) terms.push(["tenant = ?", tenantText(tenantId)]);
  if (userId === null) terms.push(["user_id IS NULL"]);
  else if (userId !== undefined) terms.push(["user_id = ?", userId]);
  return terms;
}
