import type { Mail, Mailbox, PlacedMail, RunId } from "../../../kernel/index.ts";
import type { Tables } from "./tables.ts";

export class MemoryMailbox implements Mailbox {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async put(mail: Mail): Promise<boolean> {
    const row = this.#tables.run(mail.runId);
    if (row.mailIds.has(mail.id)) return false;
    row.mail.push({ ...mail, place: row.mailIds.size });
    row.mailIds.add(mail.id);
    return true;
  }

  async read(runId: RunId): Promise<readonly PlacedMail[]> {
    return [...this.#tables.run(runId).mail];
  }
}
