import type { Mail, Mailbox, PlacedMail, RunId, SessionId, TenantScope } from "../../../kernel/index.ts";
import { RunState, type RunKey } from "../codec/stored-run.ts";
import type { Queries } from "./db/queries.ts";
import { isExcluded } from "./db/run-row.ts";
import type { Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";
import { sessionLock } from "./session-changes.ts";

type StoredMail = Omit<Mail, "runId">;

interface MailRow {
  readonly place: number;
  readonly body: string;
}

const mailOfRun = "SELECT place, body FROM {mail} WHERE run = $1 ORDER BY place";

/** The run has no owner and is not ready. */
const isLeft = `state IN (${RunState.SUSPENDED}, ${RunState.ENDED})`;

const insertId = "INSERT INTO {mail_ids} (run, mail_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
/** The update locks the row of the run, so that places have no gap. */
const insertMail = `WITH counted AS (UPDATE {runs} AS runs SET mail_count = mail_count + 1,
      state = CASE WHEN NOT ${isLeft} THEN state WHEN ${isExcluded} THEN ${RunState.HELD} ELSE ${RunState.READY} END,
      ready_at = CASE WHEN ${isLeft} THEN $2 ELSE ready_at END,
      wake_at = NULL
    WHERE id = $1 RETURNING mail_count - 1 AS place)
  INSERT INTO {mail} (run, place, body) SELECT $1, place, $3 FROM counted`;
const findSubmitted = `SELECT run_id AS "runId" FROM {runs} WHERE run_id IS NOT NULL AND id =
  (SELECT run FROM {mail_ids} WHERE mail_id = $1 AND mail_id >= 'submit ' AND mail_id < 'submit!' LIMIT 1)`;

export class PostgresMailbox implements Mailbox {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  put(mail: Mail, scope?: TenantScope): Promise<boolean> {
    return this.#tables.database.write(async (transaction) => {
      const run = await this.#tables.run(transaction, mail.runId, scope);
      await transaction.lock(sessionLock(run.sessionId));
      return this.#put(transaction, run, mail);
    });
  }

  async read(runId: RunId): Promise<readonly PlacedMail[]> {
    const { statements } = this.#tables.database;
    const { id } = this.#tables.owned.get(runId) ?? (await this.#tables.run(statements, runId));
    const rows = await statements.all<MailRow>(mailOfRun, id);
    return rows.map(({ place, body }) => ({ ...(JSON.parse(body) as StoredMail), runId, place }));
  }

  receiverOf(mailId: string): Promise<RunId | undefined> {
    return this.findSubmitted(this.#tables.database.statements, mailId);
  }

  /** Returns the sessions of the runs that get this mail, to be locked before it is put. */
  async sessionsOf(queries: Queries, mail: readonly Mail[]): Promise<readonly SessionId[]> {
    const rows = await queries.all<{ readonly sessionId: SessionId }>(
      `SELECT session_id AS "sessionId" FROM {runs} WHERE run_id = ANY($1::text[])`,
      mail.map(({ runId }) => runId),
    );
    return rows.map(({ sessionId }) => sessionId);
  }

  /** Puts mail inside the journal's transaction. Mail to a run that no longer exists is dropped. */
  async putNow(transaction: Transaction, mail: Mail): Promise<void> {
    const run = await this.#tables.find(transaction, mail.runId);
    if (run !== undefined) await this.#put(transaction, run, mail);
  }

  /** S5: returns the run that got the mail of this submission. */
  async findSubmitted(queries: Queries, mailId: string): Promise<RunId | undefined> {
    return (await queries.get<{ readonly runId: RunId }>(findSubmitted, mailId))?.runId;
  }

  async hasMail(queries: Queries, runId: RunId): Promise<boolean> {
    const row = await queries.get(
      "SELECT 1 FROM {mail} WHERE run = (SELECT id FROM {runs} WHERE run_id = $1) LIMIT 1",
      runId,
    );
    return row !== undefined;
  }

  /** P3: removes consumed mail and notifies the listeners of this process, inside the journal's transaction. */
  async consume(transaction: Transaction, run: RunKey, through: number): Promise<void> {
    await transaction.run("DELETE FROM {mail} WHERE run = $1 AND place <= $2", run.id, through);
    transaction.announce({ kind: "consumed", runId: run.runId }, { everywhere: false });
  }

  async #put(transaction: Transaction, run: RunKey, mail: Mail): Promise<boolean> {
    const { runId, ...stored } = mail;
    if ((await transaction.run(insertId, run.id, mail.id)) === 0) return false;
    const body = JSON.stringify(stored satisfies StoredMail);
    await transaction.run(insertMail, run.id, this.#tables.tick(), body);
    transaction.announce({ kind: "mail", runId }, { everywhere: !this.#tables.owned.has(runId) });
    return true;
  }
}
