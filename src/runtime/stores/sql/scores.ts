import {
  missingRun,
  rootTaskId,
  type RunId,
  type RunScore,
  type ScoreDraft,
  type Scores,
  type StoredScore,
  type TenantScope,
} from "../../../kernel/index.ts";
import { erasuresOf } from "../codec/erasures.ts";
import type { RunKey } from "../codec/stored-run.ts";
import { checkRoom, isSameScore } from "../score-check.ts";
import { isChanged, isInScope, runKeyColumns, scopeValues } from "./run-row.ts";
import type { SqlTables } from "./tables.ts";
import { all, get, run, type Work } from "./work.ts";

type ScoredRow = Pick<RunKey, "id" | "erases"> & { readonly scores: string | null };

const scoreColumns = `name, value, author AS "by", at, comment, replaced_at AS "replacedAt"`;
const findScored = `SELECT ${runKeyColumns}, scores FROM {runs} WHERE run_id = $1 AND ${isInScope(2)}`;
const lockScored = `${findScored} FOR UPDATE`;
const listOfRun = `SELECT ${scoreColumns} FROM {run_scores} WHERE run = $1 ORDER BY id`;
const countOfRun = "SELECT CAST(count(*) AS INTEGER) AS count FROM {run_scores} WHERE run = $1";
const findFormer = `SELECT id, value, comment FROM {run_scores}
  WHERE run = $1 AND name = $2 AND author = $3 AND replaced_at IS NULL`;
const replaceFormer = "UPDATE {run_scores} SET replaced_at = $2 WHERE id = $1";
const insertScore =
  "INSERT INTO {run_scores} (run, name, author, value, comment, at) VALUES ($1, $2, $3, $4, $5, $6)";
const changeRun = `UPDATE {runs} SET scores = $2, ${isChanged} WHERE id = $1`;

/** The scores of runs in a SQL store. The column `runs.scores` repeats the current ones. */
export class SqlScores implements Scores {
  readonly #tables: SqlTables;

  constructor(tables: SqlTables) {
    this.#tables = tables;
  }

  put(runId: RunId, score: ScoreDraft, scope?: TenantScope): Promise<void> {
    return this.#tables.transact(() => put(runId, score, scope));
  }

  async list(runId: RunId, scope?: TenantScope): Promise<readonly StoredScore[]> {
    return this.#tables.snapshot(() => list(runId, scope));
  }
}

function* put(runId: RunId, draft: ScoreDraft, scope: TenantScope | undefined): Work<void> {
  const scored = yield* get<ScoredRow>(lockScored, runId, ...scopeValues(scope));
  if (scored === undefined) throw missingRun(runId);
  const score = isWordless(scored) ? { ...draft, comment: null } : draft;
  const { name, value, by, comment, at } = score;
  type Former = Pick<StoredScore, "value" | "comment"> & { readonly id: number };
  const former = yield* get<Former>(findFormer, scored.id, name, by);
  if (former !== undefined && isSameScore(former, score)) return;
  const counting = scored.scores === null ? [] : (JSON.parse(scored.scores) as readonly RunScore[]);
  const count = (yield* get<{ readonly count: number }>(countOfRun, scored.id))?.count ?? 0;
  const next = checkRoom(runId, score, counting, count);
  if (former !== undefined) yield* run(replaceFormer, former.id, at);
  yield* run(insertScore, scored.id, name, by, value, comment, at);
  yield* run(changeRun, scored.id, JSON.stringify(next));
}

function* list(runId: RunId, scope: TenantScope | undefined): Work<readonly StoredScore[]> {
  const scored = yield* get<ScoredRow>(findScored, runId, ...scopeValues(scope));
  if (scored === undefined) throw missingRun(runId);
  return yield* all<StoredScore>(listOfRun, scored.id);
}

/** Z7: whether the text of the root task was erased. */
function isWordless(scored: ScoredRow): boolean {
  return erasuresOf(scored).some(({ taskId }) => taskId === rootTaskId);
}
