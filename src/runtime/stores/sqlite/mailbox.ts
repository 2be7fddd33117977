import type { Mail, Mailbox, MaybePromise, PlacedMail, RunId, TenantScope } from "../../../kernel/index.ts";
import { RunState, type RunKey } from "../codec/stored-run.ts";
import { isExcluded } from "./db/run-row.ts";
import type { Tables } from "./db/tables.ts";

type StoredMail = Omit<Mail, "runId">;

interface MailRow {
  readonly place: number;
  readonly body: string;
}

const mailOfRun = "SELECT place, body FROM mail WHERE run = ? ORDER BY place";

/** The run has no owner and is not ready. */
const isLeft = `state IN (${RunState.SUSPENDED}, ${RunState.ENDED})`;

export class SqliteMailbox implements Mailbox {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  put(mail: Mail, scope?: TenantScope): Promise<boolean> {
    return this.#tables.write({
      apply: () => this.#put(this.#tables.run(mail.runId, scope), mail),
      committed: (isNew) => {
        if (isNew) this.#tables.announce({ kind: "mail", runId: mail.runId });
      },
    });
  }

  read(runId: RunId): MaybePromise<readonly PlacedMail[]> {
    return this.#tables.read(() => this.#read(runId));
  }

  #read(runId: RunId): readonly PlacedMail[] {
    const { id } = this.#tables.owned.get(runId) ?? this.#tables.run(runId);
    const rows = this.#tables.database.all<MailRow>(mailOfRun, id);
    return rows.map(({ place, body }) => ({ ...(JSON.parse(body) as StoredMail), runId, place }));
  }

  /** Puts mail inside the journal's transaction. Mail to a run that no longer exists is dropped. */
  putNow(mail: Mail): void {
    const run = this.#tables.find(mail.runId);
    if (run !== undefined) this.#put(run, mail);
  }

  receiverOf(mailId: string): MaybePromise<RunId | undefined> {
    return this.#tables.read(() => this.findSubmitted(mailId));
  }

  /** S5: returns the run that got the mail of this submission. Call inside the journal's transaction. */
  findSubmitted(mailId: string): RunId | undefined {
    return this.#tables.database.get<{ readonly runId: RunId }>(
      `SELECT run_id AS runId FROM runs WHERE run_id IS NOT NULL AND id =
         (SELECT run FROM mail_ids WHERE mail_id = ? AND mail_id >= 'submit ' AND mail_id < 'submit!')`,
      mailId,
    )?.runId;
  }

  hasMailNow(runId: RunId): boolean {
    return (
      this.#tables.database.get(
        "SELECT 1 FROM mail WHERE run = (SELECT id FROM runs WHERE run_id = ?) LIMIT 1",
        runId,
      ) !== undefined
    );
  }

  /** P3: removes consumed mail, inside the journal's transaction. */
  consumeNow(run: RunKey, through: number): void {
    this.#tables.database.run("DELETE FROM mail WHERE run = ? AND place <= ?", run.id, through);
  }

  #put(run: RunKey, { runId: _runId, ...mail }: Mail): boolean {
    const { database } = this.#tables;
    const isNew = database.run(
      "INSERT OR IGNORE INTO mail_ids (run, mail_id) VALUES (?, ?)",
      run.id,
      mail.id,
    );
    if (isNew === 0) return false;
    const counted = database.get<{ readonly place: number }>(
      `UPDATE runs SET mail_count = mail_count + 1,
         state = iif(${isLeft}, iif(${isExcluded}, ${RunState.HELD}, ${RunState.READY}), state),
         ready_at = iif(${isLeft}, ?2, ready_at),
         wake_at = NULL
       WHERE id = ?1 RETURNING mail_count - 1 AS place`,
      run.id,
      this.#tables.tick(),
    );
    database.run(
      "INSERT INTO mail (run, place, body) VALUES (?, ?, ?)",
      run.id,
      counted?.place ?? 0,
      JSON.stringify(mail satisfies StoredMail),
    );
    return true;
  }
}
