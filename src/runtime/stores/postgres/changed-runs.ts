import type { RunId } from "../../../kernel/index.ts";
import type { OwnedRun, Tables } from "./db/tables.ts";

/** A run of this store that has changed. */
interface ChangedRun {
  readonly index: number;
  /** Place of its last mail. `null` if the run has another owner, or was deleted. */
  readonly mail: number | null;
}

const findChanged = `SELECT wanted.index - 1 AS index, CASE WHEN runs.id IS NULL THEN NULL ELSE news.place END AS mail
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS wanted (id, epoch, seen, index)
  LEFT JOIN {runs} AS runs ON runs.id = wanted.id AND runs.epoch = wanted.epoch AND runs.run_id IS NOT NULL
  LEFT JOIN LATERAL (SELECT max(place) AS place FROM {mail} WHERE run = wanted.id AND place > wanted.seen) AS news ON true
  WHERE runs.id IS NULL OR news.place IS NOT NULL`;

/**
 * Returns the runs of this store that have mail which no earlier call returned, or another owner, which the store then no longer
 * owns. Costs one statement, for any number of runs.
 */
export async function changedRuns({ database, owned }: Tables): Promise<readonly RunId[]> {
  const known = [...owned.values()];
  if (known.length === 0) return [];
  const rows = await database.statements.all<ChangedRun>(
    findChanged,
    known.map(({ id }) => id),
    known.map(({ epoch }) => epoch),
    known.map(({ announcedMail = -1 }) => announcedMail),
  );
  return rows.map(({ index, mail }) => {
    const run = known[index] as OwnedRun;
    if (mail !== null) run.announcedMail = mail;
    else if (owned.get(run.runId) === run) owned.delete(run.runId);
    return run.runId;
  });
}
