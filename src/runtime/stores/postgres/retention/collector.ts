import { Chore } from "../../chore.ts";
import { OwnerKind } from "../../codec/owner-kind.ts";
import type { Queries } from "../db/queries.ts";
import type { Tables } from "../db/tables.ts";

/** Maximum number of rows that one transaction deletes from a table. */
const mostRows = 500;
/** A piece is as large as many other rows. */
const mostPieces = 16;

interface Kind {
  readonly table: string;
  /** The column whose value is NULL in a deleted row. */
  readonly name: string;
  /** SQL statements that delete the rows which belong to the deleted row $1. */
  readonly holds: readonly string[];
}

function rowsOf(table: string, owner: string, most = mostRows): string {
  return `DELETE FROM {${table}} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {${table}} WHERE ${owner} = $1 LIMIT ${most}))`;
}

function contentsOf(kind: number): string {
  return `DELETE FROM {content_owners} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {content_owners}
    WHERE kind = ${kind} AND owner = $1 LIMIT ${mostRows}))`;
}

const kinds: readonly Kind[] = [
  {
    table: "runs",
    name: "run_id",
    holds: [
      rowsOf("commits", "run"),
      rowsOf("mail", "run"),
      rowsOf("mail_ids", "run"),
      rowsOf("deltas", "run"),
      rowsOf("approvals", "run"),
      rowsOf("run_metadata", "run"),
      rowsOf("run_labels", "run"),
      rowsOf("run_scores", "run"),
      contentsOf(OwnerKind.RUN),
    ],
  },
  {
    table: "sessions",
    name: "session_id",
    holds: [rowsOf("entries", "session"), contentsOf(OwnerKind.SESSION)],
  },
  // The last kind, because the rows of the other kinds own contents.
  { table: "contents", name: "hash", holds: [rowsOf("content_pieces", "content", mostPieces)] },
];

/**
 * Deletes the rows of deleted runs, sessions and contents, in parts. Readers already no longer see them. If the
 * process dies, the next process that opens the store continues.
 */
export class Collector {
  readonly #tables: Tables;
  readonly #chore = new Chore(async () => {
    for (const kind of kinds) await this.#collectKind(kind);
  });

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Resolves when everything that was deleted before the call is freed. */
  collect(): Promise<void> {
    return this.#chore.ask();
  }

  stop(): void {
    this.#chore.stop();
  }

  async #collectKind({ table, name, holds }: Kind): Promise<void> {
    const next = `SELECT id FROM {${table}} WHERE ${name} IS NULL ORDER BY id LIMIT 1`;
    const { database } = this.#tables;
    while (!this.#chore.isStopped) {
      // Most calls find nothing and need no transaction.
      if ((await database.statements.get(next)) === undefined) return;
      await database.write(async (transaction) => {
        // A row that another process frees is skipped.
        const row = await transaction.get<{ readonly id: number }>(`${next} FOR UPDATE SKIP LOCKED`);
        if (row === undefined || !(await isEmptied(transaction, holds, row.id))) return;
        await transaction.run(`DELETE FROM {${table}} WHERE id = $1`, row.id);
      });
    }
  }
}

/** Deletes one part of the rows that belong to a deleted row. Returns whether no rows are left. */
async function isEmptied(queries: Queries, holds: readonly string[], id: number): Promise<boolean> {
  for (const remove of holds) if ((await queries.run(remove, id)) > 0) return false;
  return true;
}
