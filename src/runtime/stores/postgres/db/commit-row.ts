const intoCommits = "INSERT INTO {commits} (run, number, at, next_event, link, body, refs)";

export const insertCommit = `${intoCommits} VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`;

/**
 * J3: the fence. The lock waits for a transaction that takes the run and then sees that the owner has changed; and a transaction
 * that wants to take the run waits until the commit is stored.
 */
const fence = "SELECT 1 FROM {runs} WHERE id = $1 AND epoch = $8 AND owner = $9 FOR SHARE";

/** Inserts a commit if its writer owns the run and its number is free (J1). Returns no row otherwise. */
export const fencedInsert = `WITH fence AS (${fence}) ${intoCommits}
  SELECT $1, $2, $3, $4, $5, $6, $7 FROM fence ON CONFLICT (run, number) DO NOTHING RETURNING id`;

/** Like `fencedInsert`, and deletes the deltas of what the commit records. */
export const fencedInsertAndClear = `WITH fence AS (${fence}),
    cleared AS (DELETE FROM {deltas} WHERE run = $1 AND about = ANY($10::text[]) AND EXISTS (SELECT 1 FROM fence)) ${intoCommits}
  SELECT $1, $2, $3, $4, $5, $6, $7 FROM fence ON CONFLICT (run, number) DO NOTHING RETURNING id`;
