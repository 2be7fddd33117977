import type {
  Mail,
  Mailbox,
  MaybePromise,
  PlacedMail,
  RunId,
  SessionId,
  TenantScope,
} from "../../../kernel/index.ts";
import { RunState, type RunKey } from "../codec/stored-run.ts";
import { isChanged, isExcluded } from "./run-row.ts";
import { sessionLock } from "./session-rows.ts";
import type { SqlTables } from "./tables.ts";
import { all, announce, get, lock, run, type Work } from "./work.ts";

type StoredMail = Omit<Mail, "runId">;

interface MailRow {
  readonly place: number;
  readonly body: string;
}

const mailOfRun = "SELECT place, body FROM {mail} WHERE run = $1 ORDER BY place";

/** The run has no owner and is not ready. */
const isLeft = `state IN (${RunState.SUSPENDED}, ${RunState.ENDED}, ${RunState.QUEUED})`;

const insertId = "INSERT INTO {mail_ids} (run, mail_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
/**
 * SQL that counts a mail. It locks the row of the run, so that places have no gap. L17: the time at which the
 * limits of a queued run are checked does not change.
 */
const countMail = `UPDATE {runs} AS runs SET mail_count = mail_count + 1,
    state = CASE WHEN NOT ${isLeft} THEN state WHEN ${isExcluded} THEN ${RunState.HELD} ELSE ${RunState.READY} END,
    ready_at = CASE WHEN ${isLeft} THEN $2 ELSE ready_at END,
    wake_at = CASE WHEN gate IS NULL OR ${isExcluded} THEN NULL ELSE wake_at END, ${isChanged}
  WHERE id = $1 RETURNING mail_count - 1 AS place`;
const insertMail = "INSERT INTO {mail} (run, place, body) VALUES ($1, $2, $3)";
const countAndInsert = `WITH counted AS (${countMail})
  INSERT INTO {mail} (run, place, body) SELECT $1, place, $3 FROM counted`;
const submittedTo = `SELECT run_id AS "runId" FROM {runs} WHERE run_id IS NOT NULL AND id =
  (SELECT run FROM {mail_ids} WHERE mail_id = $1 AND mail_id >= 'submit ' AND mail_id < 'submit!' LIMIT 1)`;
const anyMail = "SELECT 1 FROM {mail} WHERE run = (SELECT id FROM {runs} WHERE run_id = $1) LIMIT 1";
const sessionsOfRuns = `SELECT session_id AS "sessionId" FROM {runs} WHERE run_id = ANY($1::text[])`;

export class SqlMailbox implements Mailbox {
  readonly #tables: SqlTables;

  constructor(tables: SqlTables) {
    this.#tables = tables;
  }

  put(mail: Mail, scope?: TenantScope): Promise<boolean> {
    return this.#tables.transact(() => this.#putInScope(mail, scope));
  }

  *#putInScope(mail: Mail, scope: TenantScope | undefined): Work<boolean> {
    const receiver = yield* this.#tables.run(mail.runId, scope);
    yield* lock(sessionLock(receiver.sessionId));
    return yield* this.#put(receiver, mail);
  }

  read(runId: RunId): MaybePromise<readonly PlacedMail[]> {
    return this.#tables.query(() => this.#read(runId));
  }

  *#read(runId: RunId): Work<readonly PlacedMail[]> {
    const { id } = this.#tables.owned.get(runId) ?? (yield* this.#tables.run(runId));
    const rows = yield* all<MailRow>(mailOfRun, id);
    return rows.map(({ place, body }) => ({ ...(JSON.parse(body) as StoredMail), runId, place }));
  }

  receiverOf(mailId: string): MaybePromise<RunId | undefined> {
    return this.#tables.query(() => findSubmitted(mailId));
  }

  /** Stores mail inside the journal's transaction. Mail to a run that no longer exists is dropped. */
  *putNow(mail: Mail): Work<void> {
    const receiver = yield* this.#tables.find(mail.runId);
    if (receiver !== undefined) yield* this.#put(receiver, mail);
  }

  *#put({ id }: RunKey, { runId, ...mail }: Mail): Work<boolean> {
    if ((yield* run(insertId, id, mail.id)) === 0) return false;
    const body = JSON.stringify(mail satisfies StoredMail);
    const tick = this.#tables.tick();
    if (this.#tables.dialect.writesInQueries) yield* run(countAndInsert, id, tick, body);
    else {
      const counted = yield* get<{ readonly place: number }>(countMail, id, tick);
      yield* run(insertMail, id, counted?.place ?? 0, body);
    }
    yield* announce({ kind: "mail", runId }, { everywhere: !this.#tables.owned.has(runId) });
    return true;
  }
}

/** S5: returns the run that got the mail of this submission. */
export function* findSubmitted(mailId: string): Work<RunId | undefined> {
  return (yield* get<{ readonly runId: RunId }>(submittedTo, mailId))?.runId;
}

/** L20: records, without a mail, that the run got the start of this submission. */
export function* noteSubmitted({ id }: RunKey, mailId: string): Work<void> {
  yield* run(insertId, id, mailId);
}

export function* hasMail(runId: RunId): Work<boolean> {
  return (yield* get(anyMail, runId)) !== undefined;
}

/** Returns the sessions of the runs that get this mail. They must be locked before the mail is stored. */
export function* receivingSessions(mail: readonly Mail[]): Work<readonly SessionId[]> {
  const rows = yield* all<{ readonly sessionId: SessionId }>(
    sessionsOfRuns,
    mail.map(({ runId }) => runId),
  );
  return rows.map(({ sessionId }) => sessionId);
}

/** P7: forgets that a mail was put. */
export function* forgetMail({ id }: RunKey, mailId: string): Work<void> {
  yield* run("DELETE FROM {mail_ids} WHERE run = $1 AND mail_id = $2", id, mailId);
}

/** P3: removes consumed mail and notifies the listeners of this process, inside the journal's transaction. */
export function* consumeMail({ id, runId }: RunKey, through: number): Work<void> {
  yield* run("DELETE FROM {mail} WHERE run = $1 AND place <= $2", id, through);
  yield* announce({ kind: "consumed", runId }, { everywhere: false });
}
