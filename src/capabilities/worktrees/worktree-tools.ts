import {
  eventDraft,
  Fault,
  is,
  namedPaths,
  optionTable,
  type FolderMerge,
  type FolderMergeStatus,
  type JsonObject,
  type JsonValue,
  type MergeQuestion,
  type OptionKinds,
  type RunContext,
  type TaskId,
  type Tool,
  type ToolResult,
} from "../../kernel/index.ts";
import { errorResult, textResult } from "../tools/tool-result.ts";
import { tool } from "../tools/tool.ts";
import { identityOf, somePaths, type Checkout } from "./checkout.ts";
import { executeMerge, prepareMerge, type MergeEnd, type MergeSource, type PreparedMerge } from "./merge.ts";
import { changedNow, holdsFiles, takeSnapshot } from "./snapshot.ts";
import {
  callerOf,
  checkoutOf,
  defaultTreesFolder,
  isGone,
  isIntact,
  TreeRecords,
  treeName,
  type TreeRecord,
} from "./tree-records.ts";
import { removeTree } from "./worktree.ts";

/** Options of `worktreeTools()`. */
export interface WorktreeToolsOptions {
  /**
   * Folder of the worktrees, as in the option `isolation` of the sub-agents. Default: that of `isolation:
   * "worktree"`.
   */
  readonly folder?: string;
}

const knownOptions = optionTable({ folder: is.text() } satisfies OptionKinds<WorktreeToolsOptions>);

/**
 * Creates two tools for an agent whose sub-agents have `isolation: "worktree"`. `worktrees` lists what each of them has changed, and which
 * files several have changed. `merge_worktrees` merges their work into the folder of the agent, after a person has approved the
 * combined diff.
 *
 * @example
 * ```ts
 * import { Agent, OrchestratorAgent } from "reeve";
 * import { fileTools, worktreeTools } from "reeve/tools";
 *
 * const model = "anthropic/claude-sonnet-5";
 * const coder = new Agent({ name: "coder", model, tools: fileTools({ root: "." }), isolation: "worktree" });
 * const lead = new OrchestratorAgent({ name: "lead", model, subAgents: [coder], tools: worktreeTools() });
 * ```
 */
export function worktreeTools(options: WorktreeToolsOptions = {}): readonly Tool[] {
  const { folder = defaultTreesFolder() } = knownOptions.read("worktreeTools()", options);
  const records = new TreeRecords(folder);
  const list = tool({
    name: "worktrees",
    description:
      "List the worktrees of your employees: what each has changed, and which files several of them have changed.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false } as const,
    execute: async (_input, { ctx }) =>
      textResult(await ctx.step("worktrees.list", () => listed(records, ctx))),
  });
  const merge = tool({
    name: mergeName,
    description:
      "Merge the work of employees into your folder, in this order. A person sees the combined diff and decides. Nothing is merged if there are conflicts.",
    inputSchema: {
      type: "object",
      properties: {
        tasks: {
          type: "array",
          items: { type: "string" },
          minItems: 1,
          description: 'Ids of the tasks of the employees, such as ["t1", "t2"]',
        },
      },
      required: ["tasks"],
      additionalProperties: false,
    } as const,
    concurrency: "sequential",
    suspends: true,
    execute: ({ tasks }, { ctx, callId }) => new WorkMerge(records, ctx, callId).run(tasks),
  });
  return [list, merge];
}

const mergeName = "merge_worktrees";

/** The worktrees whose caller is a task. */
async function employeesOf(
  records: TreeRecords,
  { facts, folder }: RunContext,
): Promise<readonly TreeRecord[]> {
  const all = await records.ofRun(facts.runId);
  return all.filter(({ caller, origin }) => caller === (folder?.path ?? origin));
}

/** Whether a task has not ended. */
function isLive({ snapshot }: RunContext, taskId: TaskId): boolean {
  return taskId in snapshot.headcount.tasks;
}

/** Describes the work of the sub-agents of a task. */
async function listed(records: TreeRecords, ctx: RunContext): Promise<string> {
  const trees = (await employeesOf(records, ctx)).filter(({ state }) => state !== "creating");
  if (trees.length === 0) return "None of your employees has a worktree.";
  const owners = new Map<string, TaskId[]>();
  const lines: string[] = [];
  for (const tree of trees) {
    const changed = await changedNow(tree);
    for (const path of changed) owners.set(path, [...(owners.get(path) ?? []), tree.taskId]);
    lines.push(
      `${tree.taskId} (${tree.agentId}, branch ${tree.branch}, ${stateWords(ctx, tree)}): ${changed.length === 0 ? "no changed files" : namedPaths(somePaths(changed))}`,
    );
  }
  const shared = [...owners].filter(([, tasks]) => tasks.length > 1);
  const clashes = shared.map(([path, tasks]) => `${namedPaths(somePaths([path]))} by ${tasks.join(" and ")}`);
  return [
    ...lines,
    shared.length === 0
      ? "No file was changed by several of them."
      : `Changed by several of them: ${clashes.join("; ")}.`,
  ].join("\n");
}

function stateWords(ctx: RunContext, { taskId, state, removed }: TreeRecord): string {
  if (removed !== undefined) return "merged or without work";
  if (isLive(ctx, taskId)) return "still works";
  return state === "finished" ? "has finished" : "was stopped";
}

/** The result of preparing a merge, or why it cannot start. It is JSON. */
type Preparation = { readonly problem: string } | { readonly prepared: PreparedMerge };

/** One call of `merge_worktrees`. */
class WorkMerge {
  readonly #records: TreeRecords;
  readonly #ctx: RunContext;
  readonly #callId: string;

  constructor(records: TreeRecords, ctx: RunContext, callId: string) {
    this.#records = records;
    this.#ctx = ctx;
    this.#callId = callId;
  }

  async run(tasks: readonly string[]): Promise<ToolResult> {
    const ctx = this.#ctx;
    const at = await ctx.now();
    const preparation = (await ctx.step<JsonValue>(
      "merge.prepare",
      async () => (await this.#prepare(tasks, at)) as unknown as JsonValue,
      { input: { tasks: [...tasks] } },
    )) as unknown as Preparation;
    if ("problem" in preparation) return errorResult(preparation.problem);
    const { prepared } = preparation;
    const { merge, blocked } = prepared;
    if (merge.commit === null) {
      this.#tell(merge, "conflict");
      return errorResult(
        `nothing was merged, because of conflicts in ${namedPaths(merge.conflicts)}; merge fewer tasks, or let one employee change these files on top of the work of the other`,
        metadataOf(merge, "conflict"),
      );
    }
    if (blocked.length > 0)
      return errorResult(
        `nothing was merged, because ${merge.path} has changes in ${namedPaths(somePaths(blocked))} that are not committed; they have to be committed first`,
        metadataOf(merge, "changed"),
      );
    if (merge.commit === merge.head) return textResult(`${merge.path} has all of this work already.`);
    return this.#ask(prepared);
  }

  async #ask(prepared: PreparedMerge): Promise<ToolResult> {
    const ctx = this.#ctx;
    const { merge, diff, isCut } = prepared;
    const branches = merge.sources.map(({ taskId }) => taskId).join(", ");
    const files = merge.changed.count === 1 ? "1 changed file" : `${merge.changed.count} changed files`;
    const message = `Merge the work of ${branches} into ${merge.branch ?? merge.path}: ${files}`;
    const question: MergeQuestion = { message, merge, diff, ...(isCut === true && { isCut }) };
    const decision = await ctx.approval({
      kind: "merge",
      toolName: mergeName,
      callId: this.#callId,
      input: question as unknown as JsonValue,
      reason: message,
    });
    if (decision.decision !== "approved") {
      const why = decision.decision === "denied" ? decision.reason : undefined;
      this.#tell(merge, "denied", why);
      return errorResult(
        `the person did not approve the merge${why === undefined ? "" : `: ${why}`}`,
        metadataOf(merge, "denied"),
      );
    }
    const end = (await ctx.step<JsonValue>(
      "merge.execute",
      async () => (await this.#execute(prepared)) as unknown as JsonValue,
    )) as unknown as MergeEnd;
    this.#tell(merge, end.status, end.reason);
    if (end.status === "changed")
      return errorResult(
        `nothing was merged: ${end.reason ?? "a folder has changed since the merge was prepared"}; call ${mergeName} again`,
        metadataOf(merge, "changed"),
      );
    return textResult(
      [
        `merged the work of ${branches} as ${merge.commit}: ${namedPaths(merge.changed)}`,
        ...(await this.#clean(merge)),
      ].join("\n"),
      metadataOf(merge, "merged"),
    );
  }

  #tell(merge: FolderMerge, status: FolderMergeStatus, reason?: string): void {
    const data = { ...merge, status, ...(reason !== undefined && { reason }) };
    this.#ctx.emitEvent(eventDraft("worktree_merge", data));
  }

  /** Finds the work of the tasks and prepares the merge. */
  async #prepare(tasks: readonly string[], at: number): Promise<Preparation> {
    const employees = await employeesOf(this.#records, this.#ctx);
    const sources: MergeSource[] = [];
    let target: Checkout | undefined;
    for (const taskId of new Set(tasks)) {
      const record = employees.find((each) => each.taskId === taskId && each.state !== "creating");
      if (record === undefined) return { problem: unknownTask(taskId, employees) };
      if (isLive(this.#ctx, record.taskId))
        return { problem: `${taskId} still works in its worktree; wait until it has ended` };
      target ??= await this.#targetOf(record);
      const { branch, agentId } = record;
      const commit = await commitToMerge(record);
      if (commit === undefined)
        return {
          problem: `the files of ${taskId} in ${record.path} have changed since it has ended; a person has to look at them first`,
        };
      sources.push({
        taskId: record.taskId,
        branch,
        commit,
        title: `Merge the work of ${agentId} (${treeName(record)})`,
      });
    }
    if (target === undefined) return { problem: "name at least one task" };
    const identity = await identityOf(target);
    return { prepared: await prepareMerge(target, sources, { identity, at }) };
  }

  /**
   * Returns the folder into which the work is merged: that of this task, or else the checkout in which the run was
   * started.
   */
  async #targetOf(record: TreeRecord): Promise<Checkout> {
    const { folder } = this.#ctx;
    const own = folder === null ? undefined : await this.#records.find(folder.path);
    return own === undefined ? callerOf(record) : checkoutOf(own);
  }

  async #execute(prepared: PreparedMerge): Promise<MergeEnd> {
    const employees = await employeesOf(this.#records, this.#ctx);
    let target: Checkout | undefined;
    for (const { taskId, commit } of prepared.sources) {
      const record = employees.find((each) => each.taskId === taskId);
      if (record === undefined)
        throw new Fault("not_found", `the worktree of ${taskId} is not on this machine`);
      target ??= await this.#targetOf(record);
      if ((await commitToMerge(record)) !== commit)
        return { status: "changed", reason: `the files of ${taskId} have changed` };
    }
    if (target === undefined) throw new Fault("internal", "a merge has no source");
    return executeMerge(target, prepared);
  }

  /** Removes the worktrees whose work was merged, one step for each. */
  async #clean({ sources }: FolderMerge): Promise<readonly string[]> {
    const kept: string[] = [];
    for (const { taskId, commit, branch } of sources) {
      const removed = (await this.#ctx.step<JsonValue>("merge.clean", () => this.#remove(taskId, commit), {
        input: { taskId },
      })) as unknown as { readonly path: string; readonly reason?: string } | null;
      if (removed === null) continue;
      const { path, reason } = removed;
      if (reason === undefined) this.#ctx.emitEvent(eventDraft("worktree_remove", { path, branch, commit }));
      else kept.push(`the worktree of ${taskId} is kept: ${reason}`);
    }
    return kept;
  }

  /** Removes a worktree. Returns `null` for a task that was stopped, because it may be resumed. */
  async #remove(
    taskId: TaskId,
    commit: string,
  ): Promise<{ readonly path: string; readonly reason?: string } | null> {
    const employees = await employeesOf(this.#records, this.#ctx);
    const record = employees.find((each) => each.taskId === taskId);
    if (record === undefined || record.state !== "finished") return null;
    const { path } = record;
    const reason = await removeTree(this.#records, record, { commit, now: Date.now() });
    return { path, ...(reason !== undefined && { reason }) };
  }
}

/** Returns the commit with the work of a task that has ended. `undefined` if its files have changed since then. */
async function commitToMerge(record: TreeRecord): Promise<string | undefined> {
  const known = record.removed?.commit ?? record.work?.commit;
  const isThere = await isIntact(record);
  if (known === undefined) return isThere ? (await takeSnapshot(record)).commit : undefined;
  // The commit of a folder that was deleted is still there.
  if (!isThere && record.removed === undefined && (await isGone(record))) return known;
  return record.removed !== undefined || (await holdsFiles(record, known)) ? known : undefined;
}

function unknownTask(taskId: string, employees: readonly TreeRecord[]): string {
  const known = employees.map((each) => each.taskId).join(", ") || "none";
  return `there is no worktree of a task ${JSON.stringify(taskId)}; your employees with worktrees are ${known}`;
}

function metadataOf({ commit, conflicts, changed }: FolderMerge, status: FolderMergeStatus): JsonObject {
  return { status, commit, conflicts: [...conflicts.paths], changed: [...changed.paths] };
}
