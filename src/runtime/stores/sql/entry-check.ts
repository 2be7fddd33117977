import { setImmediate } from "node:timers/promises";
import type { SessionId } from "../../../kernel/index.ts";
import type { Chain, SealedEntries } from "../codec/chain.ts";
import { idAfter } from "../codec/entry-batch.ts";
import type { RunKey } from "../codec/stored-run.ts";
import type { ContentRows } from "./content-rows.ts";
import { isWithin } from "./session-rows.ts";
import type { SqlTables } from "./tables.ts";
import { all, type Work } from "./work.ts";

/** Number of rows that one query reads. */
const rowsPerQuery = 256;

interface CheckedRow extends SealedEntries {
  readonly place: number;
  readonly seal: string;
}

interface CheckedSession {
  readonly id: number;
  readonly sessionId: SessionId;
}

interface EditedEntry {
  readonly problem: string;
  readonly sessionId: SessionId;
}

export interface EntryCheckOptions {
  readonly tables: SqlTables;
  readonly contents: ContentRows;
  readonly chain: Chain;
}

/**
 * E1: checks that session entries are unchanged. It reads all entries of a run's session and of the sessions within
 * it, page by page. It reads entries of all runs, because an edit of an entry can also change the run that the
 * entry names.
 */
export class EntryCheck {
  readonly #options: EntryCheckOptions;
  readonly #readRows: string;

  constructor(options: EntryCheckOptions) {
    this.#options = options;
    const { entryPlace, entriesOf } = options.tables.dialect;
    this.#readRows = `SELECT ${entryPlace} AS place, stem, number, count, run_id AS "runId", task, type, body, refs, seal
      FROM {entries} AS entries WHERE ${entriesOf("$1", { after: "$2" })}
      ORDER BY ${entryPlace} LIMIT ${rowsPerQuery}`;
  }

  /** Returns the first entry that was changed. `undefined` if no entry was changed. */
  async check({ sessionId }: RunKey): Promise<EditedEntry | undefined> {
    const { tables } = this.#options;
    const sessions = await tables.query(() =>
      all<CheckedSession>(
        `SELECT id, session_id AS "sessionId" FROM {sessions} WHERE session_id = $1 OR (${isWithin("$1")}) ORDER BY id`,
        sessionId,
      ),
    );
    for (const session of sessions)
      for (let place = tables.dialect.placeBefore(session.id); ;) {
        const { last, problem } = await tables.query(() => this.#page(session, place));
        if (problem !== undefined) return { problem, sessionId: session.sessionId };
        if (last === undefined) break;
        place = last;
        await setImmediate();
      }
    return undefined;
  }

  /**
   * Checks one page. `last` is the place after which the next page begins. `undefined` if there is no further page.
   */
  *#page(
    { id, sessionId }: CheckedSession,
    after: number,
  ): Work<{ readonly last: number | undefined; readonly problem?: string }> {
    const { contents: stored, chain } = this.#options;
    const rows = yield* all<CheckedRow>(this.#readRows, id, after);
    const contents = yield* stored.load(rows.map(({ refs }) => refs));
    for (const row of rows) {
      const isKept = row.seal === chain.entrySeal(sessionId, row);
      if (isKept && chain.holdsContents({ refs: row.refs, contents })) continue;
      const [first, end] = [idAfter(row, 0), idAfter(row, row.count - 1)];
      const which = row.count === 1 ? `the entry ${first}` : `one of the entries ${first} to ${end}`;
      return { last: undefined, problem: `${which} of session ${sessionId} was changed` };
    }
    return { last: rows.length < rowsPerQuery ? undefined : rows.at(-1)?.place };
  }
}
