import {
  attempt,
  type Mail,
  type Mailbox,
  type MaybePromise,
  type PlacedMail,
  type RunId,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { Tables } from "./tables.ts";
import type { RunRow } from "./run-row.ts";

export class MemoryMailbox implements Mailbox {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async put(mail: Mail, scope?: TenantScope): Promise<boolean> {
    this.#tables.run(mail.runId, scope);
    return this.putNow(mail);
  }

  /** Returns `false` if a mail with this id was put before, or if the run does not exist. */
  putNow(mail: Mail): boolean {
    const row = this.#tables.runs.get(mail.runId);
    if (row === undefined || row.mailIds?.has(mail.id) === true) return false;
    if (row.mail.length === 0) row.readyAt = this.#tables.tick();
    row.mailIds ??= new Set();
    row.mail = [...row.mail, { ...mail, place: row.mailCount++ }];
    row.mailIds.add(mail.id);
    if (mail.id.startsWith("submit ")) this.#tables.submitted.set(mail.id, row);
    row.isLive = true;
    this.#tables.place(row);
    this.#tables.announce({ kind: "mail", runId: mail.runId });
    return true;
  }

  /** P3: removes consumed mail and notifies listeners, because a caller may wait until its mail is consumed. */
  consumeNow(row: RunRow, through: number): void {
    row.mail = row.mail.filter(({ place }) => place > through);
    this.#tables.announce({ kind: "consumed", runId: row.record.runId });
  }

  receiverOf(mailId: string): RunId | undefined {
    return this.#tables.submitted.get(mailId)?.record.runId;
  }

  read(runId: RunId): MaybePromise<readonly PlacedMail[]> {
    return attempt(() => this.#tables.run(runId).mail);
  }
}
