import {
  Fault,
  HistoryRetention,
  type Hash,
  type JsonObject,
  type RunFacts,
  type RunId,
  type SessionId,
  type Store,
  type StoredRecord,
} from "../../kernel/index.ts";

/** Namespace of the records that say which machine keeps a home folder for which run or session. */
const namespace = "homes";

/** Until when a home folder is kept. */
type Keeping =
  /** Until its session is deleted. */
  | "session"
  /** Until its run is deleted. */
  | "run"
  /** Until its run ends. */
  | "end";

const keeping = {
  [HistoryRetention.PERMANENT]: "session",
  [HistoryRetention.RUN]: "run",
  [HistoryRetention.NONE]: "end",
} as const satisfies Readonly<Record<HistoryRetention, Keeping>>;

/** The value of a record. Stored. */
interface KeptHome extends JsonObject {
  readonly name: string;
  readonly until: Keeping;
  readonly sessionId: SessionId;
  readonly runId: RunId;
}

export interface KeptHomesOptions {
  readonly store: Pick<Store, "records" | "journal" | "sessions">;
  readonly hash: Hash;
  /** Name of this machine. */
  readonly host: string;
  /**
   * Deletes a home folder of this machine. Does nothing if the folder does not exist. If absent, home folders are
   * kept.
   */
  readonly remove?: ((name: string) => Promise<void>) | undefined;
  readonly onError: (error: unknown) => void;
}

/**
 * The home folders that programs have left on this machine for later runs of their conversations. The record is
 * written before the folder is created, and deleted after it, so that a crash leaves no folder without a record. A
 * process of the same machine deletes a folder: when it opens a runtime, after the end of a run, and after a
 * deletion of runs or sessions.
 */
export class KeptHomes {
  readonly #options: KeptHomesOptions;
  readonly #prefix: string;
  #sweeping: Promise<void> | undefined;
  #isClosed = false;
  /** Whether this process has kept a home folder that is deleted at the end of its run. */
  #endsWithRuns = false;

  constructor(options: KeptHomesOptions) {
    this.#options = options;
    this.#prefix = `${options.hash(options.host)}/`;
  }

  /** Records that the task of a run uses a home folder. Call it before the folder is created. */
  async keep(
    name: string,
    { sessionId, runId }: Pick<RunFacts, "sessionId" | "runId">,
    retention: HistoryRetention,
  ): Promise<void> {
    const { records, sessions } = this.#options.store;
    let until: Keeping = keeping[retention];
    // A run without entries has no session.
    if (until === "session" && (await sessions.find(sessionId)) === undefined) until = "run";
    if (until === "end") this.#endsWithRuns = true;
    const key = { namespace, key: `${this.#prefix}${name}/${until === "session" ? until : runId}` };
    const value: KeptHome = { name, until, sessionId, runId };
    for (;;) {
      const found = await records.get(key);
      if ((await records.put({ ...key, value }, found?.version ?? "absent")).kind === "stored") return;
    }
  }

  /** Deletes the folders whose run or session no longer exists. If a sweep is already in progress, it is repeated. */
  async sweep(): Promise<void> {
    if (this.#options.remove === undefined) return;
    await this.#sweeping;
    this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined));
    await this.#sweeping;
  }

  /** Sweeps without a caller that waits. */
  note(): void {
    if (!this.#isClosed) this.sweep().catch(this.#options.onError);
  }

  /**
   * Records that a run has ended. If this process has kept a home folder that ends with a run, it looks for folders
   * to delete.
   */
  noteEnd(): void {
    if (this.#endsWithRuns) this.note();
  }

  /** Resolves when the sweep in progress has ended. No sweep starts afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#sweeping?.catch(() => undefined);
  }

  async #sweep(): Promise<void> {
    const { records } = this.#options.store;
    let after: string | undefined;
    do {
      const page = await records.list({
        namespace,
        prefix: this.#prefix,
        ...(after !== undefined && { after }),
      });
      for (const record of page.records) if (await this.#isOver(homeIn(record))) await this.#release(record);
      after = page.next ?? undefined;
    } while (after !== undefined);
  }

  async #isOver({ until, sessionId, runId }: KeptHome): Promise<boolean> {
    const { journal, sessions } = this.#options.store;
    const run = await journal.summary(runId);
    if (run?.endedAt === null) return false;
    if (until === "run") return run === undefined;
    return until === "end" || (await sessions.find(sessionId)) === undefined;
  }

  /**
   * Deletes a folder that no other run uses, and its record. A record that was written again in the meantime is
   * kept.
   */
  async #release({ key, version, ...record }: StoredRecord): Promise<void> {
    const { store, remove } = this.#options;
    const { name } = homeIn(record);
    const others = await store.records.list({ namespace, prefix: `${this.#prefix}${name}/`, limit: 2 });
    const current = others.records.find((each) => each.key === key);
    if (current?.version !== version) return;
    if (others.records.length === 1) await remove?.(name);
    await store.records.delete({ namespace, key }, version);
  }
}

function homeIn({ value }: Pick<StoredRecord, "value">): KeptHome {
  const { name, until } = (value ?? {}) as Partial<KeptHome>;
  if (typeof name === "string" && typeof until === "string") return value as KeptHome;
  throw new Fault("store_corrupt", `a record of the namespace ${namespace} describes no home folder`);
}
