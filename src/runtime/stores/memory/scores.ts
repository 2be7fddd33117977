import {
  isInScope,
  missingRun,
  rootTaskId,
  type RunId,
  type ScoreDraft,
  type Scores,
  type StoredScore,
  type TenantScope,
} from "../../../kernel/index.ts";
import { checkRoom, isSameScore } from "../score-check.ts";
import { countingScores } from "./run-summary.ts";
import type { RunRow } from "./run-row.ts";
import type { Tables } from "./tables.ts";

const none: readonly never[] = [];

export class MemoryScores implements Scores {
  readonly #tables: Pick<Tables, "runs" | "noteChange">;

  constructor(tables: Pick<Tables, "runs" | "noteChange">) {
    this.#tables = tables;
  }

  async put(runId: RunId, draft: ScoreDraft, scope?: TenantScope): Promise<void> {
    const row = this.#row(runId, scope);
    const score = isWordless(row) ? { ...draft, comment: null } : draft;
    const all = row.scores ?? none;
    const former = all.find(
      ({ name, by, replacedAt }) => replacedAt === null && name === score.name && by === score.by,
    );
    if (former !== undefined && isSameScore(former, score)) return;
    checkRoom(runId, score, countingScores(row), all.length);
    const kept = all.map((each) => (each === former ? { ...each, replacedAt: score.at } : each));
    row.scores = [...kept, { ...score, replacedAt: null }];
    this.#tables.noteChange(row);
  }

  async list(runId: RunId, scope?: TenantScope): Promise<readonly StoredScore[]> {
    return this.#row(runId, scope).scores ?? none;
  }

  #row(runId: RunId, scope: TenantScope | undefined): RunRow {
    const row = this.#tables.runs.get(runId);
    if (row === undefined || !isInScope(row.record, scope)) throw missingRun(runId);
    return row;
  }
}

/** Z7: whether the text of the root task was erased. */
function isWordless({ commits }: RunRow): boolean {
  return commits.some(({ erases }) => erases?.some(({ taskId }) => taskId === rootTaskId) ?? false);
}
