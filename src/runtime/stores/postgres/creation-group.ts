import type { RunRecord } from "../../../kernel/index.ts";
import type { Draft } from "../codec/commit-draft.ts";
import type { CreatedRun, RunCreator } from "../sql/run-creator.ts";
import type { OwnedRun } from "../sql/tables.ts";
import { lock } from "../sql/work.ts";
import type { Database } from "./db/database.ts";

/**
 * Maximum number of runs that one transaction creates. Each run takes a lock, and a server has only a few thousand
 * locks for all transactions.
 */
const mostTogether = 100;

/** A run to create that is neither claimed nor restricted to one unfinished run per session. */
export interface NewCreation {
  readonly record: RunRecord;
  readonly draft: Draft;
}

type Created = CreatedRun<OwnedRun>;

interface Waiting extends NewCreation {
  readonly done: PromiseWithResolvers<Created>;
}

/**
 * Creates in one transaction the runs that callers of this process submit at the same time: those of one turn of
 * the event loop, and those that arrive while another transaction creates runs. The runs have the order of the
 * calls.
 */
export class CreationGroup {
  readonly #database: Database;
  readonly #creator: RunCreator<OwnedRun>;
  #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(database: Database, creator: RunCreator<OwnedRun>) {
    this.#database = database;
    this.#creator = creator;
  }

  create(creation: NewCreation): Promise<Created> {
    const done = Promise.withResolvers<Created>();
    this.#waiting.push({ ...creation, done });
    if (!this.#isWriting) {
      this.#isWriting = true;
      setImmediate(() => void this.#writeAll());
    }
    return done.promise;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) await this.#settle(this.#waiting.splice(0, mostTogether));
    this.#isWriting = false;
  }

  /**
   * Settles the calls of a group. If the transaction fails, each run gets its own transaction, so that only the
   * invalid run fails.
   */
  async #settle(group: readonly Waiting[]): Promise<void> {
    try {
      const created = await this.#write(group);
      group.forEach(({ done }, index) => done.resolve(created[index] as Created));
    } catch (error) {
      const [only] = group;
      if (group.length === 1) only?.done.reject(error);
      else for (const each of group) await this.#settle([each]);
    }
  }

  #write(group: readonly Waiting[]): Promise<readonly Created[]> {
    const creator = this.#creator;
    return this.#database.write(async (transaction) => {
      // All locks at once, in their order, so that two groups of different processes do not wait for each other.
      await transaction.do(lock(...group.flatMap(({ record, draft }) => creator.locksOf(record, draft))));
      const created: Created[] = [];
      for (const { record, draft } of group)
        created.push(await transaction.do(creator.createAlone(record, draft, undefined, undefined)));
      return created;
    });
  }
}
