import { createHash } from "node:crypto";
import { mkdir, realpath } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import {
  eventDraft,
  Fault,
  is,
  namedPaths,
  optionTable,
  readProperty,
  type FolderWork,
  type Isolation,
  type JsonValue,
  type OptionKinds,
  type RunContext,
  type SomePaths,
  type TaskFolder,
} from "../../kernel/index.ts";
import { isInside } from "../files/control-references.ts";
import { checkoutAt, somePaths, stateOf, submodulesOf, type Checkout } from "./checkout.ts";
import { packObjects } from "./packed-objects.ts";
import { overlapsOf, takeSnapshot } from "./snapshot.ts";
import {
  checkoutOf,
  defaultTreesFolder,
  TreeRecords,
  type TreePlan,
  type TreeRecord,
} from "./tree-records.ts";
import { assertTree, createTree, folderOf, releaseTree, removeLinks, removeTree } from "./worktree.ts";

/** Options of `isolation: { worktree: { ... } }`. */
export interface WorktreeOptions {
  /** A folder of the repository from whose checkout runs start. Default: the working directory of the process. */
  readonly repository?: string;
  /**
   * Folder of the worktrees, outside of the repository. Default: `worktrees` in the folder of the user (`REEVE_HOME`, else
   * `~/.reeve`).
   */
  readonly folder?: string;
  /** Ignored files of which each worktree gets a copy, such as `[".env"]`, relative to the checkout. Default: none. */
  readonly copy?: readonly string[];
}

/** The option `isolation` of an agent, with which each of its tasks works in its own git worktree. */
export type IsolationOption = "worktree" | { readonly worktree: WorktreeOptions };

const worktreeTable = optionTable({
  repository: is.text(),
  folder: is.text(),
  copy: is.list({ of: is.text(), hint: 'use copy: [".env"]' }),
} satisfies OptionKinds<WorktreeOptions>);

const isolationTable = optionTable({ worktree: is.any });

/** Reads the option `isolation` of an agent. `owner` names the agent in errors. */
export function toIsolation(option: IsolationOption | Isolation, owner: string): Isolation {
  if (option === "worktree") return worktreeIsolation();
  if (typeof readProperty(option, "open") === "function") return option as Isolation;
  if (typeof option !== "object" || (option as unknown) === null)
    throw new Fault(
      "invalid_argument",
      `invalid isolation ${JSON.stringify(option)} of ${owner}: expected "worktree", or { worktree: { copy: [".env"] } }`,
    );
  isolationTable.read(`isolation of ${owner}`, option);
  const { worktree } = option as { readonly worktree?: WorktreeOptions };
  return worktreeIsolation(worktree ?? {}, `isolation of ${owner}`);
}

/**
 * Gives each task a git worktree: its own folder with its own branch, outside the repository.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { fileTools } from "reeve/tools";
 *
 * const coder = new Agent({
 *   name: "coder",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: fileTools({ root: "." }),
 *   isolation: { worktree: { copy: [".env"] } },
 * });
 * ```
 */
export function worktreeIsolation(options: WorktreeOptions = {}, owner = "worktreeIsolation()"): Isolation {
  const { repository = ".", folder = defaultTreesFolder(), copy = [] } = worktreeTable.read(owner, options);
  for (const path of copy)
    if (path === "" || path.includes("\0") || isOutside(path))
      throw new Fault(
        "invalid_argument",
        `invalid copy ${JSON.stringify(path)} of ${owner}: expected the path of a file, relative to the checkout`,
      );
  return new WorktreeIsolation({ repository: resolve(repository), folder: resolve(folder), copy });
}

function isOutside(path: string): boolean {
  return path.startsWith("/") || path.split(/[\\/]/u).includes("..");
}

/** D7: a plan together with facts for the agent and the person. */
interface NotedPlan {
  readonly plan: TreePlan;
  readonly uncommitted: SomePaths;
  readonly ignored: SomePaths;
  readonly submodules: SomePaths;
}

/** A worktree that exists. */
interface OpenedTree {
  readonly folder: TaskFolder;
  readonly copied: readonly string[];
}

class WorktreeIsolation implements Isolation {
  readonly kind = "worktree";
  readonly #repository: string;
  readonly #copy: readonly string[];
  readonly #records: TreeRecords;

  constructor({ repository, folder, copy }: Required<WorktreeOptions>) {
    this.#repository = repository;
    this.#copy = copy;
    this.#records = new TreeRecords(folder);
  }

  async open(ctx: RunContext): Promise<TaskFolder> {
    ctx.stayOnHost("worktree");
    const recorded = await ctx.step<JsonValue>("worktree.plan", async () => json(await this.#plan(ctx)));
    const noted = recorded as unknown as NotedPlan;
    const { plan, uncommitted, ignored, submodules } = noted;
    const opened = (await ctx.step<JsonValue>(
      "worktree.create",
      async () => json(await this.#create(noted)),
      {
        input: { path: plan.path, branch: plan.branch, base: plan.base },
      },
    )) as unknown as OpenedTree;
    if (plan.runId !== ctx.facts.runId) return this.#openFork(ctx, noted);
    const { path, branch, base, from } = plan;
    const { folder, copied } = opened;
    const data = { path, branch, base, from, uncommitted, ignored, submodules, copied };
    ctx.emitEvent(eventDraft("worktree_open", data));
    await assertTree(plan, await this.#records.find(path));
    return folder;
  }

  /**
   * D8: opens the folder of a task in a fork. The recorded steps of a fork are those of the original run, whose
   * worktree the fork must not use. The worktree of the fork starts from the same base. Each action can be
   * repeated, and none is recorded.
   */
  async #openFork(ctx: RunContext, noted: NotedPlan): Promise<TaskFolder> {
    const { plan } = noted;
    const { runId } = ctx.facts;
    const own = placed({ ...plan, runId }, dirname(plan.path));
    const known = await this.#records.find(own.path);
    if (known !== undefined && known.state !== "creating") {
      const record = await assertTree(own, known);
      return folderOf(record, notesOf(noted, record));
    }
    return (await this.#create({ ...noted, plan: own })).folder;
  }

  async #plan(ctx: RunContext): Promise<NotedPlan> {
    const { runId } = ctx.facts;
    const { taskId, agentId, folder: parent } = ctx;
    const caller = await this.#callerOf(ctx);
    const { head: base, branch: from, uncommitted, ignored } = await stateOf(caller);
    const origin = parent?.origin ?? caller.path;
    await mkdir(this.#records.folder, { recursive: true });
    const folder = join(await realpath(this.#records.folder), repositoryName(caller));
    if (isInside(folder, origin))
      throw new Fault(
        "invalid_argument",
        `invalid folder ${this.#records.folder} of worktrees: it is inside the checkout ${origin}, where absolute paths lead to the wrong files; set isolation: { worktree: { folder } } to a folder outside`,
      );
    const { commonDir, path, gitDir } = caller;
    const task = { runId, taskId, agentId, host: hostname(), commonDir, base, from };
    const plan = placed({ ...task, origin, caller: path, callerGitDir: gitDir }, folder);
    return {
      plan,
      uncommitted: somePaths(uncommitted),
      ignored: somePaths(ignored.filter((each) => !this.#copy.includes(each))),
      submodules: somePaths(await submodulesOf(caller, base)),
    };
  }

  /** Returns the checkout of the calling task: the worktree of the parent, or else the checkout of the person. */
  async #callerOf({ folder, facts: { runId } }: RunContext): Promise<Checkout> {
    if (folder === null) return checkoutAt(this.#repository);
    if (folder.runId !== runId)
      throw new Fault(
        "unsupported",
        `${runId} is a fork of ${folder.runId}, in whose folder ${folder.path} it cannot work; start a new run instead`,
      );
    const record = await this.#records.find(folder.path);
    if (record === undefined)
      throw new Fault("not_found", `the worktree ${folder.path} of the calling task is not on this machine`);
    return checkoutOf(record);
  }

  async #create(noted: NotedPlan): Promise<OpenedTree> {
    const record = await createTree(this.#records, noted.plan, { copy: this.#copy, now: Date.now() });
    return {
      folder: await folderOf(record, notesOf(noted, record)),
      copied: record.copied.map(({ path }) => path),
    };
  }

  async finish(ctx: RunContext, folder: TaskFolder): Promise<FolderWork> {
    const { path } = folder;
    const saved = (await ctx.step<JsonValue>("worktree.save", async () => json(await this.#save(path)), {
      input: { path },
    })) as unknown as FolderWork;
    const work = (await ctx.step<JsonValue>("worktree.close", async () => json(await this.#close(saved)), {
      input: { path },
    })) as unknown as FolderWork;
    ctx.emitEvent(eventDraft("worktree_finish", work));
    return work;
  }

  async #save(path: string): Promise<FolderWork> {
    const record = await this.#recordOf(path);
    if (record.work !== undefined) return record.work;
    const { branch, base } = record;
    await removeLinks(record);
    const { commit, changed, uncommitted } = await takeSnapshot(record);
    await packObjects(record.commonDir);
    const work: FolderWork = {
      path,
      branch,
      base,
      commit,
      changed: somePaths(changed),
      uncommitted: somePaths(uncommitted),
      overlaps: await overlapsOf(this.#records, record, changed),
      state: "kept",
    };
    await this.#records.write({ ...record, state: "finished", work });
    return work;
  }

  /** Removes a worktree without work. If it stays, makes it available to git commands of the user. */
  async #close(work: FolderWork): Promise<FolderWork> {
    const record = await this.#recordOf(work.path);
    if (record.removed !== undefined) return { ...work, state: "removed" };
    if (work.commit !== work.base) {
      await releaseTree(record);
      return work;
    }
    const reason = await removeTree(this.#records, record, { commit: work.commit, now: Date.now() });
    if (reason === undefined) return { ...work, state: "removed" };
    await releaseTree(record);
    return { ...work, reason };
  }

  async #recordOf(path: string): Promise<TreeRecord> {
    const record = await this.#records.find(path);
    if (record !== undefined) return record;
    throw new Fault("not_found", `the worktree ${path} is not on this machine, or its record was deleted`);
  }
}

/** Returns a plan whose path and branch follow from its run and task. */
function placed(plan: Omit<TreePlan, "path" | "branch">, folder: string): TreePlan {
  const { runId, taskId, agentId } = plan;
  const agent = agentId.replaceAll(/[^A-Za-z0-9_-]+/gu, "-");
  return {
    ...plan,
    path: join(folder, `${runId}-${taskId}`),
    // A folder of references for each task, so that a sandbox can let the task write its own alone.
    branch: `reeve/${runId}/${taskId}/${agent}`,
  };
}

/** The name of the folder with the worktrees of a repository. */
function repositoryName({ path, commonDir }: Checkout): string {
  const main = basename(commonDir) === ".git" ? dirname(commonDir) : path;
  const digest = createHash("sha256").update(commonDir).digest("hex").slice(0, 8);
  return `${basename(main).replaceAll(/[^A-Za-z0-9_.-]+/gu, "-")}-${digest}`;
}

/** D7: returns the facts that an agent must know about its worktree. */
function notesOf({ plan, uncommitted, ignored, submodules }: NotedPlan, record: TreeRecord): string {
  const { path, branch, base } = record;
  const { from, caller } = plan;
  const origin = namedPaths({ count: 1, paths: [caller] });
  const at = from === null ? "" : ` (branch ${from})`;
  const missing = [
    ["changes that are not committed", uncommitted],
    ["ignored files", ignored],
    ["the content of submodules", submodules],
  ] as const;
  const lacks = missing.flatMap(([what, some]) => (some.count === 0 ? [] : [`${what}: ${namedPaths(some)}`]));
  const copied = record.copied.map((each) => each.path);
  return [
    `You work in a git worktree of your own: the folder ${namedPaths({ count: 1, paths: [path] })}, on the branch ${branch}, which started from commit ${base.slice(0, 12)} of ${origin}${at}. Other agents do not see your changes until they are merged.`,
    `Use paths relative to this folder. Paths in ${origin} are refused.`,
    ...(lacks.length === 0
      ? []
      : [`Your folder does not have these parts of ${origin}: ${lacks.join("; ")}.`]),
    ...(copied.length === 0
      ? []
      : [`Copied into your folder: ${namedPaths({ count: copied.length, paths: copied })}.`]),
    "Stay on your branch. Work that you do not commit is kept as well.",
  ].join("\n");
}

/** Returns the value as JSON for a step. These values contain nothing else. */
function json(value: object): JsonValue {
  return value as JsonValue;
}
