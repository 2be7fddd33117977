import {
  chainStart,
  eraseCommit,
  Fault,
  rootTaskId,
  type Commit,
  type Erasure as Erased,
  type Hash,
  type MaybePromise,
} from "../../../kernel/index.ts";
import { Chore } from "../chore.ts";
import type { Chain } from "../codec/chain.ts";
import { encodeCommit } from "../codec/commit-codec.ts";
import type { CommitRow } from "../codec/commit-row.ts";
import { commitText } from "../codec/commit-text.ts";
import { addErasures, erasuresOf } from "../codec/erasures.ts";
import type { LargeValues, SplitText } from "../codec/large-values.ts";
import type { RunKey } from "../codec/stored-run.ts";
import type { LogCheck } from "./log-check.ts";
import { eraseMetadata } from "./run-metadata.ts";
import { get, run as write, type Work } from "./work.ts";

/** The next commit to be erased. */
export interface ErasureCursor {
  readonly number: number;
  /** E1: link of the commit before. */
  readonly link: string;
}

/** What the erasure of runs needs from a store. */
export interface ErasureSource {
  /** Returns a run that is marked for erasure, other than those with the keys in `except`. */
  next(except: readonly number[]): MaybePromise<RunKey | undefined>;
  /**
   * Erases the next commits of a run in one transaction. Returns where to continue, or `undefined` if the log is
   * not valid.
   */
  eraseFrom(run: RunKey, from: ErasureCursor): Promise<ErasureCursor | "end" | undefined>;
  /** Removes contents that no commit refers to. */
  collect(): Promise<void>;
  /** Removes the mark of a run, unless more text was marked in the meantime. */
  finish(run: RunKey): Promise<unknown>;
}

/** Records the erasures of a commit, inside its transaction. */
export function* markErased({ id }: RunKey, erasures: readonly Erased[]): Work<void> {
  const before = yield* get<{ readonly erases: string | null }>(
    "SELECT erases FROM {runs} WHERE id = $1",
    id,
  );
  const erases = JSON.stringify(addErasures(erasuresOf(before ?? {}), erasures));
  yield* write("UPDATE {runs} SET erases = $2, erasing = 1 WHERE id = $1", id, erases);
  if (erasures.some(({ taskId }) => taskId === rootTaskId)) yield* eraseMetadata(id);
}

/**
 * E1: removes erased text of the marked runs, in small transactions. Readers stop seeing the text with the commit that orders the
 * erasure. If the process dies, the next process that opens the store continues.
 */
export class Erasure {
  readonly #source: ErasureSource;
  readonly #check: LogCheck;
  /**
   * Runs whose log is not valid for this store and that it does not erase. Either the store has another audit key,
   * and a store with the right key erases them. Or the run lists an erasure that no commit ordered; such an erasure
   * is never executed.
   */
  readonly #others = new Set<number>();
  readonly #chore = new Chore(() => this.#work());

  constructor(source: ErasureSource, check: LogCheck) {
    this.#source = source;
    this.#check = check;
  }

  /** Resolves when everything that was marked before the call is erased. */
  erase(): Promise<void> {
    return this.#chore.ask();
  }

  stop(): void {
    this.#chore.stop();
  }

  async #work(): Promise<void> {
    while (!this.#chore.isStopped) {
      const next = await this.#source.next([...this.#others]);
      if (next === undefined) return;
      const ordered = await this.#orderedIn(next);
      if (ordered !== undefined) await this.#eraseRun(ordered);
    }
  }

  /**
   * Returns the run with the erasures that its chain proves, or `undefined` if the run was deleted or is not valid
   * for this store.
   */
  async #orderedIn({ id, runId }: RunKey): Promise<RunKey | undefined> {
    try {
      const { run, verdict } = await this.#check.check(runId);
      if (verdict.ok) return run;
      this.#others.add(id);
    } catch (error) {
      if (!Fault.is(error) || error.code !== "not_found") throw error;
    }
    return undefined;
  }

  async #eraseRun(run: RunKey): Promise<void> {
    let cursor: ErasureCursor | "end" | undefined = { number: 0, link: chainStart(run) };
    while (cursor !== undefined && cursor !== "end" && !this.#chore.isStopped)
      cursor = await this.#source.eraseFrom(run, cursor);
    if (cursor === undefined) this.#others.add(run.id);
    if (cursor !== "end") return;
    // The contents that the erased commits referred to are text of the run, too.
    await this.#source.collect();
    if (!this.#chore.isStopped) await this.#source.finish(run);
  }
}

/** The stored form of a commit after its erasure. */
export interface ErasedText extends SplitText {
  readonly seal: string;
}

export interface CommitEraserOptions {
  readonly chain: Chain;
  readonly hash: Hash;
  readonly large: LargeValues;
}

/** E1: computes what remains of commits. */
export class CommitEraser {
  readonly #options: CommitEraserOptions;

  constructor(options: CommitEraserOptions) {
    this.#options = options;
  }

  /** Whether the row matches the hash (link) of the previous commit. */
  holds(before: string, row: CommitRow): boolean {
    return this.#options.chain.holds(before, row);
  }

  /**
   * Returns the erased form of a commit, or `undefined` if it has no text to erase. `before` is the hash (link) of
   * the previous commit.
   */
  erased(run: RunKey, row: CommitRow, commit: Commit, before: string): ErasedText | undefined {
    const { chain, hash, large } = this.#options;
    const erased = eraseCommit(commit, erasuresOf(run));
    if (erased === commit) return undefined;
    const rest = commitText(encodeCommit(erased, run, hash), large);
    return { ...rest, seal: chain.seal(before, { ...row, body: rest.text, refs: rest.refs }) };
  }
}
