import { Leftovers, type Leftover } from "../../../../capabilities/index.ts";
import { Fault, runStatuses, type Runtime, type SomePaths } from "../../../../kernel/index.ts";
import { withRuns } from "../../setup/idle-engine.ts";
import { refuseAbsent, type StoreOptions } from "../../setup/stored-runs.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, duration } from "../../terminal/format.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface WorktreeOptions extends StoreOptions {
  /** Folder of the worktrees. */
  readonly folder?: string;
  readonly json?: boolean;
}

export interface RemoveWorktreeOptions extends WorktreeOptions {
  readonly commit?: boolean;
  readonly ignored?: boolean;
  readonly ended?: boolean;
}

/** A worktree with the status of its run. `null` if the store does not know the run. */
type Listed = Leftover & { readonly runStatus: string | null };

/** Prints the worktrees of this machine, the oldest first. */
export async function listWorktrees(options: WorktreeOptions, terminal: Terminal): Promise<ExitKind> {
  const { json = false } = options;
  const leftovers = leftoversOf(options);
  const found = await leftovers.list((fault) => terminal.say(`reeve: ${printable(fault.message)}`));
  const listed = await withStatuses(found, options, terminal);
  const rows = listed.map(rowOf);
  const lines = json
    ? listed.map((each) => JSON.stringify(each))
    : columns(terminal.isWatched && rows.length > 0 ? [heading, ...rows] : rows);
  for (const line of lines) await terminal.out(line);
  if (listed.length === 0) terminal.say(`No worktree found in ${printable(leftovers.folder)}.`);
  return "ok";
}

const heading = ["WORKTREE", "AGENT", "STATE", "RUN", "AGE", "CHANGED", "UNCOMMITTED", "PATH"];

function rowOf(each: Listed): string[] {
  return [
    printable(each.name),
    printable(each.agentId),
    each.state,
    each.runStatus ?? "unknown",
    duration(Date.now() - each.createdAt),
    String(each.changed.count),
    String(each.uncommitted.count),
    printable(each.path),
  ];
}

/** Prints one worktree: its files, and the commands that merge its work or remove it. */
export async function showWorktree(
  name: string,
  options: WorktreeOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const [listed] = await withStatuses([await leftoversOf(options).find(name)], options, terminal);
  if (listed === undefined) throw new Fault("internal", `worktree ${name} has no state`);
  const lines = options.json === true ? [JSON.stringify(listed)] : linesOf(listed);
  for (const line of lines) await terminal.out(line);
  return "ok";
}

function linesOf(each: Listed): readonly string[] {
  const { name, agentId, state, runStatus, origin, path, branch, base, commit, problem, overlaps } = each;
  const isThere = state === "open" || state === "finished";
  const clashes = overlaps.map((overlap) => `${overlap.path} (${overlap.taskId})`);
  return [
    `${name}  ${agentId}  ${stateWords[state]}`,
    `run          ${runStatus ?? "unknown to the store"}`,
    `checkout     ${origin}`,
    `path         ${path}`,
    `branch       ${branch}`,
    `base         ${base}`,
    ...(commit === null ? [] : [`commit       ${commit}`]),
    ...(problem === undefined ? [] : [`problem      ${problem}`]),
    ...pathLines("changed", each.changed),
    ...pathLines("uncommitted", each.uncommitted),
    ...pathLines("ignored", each.ignored),
    ...pathLines("also in", { count: clashes.length, paths: clashes }),
    ...(commit === null || commit === base ? [] : [`merge        git -C ${origin} merge ${commit}`]),
    ...(state === "missing" ? [`restore      reeve worktrees restore ${name}`] : []),
    ...(isThere ? [`remove       reeve worktrees remove ${name}`] : []),
  ].map(printable);
}

const stateWords: Readonly<Record<Leftover["state"], string>> = {
  creating: "was not completed",
  open: "its task works in it, or was stopped",
  finished: "its task has ended",
  missing: "its folder is gone",
  branch: "its folder was removed; no other branch has its work",
};

function pathLines(what: string, { count, paths }: SomePaths): readonly string[] {
  if (count === 0) return [];
  const more = count > paths.length ? [`${" ".repeat(13)}and ${count - paths.length} more`] : [];
  return [...paths.map((path, index) => `${(index === 0 ? what : "").padEnd(13)}${path}`), ...more];
}

/** Removes worktrees. If one of them does not exist, or belongs to a run that has not ended, none is removed. */
export async function removeWorktrees(
  names: readonly string[],
  options: RemoveWorktreeOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { commit = false, ignored = false, json = false } = options;
  const leftovers = leftoversOf(options);
  const found: Leftover[] = [];
  for (const name of names) found.push(await leftovers.find(name));
  for (const each of await withStatuses(found, options, terminal)) refuseLive(each, options);
  for (const { name } of found) {
    const removed = await leftovers.remove(name, { commit, ignored });
    await terminal.out(json ? JSON.stringify(removed) : printable(name));
    if (removed.branch === "kept")
      terminal.say(`reeve: the branch of ${printable(name)} stays, because no other branch has its commits`);
  }
  return "ok";
}

/** Throws if the task of a worktree may still work in it. */
function refuseLive({ name, runId, state, runStatus }: Listed, options: RemoveWorktreeOptions): void {
  if (state === "finished" || state === "branch" || options.ended === true) return;
  if (runStatus === null)
    throw new Fault(
      "permission_denied",
      `${name} was not removed: the store ${options.store} does not know ${runId}, so its task may still work in it; use --store with the store of the run, or --ended if the run has ended`,
    );
  const isEnded = (runStatuses as readonly string[]).includes(runStatus) && runStatus !== "paused";
  if (isEnded) return;
  throw new Fault(
    "agent_busy",
    `${name} was not removed: ${runId} is ${runStatus}, and its task needs its worktree; end the run first with reeve cancel ${runId}`,
  );
}

/** Creates the folder of a worktree again, and prints its path. */
export async function restoreWorktree(
  name: string,
  options: WorktreeOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const restored = await leftoversOf(options).restore(name);
  await terminal.out(options.json === true ? JSON.stringify(restored) : printable(restored.path));
  return "ok";
}

function leftoversOf({ folder }: WorktreeOptions): Leftovers {
  return new Leftovers(folder);
}

/** Adds the status of each worktree's run. Without a store, no status is known. */
async function withStatuses(
  found: readonly Leftover[],
  options: StoreOptions,
  terminal: Terminal,
): Promise<readonly Listed[]> {
  if (found.length === 0) return [];
  const listed: Listed[] = [];
  const add = async (runtime: Runtime | undefined): Promise<void> => {
    for (const each of found) {
      const run = await runtime?.find(each.runId);
      listed.push({ ...each, runStatus: run === undefined ? null : (await run.snapshot()).status });
    }
  };
  try {
    refuseAbsent(options.store);
  } catch (error) {
    if (!Fault.is(error) || error.code !== "not_found") throw error;
    await add(undefined);
    return listed;
  }
  await withRuns(options, terminal, async (_store, runtime) => {
    await add(runtime);
    return "ok";
  });
  return listed;
}
