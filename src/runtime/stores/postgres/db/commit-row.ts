/** Inserts the first commit of a run. */
export const insertCommit = `INSERT INTO {commits} (run, number, at, next_event, link, body, refs)
  VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`;

/**
 * J1, J3: inserts a commit if its writer owns the run and its number is free, and deletes the deltas of what it records. Returns no
 * row otherwise. The function locks the row of the run first: the lock waits for a transaction that takes the run and then sees
 * that the owner has changed, and a transaction that wants to take the run waits until the commit is stored.
 */
export const fencedInsert = `SELECT id FROM {append_commit}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text[]) AS id WHERE id IS NOT NULL`;
