import {
  Fault,
  parsePriority,
  parseTaskId,
  rootTaskId,
  unfinishedStatuses,
  type ApprovalDecision,
  type ApprovalPage,
  type ApprovalQuery,
  type ApprovalRequest,
  type OpenApproval,
  type JsonObject,
  type Runtime,
  type RunHandle,
  type RunId,
  type Store,
  type TaskId,
  type TopUp,
} from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { askDecision, isForPerson, needsAnswer } from "../../terminal/approval-prompt.ts";
import { requestLines } from "../../terminal/run-watcher.ts";
import { isStoppedAtLimit } from "../../../view/top-up-offer.ts";
import { notResumable, notResumed } from "../../setup/not-resumable.ts";
import type { StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { withRuns } from "../../setup/idle-engine.ts";
import { findRunId } from "../../setup/find-run.ts";
import { readReport } from "./run-report.ts";

export interface ApproveOptions extends StoreOptions {
  readonly id?: string;
  readonly yes?: boolean;
  readonly deny?: string | boolean;
  readonly remember?: boolean;
  readonly json?: boolean;
}

/** Options of an order to runs. */
export interface OrderOptions extends StoreOptions {
  readonly json?: boolean;
}

/** The id of a task in a run. Default: the root task. */
export interface TaskOptions extends OrderOptions {
  readonly task?: string;
  readonly agent?: string;
}

export interface TopUpCommandOptions extends TaskOptions {
  readonly usd?: string;
  readonly turns?: string;
  readonly tokens?: string;
  readonly seconds?: string;
}

export interface CancelOptions extends TaskOptions {
  readonly reason: string;
}

export interface SteerOptions extends TaskOptions {
  readonly followUp?: boolean;
}

export interface ForkRunOptions extends OrderOptions {
  readonly at: string;
  readonly input?: string;
  readonly model?: string;
  readonly instructions?: string;
  readonly tools?: string;
}

/** Forks a run and prints the id of the fork. The process that executes the runs of the store starts the fork. */
export function forkRun(name: string, options: ForkRunOptions, terminal: Terminal): Promise<ExitKind> {
  const { input, model, instructions, tools } = options;
  const at = seqOf(options.at);
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const run = (await handleOf(runtime, await findRunId(store, name, options.store))).as("person");
    const change = {
      ...(input !== undefined && { input }),
      ...(model !== undefined && { model }),
      ...(instructions !== undefined && { instructions }),
      ...(tools !== undefined && { tools: tools.split(",").flatMap((tool) => tool.trim() || []) }),
    };
    const { runId } = await run.fork({ at, ...change });
    await terminal.out(orderLine(runId, options));
    return "ok";
  });
}

function seqOf(text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new Fault(
    "invalid_argument",
    `invalid --at ${printable(text)}: expected the seq of an event, an integer from 0`,
  );
}

/** Cancels runs, regardless of the processes that execute them. */
export function cancelRuns(
  names: readonly string[],
  options: CancelOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const { reason, task, agent } = options;
    if (names.length > 1 && (task ?? agent) !== undefined)
      throw new Fault("invalid_argument", "--task and --agent name a task of one run: pass one RUN");
    const runIds = await Promise.all(names.map((name) => findRunId(store, name, options.store)));
    for (const runId of runIds) {
      const run = await handleOf(runtime, runId);
      const taskId = await taskOf(store, runId, options);
      await orderRun(run, options, terminal, "it is cancelled", (person) => person.cancel(reason, taskId));
    }
    return "ok";
  });
}

/** Pauses runs. */
export function pauseRuns(
  names: readonly string[],
  options: OrderOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    for (const run of await handlesOf(store, runtime, names, options))
      await orderRun(run, options, terminal, "it is paused", (person) => person.pause());
    return "ok";
  });
}

/** Continues paused runs, and runs that ended without completing. */
export function resumeRuns(
  names: readonly string[],
  options: OrderOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    for (const run of await handlesOf(store, runtime, names, options)) {
      const summary = await run.summary();
      const { status } = summary;
      if (status === "completed" || notResumable.includes(status)) throw notResumed(summary);
      await run.as("person").resume();
      await reportOrder(run, options, terminal, "it continues");
    }
    return "ok";
  });
}

/** Raises the budget of a task of a run. */
export function topUpRun(name: string, options: TopUpCommandOptions, terminal: Terminal): Promise<ExitKind> {
  const add = topUpOf(options);
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    const run = await handleOf(runtime, runId);
    const { status } = await run.summary();
    if (!isUnfinished(status) && !isStoppedAtLimit(status))
      throw new Fault(
        "invalid_argument",
        `${runId} has ended (${status}); a top-up continues only a run that stopped at its budget or deadline`,
      );
    await run.as("person").topUp(add, await taskOf(store, runId, options));
    await reportOrder(run, options, terminal, "it continues");
    return "ok";
  });
}

const topUpOptions = {
  usd: ["maxCostUsd", 1],
  turns: ["maxTurns", 1],
  tokens: ["maxTokens", 1],
  seconds: ["deadlineMs", 1_000],
} as const satisfies Readonly<Record<string, readonly [keyof TopUp, number]>>;

function topUpOf(options: TopUpCommandOptions): Partial<TopUp> {
  const add: Partial<Record<keyof TopUp, number>> = {};
  for (const option of Object.keys(topUpOptions) as (keyof typeof topUpOptions)[]) {
    const text = options[option];
    if (text === undefined) continue;
    const [name, factor] = topUpOptions[option];
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (!(value > 0) || !Number.isFinite(value))
      throw new Fault(
        "invalid_argument",
        `invalid --${option} ${printable(text)}: expected a number above 0`,
      );
    add[name] = value * factor;
  }
  if (Object.keys(add).length > 0) return add;
  throw new Fault(
    "invalid_argument",
    "missing amount; use --usd, --turns, --tokens or --seconds, such as reeve top-up RUN --usd 0.50",
  );
}

/** Changes the priority of a task of a run. */
export function reprioritizeRun(
  name: string,
  priority: string,
  options: TaskOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const wanted = parsePriority(priority.toUpperCase());
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    const run = await handleOf(runtime, runId);
    const taskId = await taskOf(store, runId, options);
    await orderRun(run, options, terminal, "its priority changes", (person) =>
      person.reprioritize(taskId, wanted),
    );
    return "ok";
  });
}

/** Sends input to a task of a run, regardless of the process that executes it. */
export function steerRun(
  name: string,
  input: string,
  options: SteerOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    const run = await handleOf(runtime, runId);
    const taskId = await taskOf(store, runId, options);
    const person = run.as("person");
    const inputId = await (options.followUp === true
      ? person.followUp(input, taskId)
      : person.steer(input, taskId));
    await reportOrder(run, options, terminal, "it reads the input", { inputId });
    return "ok";
  });
}

/** Returns the task that the options name. If they name an agent, it must have exactly one live task in the run. */
async function taskOf(store: Store, runId: RunId, { task, agent }: TaskOptions): Promise<TaskId> {
  if (task !== undefined && agent !== undefined)
    throw new Fault("invalid_argument", "--task and --agent cannot be combined; use one of them");
  if (task !== undefined) return parseTaskId(task);
  if (agent === undefined) return rootTaskId;
  const tasks = [...(await readReport(store, runId)).tasks.values()].filter(
    ({ agentId }) => agentId === agent,
  );
  const live = tasks.filter(({ status }) => status === "pending" || isUnfinished(status));
  const [only, ...others] = live;
  if (only !== undefined && others.length === 0) return only.taskId;
  const problem =
    only === undefined
      ? `has no live task of ${printable(agent)}`
      : `has ${live.length} live tasks of ${printable(agent)}: ${live.map(({ taskId }) => taskId).join(", ")}`;
  throw new Fault(
    only === undefined ? "not_found" : "invalid_argument",
    `run ${runId} ${problem}; reeve tree ${runId} lists its tasks, and --task names one`,
  );
}

/**
 * Gives an order to a run that has not ended. `effect` describes the effect that the order has when a process
 * executes the run.
 */
async function orderRun(
  run: RunHandle,
  options: OrderOptions,
  terminal: Terminal,
  effect: string,
  order: (person: RunHandle) => Promise<unknown>,
): Promise<void> {
  const { status } = await run.summary();
  if (!isUnfinished(status)) {
    terminal.say(`${run.runId} has ended already (${status}).`);
    return;
  }
  await order(run.as("person"));
  await reportOrder(run, options, terminal, effect);
}

/** Prints the id of a run that received an order, and warns if no process executes the run. */
async function reportOrder(
  run: RunHandle,
  options: OrderOptions,
  terminal: Terminal,
  effect: string,
  more: JsonObject = {},
): Promise<void> {
  await terminal.out(orderLine(run.runId, options, more));
  const { waitsFor, host = "another machine" } = await run.summary();
  if (waitsFor.includes("worker"))
    terminal.say(`No process executes ${run.runId} now; ${effect} when one resumes it.`);
  if (waitsFor.includes("host"))
    terminal.say(
      `${run.runId} waits for a worker of the machine ${printable(host)}; ${effect} when one resumes it.`,
    );
}

function orderLine(runId: RunId, { json = false }: OrderOptions, more: JsonObject = {}): string {
  return json ? JSON.stringify({ runId, ...more }) : runId;
}

async function handlesOf(
  store: Store,
  runtime: Runtime,
  names: readonly string[],
  options: StoreOptions,
): Promise<readonly RunHandle[]> {
  const runIds = await Promise.all(names.map((name) => findRunId(store, name, options.store)));
  return Promise.all(runIds.map((runId) => handleOf(runtime, runId)));
}

function isUnfinished(status: string): boolean {
  return unfinishedStatuses.some((unfinished) => unfinished === status);
}

/** Lists the open requests of all runs, or answers those of one run. */
export function approveRuns(
  name: string | undefined,
  options: ApproveOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { yes = false, deny, id } = options;
  if (yes && deny !== undefined)
    throw new Fault("invalid_argument", "--yes and --deny cannot be combined; use one of them");
  if (name === undefined) {
    if (yes || deny !== undefined || id !== undefined)
      throw new Fault(
        "invalid_argument",
        "missing RUN; use reeve approve RUN, reeve approve lists the open requests",
      );
    return withRuns(options, terminal, (_store, runtime) => listRequests(runtime, options, terminal));
  }
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const runId = await findRunId(store, name, options.store);
    const requests = await requestsOf(runtime, runId, id);
    const run = (await handleOf(runtime, runId)).as("person");
    for (const request of requests) await answer(run, request, options, terminal);
    if (requests.length === 0) terminal.say(`${runId} has no open request.`);
    return "ok";
  });
}

async function listRequests(
  runtime: Runtime,
  { json = false }: ApproveOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  let count = 0;
  for await (const request of openRequests(runtime)) {
    count++;
    const line = `${request.runId}  ${printable(request.approvalId)}  ${printable(request.reason)}`;
    await terminal.out(json ? JSON.stringify(request) : line);
    if (!json) for (const call of requestLines(request)) await terminal.out(call);
  }
  terminal.say(
    count === 0 ? "No run waits for an approval." : `Open requests: ${count}. Answer with reeve approve RUN.`,
  );
  return "ok";
}

/** Yields the open requests of all runs, or of one run, beginning with the request that has waited longest. */
async function* openRequests(runtime: Runtime, query: ApprovalQuery = {}): AsyncIterable<OpenApproval> {
  let after: string | null = null;
  do {
    const page: ApprovalPage = await runtime.approvals({
      ...query,
      limit: 500,
      ...(after !== null && { after }),
    });
    yield* page.approvals;
    after = page.next;
  } while (after !== null);
}

async function requestsOf(
  runtime: Runtime,
  runId: RunId,
  approvalId: string | undefined,
): Promise<readonly ApprovalRequest[]> {
  const wanted: ApprovalRequest[] = [];
  for await (const request of openRequests(runtime, { runId }))
    if (approvalId === undefined || request.approvalId === approvalId) wanted.push(request);
  if (approvalId === undefined || wanted.length > 0) return wanted;
  throw new Fault(
    "not_found",
    `${runId} has no open request ${printable(approvalId)}; reeve approve lists them`,
  );
}

async function answer(
  run: RunHandle,
  request: ApprovalRequest,
  { yes = false, deny, remember = false }: ApproveOptions,
  terminal: Terminal,
): Promise<void> {
  const { approvalId } = request;
  let decision: ApprovalDecision | undefined;
  // A question for a choice or a text needs an answer, which --yes does not have.
  const canAllow = isForPerson(request) && !needsAnswer(request);
  if (yes && canAllow) decision = { decision: "approved", ...(remember && { remember }) };
  else if (deny === undefined) decision = await askDecision(request, terminal);
  else decision = { decision: "denied", reason: typeof deny === "string" ? deny : "by the person" };
  if (decision === undefined) {
    const remedy = canAllow ? "--yes allows it, --deny refuses it" : "--deny refuses it";
    terminal.say(`  ${printable(approvalId)} stays open; ${remedy}`);
    return;
  }
  // Who can open the store may add any amount.
  await run.approve(approvalId, decision, { limited: false });
  await terminal.out(`${run.runId}  ${printable(approvalId)}  ${decision.decision}`);
}

async function handleOf(runtime: Runtime, runId: RunId): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Fault("not_found", `run ${runId} not found in this store`);
  return run;
}
