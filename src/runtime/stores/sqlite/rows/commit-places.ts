import type { Database } from "../db/database.ts";
import { firstPlace } from "./commit-selects.ts";

/** A row of `places`: the ids of successive commits of a run, starting with commit `number`. */
interface Place {
  readonly number: number;
  readonly ids: readonly number[];
}

/**
 * Maximum number of fresh commits, which are commits that are not yet in `places`. It counts the commits that this
 * process wrote and those that it found when it opened the file.
 */
const mostFresh = 512;

/**
 * The lists of the placed commits of runs, which are commits in the table `places`, and the number of commits that
 * are still fresh.
 */
export class CommitPlaces {
  readonly #database: Database;
  #fresh = 0;
  #mostFresh = mostFresh;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Counts the fresh commits that other processes left. It also corrects `placed`: if rows were deleted by hand,
   * `placed` may be higher than the last id, so that new commits would count as placed.
   */
  open(): void {
    const { through, last } = this.#marks();
    this.#fresh = last - through;
    if (this.#fresh < 0) this.#setPlaced();
    if (this.isCrowded) this.#database.transaction("IMMEDIATE", () => this.placeNow());
  }

  /** Whether there are so many fresh commits that the next commit must place them. */
  get isCrowded(): boolean {
    return this.#fresh >= this.#mostFresh;
  }

  /** Counts a new commit. If `isCrowded` is true, call it inside the commit's transaction. */
  addedNow(): void {
    if (this.isCrowded) this.placeNow();
    else this.#fresh++;
  }

  /** Adds the fresh commits to `places`. Call inside a transaction. */
  placeNow(): void {
    this.#database.run(
      `INSERT INTO places (run, number, commit_ids)
       SELECT run, min(number), json_group_array(id) FROM
         (SELECT run, number, id FROM commits WHERE id > (SELECT through FROM placed) ORDER BY run, id)
       GROUP BY run`,
    );
    this.#setPlaced();
  }

  /**
   * Removes up to `limit` commits of a run and returns how many were removed. Call inside a transaction. SQLite may
   * reuse the ids of removed rows; commits with reused ids count as fresh.
   */
  removeNow(run: number, limit: number): number {
    this.placeNow();
    let count = 0;
    while (count < limit) {
      const place = this.find(firstPlace, run);
      if (place === undefined) break;
      count += this.#removeFrom(run, place, limit - count);
    }
    this.#setPlaced();
    return count;
  }

  #removeFrom(run: number, { number, ids }: Place, limit: number): number {
    const [some, rest] = [ids.slice(0, limit), ids.slice(limit)];
    const database = this.#database;
    database.run("DELETE FROM commits WHERE id IN (SELECT value FROM json_each(?))", JSON.stringify(some));
    database.run("DELETE FROM places WHERE run = ? AND number = ?", run, number);
    if (rest.length > 0) {
      database.run(
        "INSERT INTO places (run, number, commit_ids) VALUES (?, ?, ?)",
        run,
        number + some.length,
        JSON.stringify(rest),
      );
    }
    return some.length;
  }

  /** Returns the number that follows that of the run's last placed commit. */
  end(id: number): number {
    const row = this.#database.get<{ readonly end: number }>(
      `SELECT number + json_array_length(commit_ids) AS end FROM places WHERE run = ? ORDER BY number DESC LIMIT 1`,
      id,
    );
    return row?.end ?? 0;
  }

  find(sql: string, ...values: number[]): Place | undefined {
    const row = this.#database.get<{ readonly number: number; readonly ids: string }>(sql, ...values);
    return row === undefined ? undefined : { number: row.number, ids: JSON.parse(row.ids) as number[] };
  }

  #marks(): { readonly through: number; readonly last: number } {
    const row = this.#database.get<{ readonly through: number; readonly last: number }>(
      "SELECT through, (SELECT coalesce(max(id), 0) FROM commits) AS last FROM placed",
    );
    return row ?? { through: 0, last: 0 };
  }

  #setPlaced(): void {
    this.#fresh = 0;
    // The limit is random: processes that write at the same pace would otherwise leave all placing to one of them.
    this.#mostFresh = Math.ceil(mostFresh * (0.5 + Math.random() / 2));
    this.#database.run("UPDATE placed SET through = (SELECT coalesce(max(id), 0) FROM commits)");
  }
}
