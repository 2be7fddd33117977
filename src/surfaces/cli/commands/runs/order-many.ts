import { Fault, type Runtime, type Store } from "../../../../kernel/index.ts";
import { FiguresOfRuns } from "../../../http/figures/run-figures.ts";
import {
  giveOrder,
  previewOrder,
  type ChosenRuns,
  type OrderDesk,
  type OrderPreview,
  type RunOrder,
} from "../../../http/many-runs.ts";
import { findRunId } from "../../setup/find-run.ts";
import { withRuns } from "../../setup/idle-engine.ts";
import { whereQuery } from "../../setup/run-filters.ts";
import type { StoreOptions } from "../../setup/stored-runs.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { dollars } from "../../terminal/format.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { TaskOptions } from "./answer-runs.ts";

/** Options of an order to many runs. */
export interface OrderManyOptions extends StoreOptions {
  /** Filters that choose the runs, instead of their ids. */
  readonly where?: readonly string[];
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly reason?: string;
  readonly json?: boolean;
}

const will: Readonly<Record<RunOrder, readonly [one: string, many: string]>> = {
  cancel: ["is cancelled with all its tasks.", "are cancelled with all their tasks."],
  resume: [
    "continues where it stopped. Recorded steps are free.",
    "continue where they stopped. Recorded steps are free.",
  ],
  delete: [
    "is deleted with its events and contents. This cannot be undone.",
    "are deleted with their events and contents. This cannot be undone.",
  ],
};
const names: Readonly<Record<RunOrder, string>> = { cancel: "Cancel", resume: "Resume", delete: "Delete" };
/** If at least this number of runs is deleted, the person must type the number to confirm. */
const typedFrom = 21;

/** Throws if the options name a task, which is possible only for a single run. */
export function refuseTask({ task, agent }: Pick<TaskOptions, "task" | "agent">): void {
  if ((task ?? agent) === undefined) return;
  throw new Fault(
    "invalid_argument",
    "--task and --agent name a task of one run and cannot be combined with --where; use --where agent=NAME to choose runs",
  );
}

/**
 * Gives an order to the named runs, or to the runs that match filters. Prints the effect on each run, asks for
 * confirmation, and prints the ids of the runs that received the order.
 */
export function orderMany(
  order: RunOrder,
  ids: readonly string[],
  options: OrderManyOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { where, yes = false, dryRun = false, reason } = options;
  if ((where === undefined) === (ids.length === 0))
    throw new Fault(
      "invalid_argument",
      where === undefined
        ? `missing RUN; use reeve ${order} RUN, or reeve ${order} --where FILTER such as user=mara`
        : "RUN and --where cannot be combined; use one of them",
    );
  const query = where === undefined ? undefined : whereQuery(where);
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const chosen = query === undefined ? { runIds: await idsOf(store, ids, options) } : { query };
    const desk: OrderDesk = { runtime, figures: new FiguresOfRuns(), by: "person", mayGive: () => true };
    const preview = await previewOrder(order, chosen satisfies ChosenRuns, desk);
    sayPreview(order, preview, terminal);
    if (dryRun || preview.runIds.length === 0) {
      if (dryRun) await printIds(preview.runIds, options, terminal);
      return "ok";
    }
    if (!yes && !(await isConfirmed(order, preview.runIds.length, terminal))) {
      terminal.say("Nothing was changed.");
      return "denied";
    }
    const done = await giveOrder({ order, ...(reason !== undefined && { reason }) }, preview.runIds, desk);
    await printIds(done.runIds, options, terminal);
    for (const refusal of done.refused)
      terminal.say(`Not changed, ${runsOf(refusal.runIds)}: ${refusal.reason}`);
    if (order !== "delete") await sayUndriven(runtime, done.runIds, terminal);
    return "ok";
  });
}

function idsOf(store: Store, ids: readonly string[], options: StoreOptions): Promise<readonly string[]> {
  return Promise.all(ids.map((id) => findRunId(store, id, options.store)));
}

function sayPreview(order: RunOrder, { runIds, refused, atMostUsd }: OrderPreview, terminal: Terminal): void {
  const [one, many] = will[order];
  terminal.say(
    runIds.length === 0
      ? `No run fits the order ${order}.`
      : `${runsOf(runIds)} ${runIds.length === 1 ? one : many}`,
  );
  for (const refusal of refused)
    terminal.say(`Left as they are, ${runsOf(refusal.runIds)}: ${refusal.reason}`);
  if (order !== "resume" || runIds.length === 0) return;
  terminal.say(
    atMostUsd === null
      ? "At least one of them has no limit of money."
      : `At most ${dollars(atMostUsd)} more, the sum of what is left.`,
  );
}

async function isConfirmed(order: RunOrder, count: number, terminal: Terminal): Promise<boolean> {
  if (!terminal.canAsk)
    throw new Fault(
      "invalid_argument",
      `there is no terminal to ask; use --yes to ${order} these runs, or --dry-run to list them`,
    );
  if (order === "delete" && count >= typedFrom)
    return (await terminal.ask(`Type ${count} to delete them: `))?.trim() === String(count);
  const answer = await terminal.ask(
    `${names[order]} ${count === 1 ? "this run" : `these ${count} runs`}? [y/N] `,
  );
  return /^y(?:es)?$/iu.test(answer?.trim() ?? "");
}

async function printIds(
  runIds: readonly string[],
  { json = false }: OrderManyOptions,
  terminal: Terminal,
): Promise<void> {
  for (const runId of runIds) await terminal.out(json ? JSON.stringify({ runId }) : runId);
}

/** Prints how many of the runs wait because no process executes them. */
async function sayUndriven(runtime: Runtime, runIds: readonly string[], terminal: Terminal): Promise<void> {
  const waiting: string[] = [];
  for (const runId of runIds) {
    const { waitsFor = [] } = (await (await runtime.find(runId))?.summary()) ?? {};
    if (waitsFor.some((cause) => cause === "worker" || cause === "host")) waiting.push(runId);
  }
  if (waiting.length > 0)
    terminal.say(`No process executes ${runsOf(waiting)} now; the order takes effect when one resumes them.`);
}

function runsOf({ length }: readonly string[]): string {
  return length === 1 ? "1 run" : `${length} runs`;
}
