import type {
  ApprovalPage,
  ApprovalQuery,
  ClaimOptions,
  CollectOptions,
  Commit,
  Creation,
  Journal,
  Lease,
  MaybePromise,
  Rest,
  RunId,
  RunChangeList,
  RunCountQuery,
  RunPage,
  RunQuery,
  RunRecord,
  RunSummary,
  SingleFlight,
  Submission,
  TenantScope,
} from "../../../kernel/index.ts";
import { draftCommit, type Draft, type DraftTools } from "../codec/commit-draft.ts";
import { recordOf, type RunKey, type RunRow } from "../codec/stored-run.ts";
import { CommitEffects, type CommitEffectsOptions } from "./commit-effects.ts";
import { Deletion, type DeletionOptions } from "./deletion.ts";
import { RunCreator, type RunCreatorOptions } from "./run-creator.ts";
import { isInScope, runColumns, scopeValues } from "./run-row.ts";
import type { OwnedRun } from "./tables.ts";
import { get } from "./work.ts";

type Creating<Owned extends OwnedRun> = Omit<RunCreatorOptions<Owned>, "effects">;

type SqlJournalOptions<Owned extends OwnedRun> = CommitEffectsOptions &
  DeletionOptions &
  Creating<Owned> & { readonly draftTools: DraftTools; readonly reader: RunReader };

/** The parts that a journal gets from its store. The dialect adds the others. */
export type JournalParts<Owned extends OwnedRun> = Omit<
  SqlJournalOptions<Owned>,
  "reader" | "holder" | "wouldClaim" | "added" | "own"
>;

/** Reads the commits of a run for the journal, page by page. */
interface RunReader {
  replay(runId: RunId, visit: (commit: Commit) => void): MaybePromise<RunRecord>;
  /** Yields the commits from number `from` on. Throws `store_corrupt` if a commit is missing. */
  pages(runId: RunId, from?: number): AsyncIterable<readonly Commit[]>;
}

const findRun = `SELECT ${runColumns} FROM {runs} AS runs WHERE run_id = $1 AND ${isInScope(2)}`;

/**
 * The common part of the journals of the SQL stores. A dialect adds how runs are created and how commits are
 * appended.
 */
export abstract class SqlJournal<Owned extends OwnedRun> implements Journal {
  protected readonly effects: CommitEffects;
  protected readonly creator: RunCreator<Owned>;
  readonly #options: SqlJournalOptions<Owned>;
  readonly #deletion: Deletion;

  constructor(options: SqlJournalOptions<Owned>) {
    this.#options = options;
    this.#deletion = new Deletion(options);
    this.effects = new CommitEffects(options);
    this.creator = new RunCreator({ ...options, effects: this.effects });
  }

  abstract createAndClaim(
    record: RunRecord,
    first: Commit,
    flight?: SingleFlight,
    claim?: ClaimOptions,
  ): Promise<Creation>;

  abstract append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): MaybePromise<Commit>;

  abstract appendAndRelease(
    lease: Lease,
    commit: Commit,
    submissions: readonly Submission[] | undefined,
    rest: Rest,
  ): Promise<Commit>;

  create(record: RunRecord, first: Commit, flight?: SingleFlight): Promise<Creation> {
    return this.createAndClaim(record, first, flight);
  }

  async find(runId: RunId, scope?: TenantScope): Promise<RunRecord | undefined> {
    const { tables } = this.#options;
    const row = await tables.query(() => get<RunRow>(findRun, runId, ...scopeValues(scope)));
    return row === undefined ? undefined : recordOf(row);
  }

  summary(runId: RunId): Promise<RunSummary | undefined> {
    return this.#options.list.find(runId);
  }

  list(query?: RunQuery): Promise<RunPage> {
    return this.#options.list.read(query);
  }

  count(query?: RunCountQuery): Promise<number> {
    return this.#options.list.count(query);
  }

  changes(after?: string): Promise<RunChangeList> {
    return this.#options.list.changes(after);
  }

  approvals(query?: ApprovalQuery): Promise<ApprovalPage> {
    return this.#options.approvals.read(query);
  }

  async *read(runId: RunId, from = 0): AsyncIterable<Commit> {
    for await (const page of this.#options.reader.pages(runId, from)) yield* page;
  }

  replay(runId: RunId, visit: (commit: Commit) => void): MaybePromise<RunRecord> {
    return this.#options.reader.replay(runId, visit);
  }

  delete(runId: RunId): Promise<void> {
    return this.#deletion.delete(runId);
  }

  collect(options: CollectOptions): Promise<number> {
    return this.#deletion.collect(options);
  }

  protected draft(commit: Commit, run: Omit<RunKey, "id">): Draft {
    return draftCommit(commit, run, this.#options.draftTools);
  }
}
