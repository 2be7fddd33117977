import { randomUUID } from "node:crypto";
import { openRuntime } from "../../../../assembly/open-runtime.ts";
import {
  type AgentResolver,
  type ApprovalRequest,
  type ExecutionBudget,
  type Failure,
  Fault,
  type RunHandle,
  type RunId,
  type RunSummaryStatus,
  type SessionId,
  type Store,
  type TopUp,
  answerIfLive,
  formatRunId,
  formatSessionId,
  parseAgentId,
  parseRunId,
  parseSessionId,
  rootTaskId,
  type JsonObject,
} from "../../../../kernel/index.ts";
import type { OrderManyOptions } from "../runs/order-many.ts";
import { isStoppedAtLimit, lackOf } from "../../../view/top-up-offer.ts";
import { OpenParts } from "../../setup/open-parts.ts";
import { exitKindOfRun, type ExitKind } from "../../terminal/exit-code.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { findRunId } from "../../setup/find-run.ts";
import { withStore } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import type { Workspace } from "../../../../workspace/workspace.ts";
import { notResumable, notResumed } from "../../setup/not-resumable.ts";
import { obeyedOrders } from "../../../http/obeyed-orders.ts";
import { openRunWorkspace, runAgent, runResolver } from "../../setup/run-agent.ts";
import { requireTools } from "../../setup/machine-tools.ts";
import { extensionSurface } from "../../setup/live-workspaces.ts";
import { telemetryOf, watchedStore } from "../../setup/telemetry/exported-telemetry.ts";
import {
  completeSettings,
  openAskedWorkspace,
  reportNotices,
  runtimeOptions,
} from "../../setup/run-workspace.ts";
import {
  findSettings,
  fromMetadata,
  notStartedHere,
  toMetadata,
  type RunSettings,
} from "../../setup/run-settings.ts";
import { numberOf, settingsOf, type SettingsOptions } from "../../setup/settings-options.ts";
import { askDecision, isForPerson, needsAnswer } from "../../terminal/approval-prompt.ts";
import { JsonWatcher, TextWatcher, type RunWatcher } from "../../terminal/run-watcher.ts";

/**
 * Watches whether another process answers an approval request, or whether the run ends. In both cases `signal`
 * aborts. Call `stop` when the watch is no longer needed.
 */
function answeredElsewhere(
  run: RunHandle,
  approvalId: string,
  fromSeq: number,
): { readonly signal: AbortSignal; readonly stop: () => void } {
  const answered = new AbortController();
  const stopped = new AbortController();
  const watch = async (): Promise<void> => {
    const types = ["approval_decision", "run_end"] as const;
    for await (const event of run.events({ fromSeq, types, signal: stopped.signal })) {
      const isOther = event.type === "approval_decision" && event.data.approvalId !== approvalId;
      if (!isOther) break;
    }
    answered.abort();
  };
  // If the log cannot be read, the loop that follows the run fails with the same error, and the question is withdrawn.
  watch().catch(() => answered.abort());
  return { signal: answered.signal, stop: () => stopped.abort() };
}

/** The options of `reeve run`, as texts from the command line. */
export interface RunCommandOptions extends SettingsOptions {
  readonly store: string;
  readonly mode: string;
  readonly maxTokens?: string;
  readonly maxBudgetUsd?: string;
  readonly timeout?: string;
  readonly session?: string;
  readonly continue?: boolean;
  readonly resume?: string;
  readonly yes?: boolean;
  readonly ephemeral?: boolean;
}

/** Runs an agent on a prompt, or resumes a stopped run, and follows it to its end. */
export async function runCommand(
  words: readonly string[],
  options: RunCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const watcher = watcherOf(options, terminal);
  const budget = budgetOf(options);
  const { resume } = options;
  refuseTogether(words, options);
  const telemetry = await telemetryOf(terminal);
  if (resume !== undefined) await refuseRunOfProgram(resume, options, terminal);
  const open = new OpenParts();
  try {
    const starting = resume === undefined ? await prepared(words, options, terminal, open) : undefined;
    const { yes = false, ephemeral = false } = options;
    const opened = open.add(
      await openOwnStore(ephemeral ? "memory:" : options.store, {
        onWarning: (text) => terminal.say(`reeve: ${printable(text)}`),
      }),
    );
    const store = watchedStore(opened, open, telemetry);
    const runtimeOf: RuntimeOf = async (workspace) =>
      open.add(
        await openRuntime({
          ...(workspace !== undefined && runtimeOptions(workspace)),
          store,
          surface: extensionSurface(terminal, async () => workspace?.reload()),
          onError: ({ message }) => terminal.say(`reeve: ${printable(message)}`),
        }),
      );
    const following =
      starting === undefined
        ? await resumed(store, runtimeOf, await findRunId(store, resume ?? "", options.store), {
            budget,
            yes,
            terminal,
            open,
          })
        : await started(store, await runtimeOf(starting.workspace), { ...options, ...starting, budget });
    terminal.say(`${following.run.runId} of session ${following.run.sessionId}`);
    if (starting !== undefined) reportNotices(starting.workspace, terminal);
    const ended = await follow(following, watcher, { terminal, yes });
    // A person who cancels a run wants to leave.
    if (ended.status !== "cancelled") await finish(following.runtime, ended.scheduled, terminal);
    return exitKindOfRun(ended);
  } finally {
    await open.close();
  }
}

/**
 * Throws if the run to resume was started by a program. This is checked before the program's store is refused
 * because no command created it. Otherwise the person would be advised to trust the store, which would not help.
 */
async function refuseRunOfProgram(
  id: string,
  { store: address }: RunCommandOptions,
  terminal: Terminal,
): Promise<void> {
  parseRunId(id);
  await withStore({ store: address }, terminal, async (store) => {
    const runId = await findRunId(store, id, address);
    const record = await store.journal.find(runId);
    if (record !== undefined) fromMetadata(record.metadata, runId);
  });
}

/** Reads the workspace and the prompt before a store is created, so that a wrong option leaves no file behind. */
async function prepared(
  words: readonly string[],
  options: RunCommandOptions,
  terminal: Terminal,
  open: OpenParts,
): Promise<Pick<Starting, "workspace" | "settings" | "prompt">> {
  const flags = settingsOf(options);
  const { yes = false, ephemeral = false } = options;
  const workspace = open.add(await openAskedWorkspace(flags, terminal, { yes, ephemeral }));
  const settings = await completeSettings(workspace, flags, terminal);
  await requireTools(workspace, settings, terminal, flags.tools === "all" ? allNeedShell : undefined);
  return { workspace, settings, prompt: await promptOf(words, terminal) };
}

function allNeedShell(problem: string): string {
  return `--tools all needs a sandbox for shell commands: ${problem} (--sandbox off); --tools read needs none`;
}

interface Starting extends RunCommandOptions {
  readonly workspace: Workspace;
  readonly settings: RunSettings;
  readonly prompt: string;
  readonly budget: Partial<ExecutionBudget>;
}

/**
 * The run to follow, the sequence number of the first event that is shown, and the approvals that are still
 * unanswered.
 */
interface Following {
  readonly runtime: OpenRuntime;
  readonly run: RunHandle;
  readonly fromSeq: number;
  readonly asked: readonly ApprovalRequest[];
}

type OpenRuntime = Awaited<ReturnType<typeof openRuntime>>;

/** Opens the runtime of the store with the options that the files of a workspace set. */
/** The input of an agent with an input schema: an object as JSON. The agent checks it before a run exists. */
function jsonInput(text: string, agent: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // The error below says what is expected.
  }
  throw new Fault(
    "invalid_argument",
    `invalid input of agent ${agent}: it expects an object as JSON, such as reeve run --agent ${agent} '{"city": "Rome"}'`,
  );
}

type RuntimeOf = (workspace: Workspace | undefined) => Promise<OpenRuntime>;

async function started(
  store: Store,
  runtime: OpenRuntime,
  { workspace, settings, prompt, budget, ...options }: Starting,
): Promise<Following> {
  const sessionId = await sessionOf(store, options);
  await refuseBusy(store, sessionId);
  const agent = await runAgent(workspace, settings, sessionId);
  const input =
    agent.inputSchema === undefined
      ? await workspace.expand(prompt, { sessionId })
      : { value: jsonInput(prompt, agent.name) };
  const runId = formatRunId(randomUUID());
  const run = await agent.submit(input, {
    runtime,
    runId,
    sessionId,
    budget,
    metadata: toMetadata(settings),
    userId: "person",
    streaming: true,
  });
  if (run.runId === runId) return { runtime, run, fromSeq: 0, asked: [] };
  // S5: the input became steering of a waiting run. Events that were shown there are not shown again.
  const { fromSeq, asked } = await soFar(store, run.runId);
  return { runtime, run, fromSeq, asked };
}

const unfinished: readonly RunSummaryStatus[] = ["pending", "running", "waiting"];

/**
 * Throws for a session with an unfinished invocation. To host its agent would continue that run, which costs money
 * without the person noticing. An unfinished compaction of another process is continued: the new run waits for it
 * (S5).
 */
async function refuseBusy({ journal }: Store, sessionId: SessionId): Promise<void> {
  const { runs } = await journal.list({
    sessionId,
    kind: "invocation",
    status: ["pending", "running"],
    limit: 1,
  });
  const [run] = runs;
  if (run === undefined) return;
  throw new Fault(
    "agent_busy",
    `${run.runId} of session ${sessionId} has not ended; wait for it, or resume it with reeve run --resume ${run.runId}`,
  );
}

/** For each limit of a run, the option that adds to this limit. */
const addOptions: Readonly<Record<keyof TopUp, string>> = {
  maxCostUsd: "--max-budget-usd",
  maxTokens: "--max-tokens",
  maxTurns: "--max-turns",
  deadlineMs: "--timeout",
};

/** Amounts that are added to a resumed run, and resources that are closed when the command ends. */
interface Resuming {
  readonly budget: Partial<ExecutionBudget>;
  readonly open: OpenParts;
}

/** Returns the error of the last end of an ended run, or `null` if it has none. */
async function failureOf(run: RunHandle): Promise<Failure | null> {
  let failure: Failure | null = null;
  for await (const event of run.events({ follow: false, types: ["task_end"] }))
    if (event.type === "task_end" && event.taskId === rootTaskId) failure = event.data.failure ?? null;
  return failure;
}

/**
 * Resumes a run. An unfinished run continues as soon as its agent is created; an ended run is resumed by an
 * explicit order.
 */
async function resumed(
  store: Store,
  runtimeOf: RuntimeOf,
  runId: RunId,
  { budget, open, ...person }: Person & Resuming,
): Promise<Following> {
  const { settings, fromSeq, asked } = await soFar(store, runId);
  const isDone = (await store.journal.summary(runId))?.status === "completed";
  const own = isDone ? undefined : open.add(await openRunWorkspace(settings, person));
  const runtime = await runtimeOf(own);
  const run = await runtime.find(runId);
  if (run === undefined) throw new Fault("not_found", `run ${runId} not found in this store`);
  const { status } = await run.snapshot();
  if (own === undefined || status === "completed") return { runtime, run, fromSeq: fromSeq - 1, asked: [] };
  if (notResumable.includes(status)) throw notResumed(await run.summary());
  const { maxTokens, maxCostUsd, maxTurns, deadlineMs } = budget;
  const add = {
    ...(maxTokens != null && { maxTokens }),
    ...(maxCostUsd != null && { maxCostUsd }),
    ...(maxTurns != null && { maxTurns }),
    ...(deadlineMs != null && { deadlineMs }),
  };
  if (isStoppedAtLimit(status)) {
    const failure = await failureOf(run);
    const lack = lackOf({ status, failure, budget: null });
    if (lack !== null && !(lack.name in add))
      throw new Fault(
        "invalid_argument",
        `${runId} has stopped at a limit (${printable(failure?.message ?? status)}); add to it with ${addOptions[lack.name]}`,
      );
  }
  const { name } = parseAgentId(run.agentId);
  const isRun = ({ agentId }: { readonly agentId: string }): boolean => agentId === run.agentId;
  const onOpen = (workspace: Workspace): void => void open.add(workspace);
  const resolver = runResolver({ name, accepts: isRun, yes: person.yes, onOpen });
  const needsShell = (problem: string): string =>
    `${runId} was started with the tool bash, which this machine cannot offer: ${problem}`;
  await requireTools(own, settings, person.terminal, settings.tools === "all" ? needsShell : undefined);
  await requireAgent(store, runId, resolver);
  runtime.register(resolver);
  if (Object.keys(add).length > 0) await run.topUp(add);
  if (unfinished.includes(status)) return { runtime, run, fromSeq, asked };
  await run.resume();
  await obeyedOrders(store, runId);
  return { runtime, run, fromSeq, asked: [] };
}

/**
 * Throws if the agent of the run cannot be created here. Otherwise the worker would try again and again, and the
 * command would never end.
 */
async function requireAgent({ journal }: Store, runId: RunId, resolver: AgentResolver): Promise<void> {
  const record = await journal.find(runId);
  if (record === undefined) throw new Fault("not_found", `run ${runId} not found in this store`);
  if ((await resolver.resolve(record)) === undefined) throw notStartedHere(runId);
}

/** Reads the state of a run that must be known before the run is resumed. */
async function soFar(
  store: Store,
  runId: RunHandle["runId"],
): Promise<Pick<Following, "fromSeq" | "asked"> & { readonly settings: RunSettings }> {
  const asked = new Map<string, ApprovalRequest>();
  let settings: RunSettings | undefined;
  let fromSeq = 0;
  for await (const event of store.events.read(runId)) {
    if (event.type === "run_start") settings = fromMetadata(event.data.metadata, runId);
    if (event.type === "approval_request") asked.set(event.data.approvalId, event.data);
    if (event.type === "approval_decision") asked.delete(event.data.approvalId);
    fromSeq = event.seq + 1;
  }
  if (settings === undefined) throw new Fault("store_corrupt", `the log of ${runId} has no run_start event`);
  return { settings, fromSeq, asked: [...asked.values()] };
}

/** The person who decides about approvals of a run, either at the terminal or in advance with `--yes`. */
interface Person {
  readonly terminal: Terminal;
  readonly yes: boolean;
}

/** The result of a run, and the runs that were submitted at its end: a compaction and reviews. */
interface Ended extends Pick<Awaited<ReturnType<RunHandle["result"]>>, "status" | "error"> {
  readonly scheduled: readonly RunId[];
}

/** Shows the events of a run, asks the person for approvals, and cancels the run on an interrupt. */
async function follow(
  { run, fromSeq, asked }: Following,
  watcher: RunWatcher,
  person: Person,
): Promise<Ended> {
  const { runId } = run;
  const { terminal } = person;
  let isStopping = false;
  const forget = terminal.onInterrupt(() => {
    if (isStopping) process.kill(process.pid, "SIGKILL");
    isStopping = true;
    terminal.say(`reeve: cancelling ${runId}; press Ctrl-C again to end this process at once`);
    run
      .as("person")
      .cancel("stopped at the terminal")
      .catch((error: unknown) => {
        terminal.say(`reeve: the run could not be cancelled: ${Fault.from(error).message}`);
      });
  });
  try {
    const scheduled: RunId[] = [];
    for (const request of asked) await decide(run, { request, fromSeq }, watcher, person);
    for await (const event of run.events({ fromSeq })) {
      await watcher.see(event);
      if (event.type === "compaction_scheduled" || event.type === "run_scheduled")
        scheduled.push(event.data.runId);
      if (event.type === "approval_request")
        await decide(run, { request: event.data, fromSeq: event.seq }, watcher, person);
    }
    const result = await run.result();
    await watcher.end(result);
    return { ...result, scheduled };
  } finally {
    forget();
  }
}

/**
 * Waits for the end of the runs that follow a run, because this process may be the only one that executes them.
 * After an interrupt, or if one of them asks a person, the function returns early; then the next command of the
 * session, or a worker, continues these runs.
 */
async function finish(runtime: OpenRuntime, runIds: readonly RunId[], terminal: Terminal): Promise<void> {
  const left = Promise.withResolvers<void>();
  const forget = terminal.onInterrupt(left.resolve);
  try {
    const finishing = runIds.map(async (runId) => {
      // A review that was due while another one is unfinished is left out.
      const run = await runtime.find(runId);
      if (run === undefined || (await run.summary()).endedAt !== null) return;
      terminal.say(
        `reeve: finishing ${runId}, which follows the run; press Ctrl-C to leave it to a later command`,
      );
      const [asked] = await run.untilPersonIsNeeded();
      if (asked !== undefined) terminal.say(`reeve: ${runId} waits; answer it with reeve approve ${runId}`);
    });
    await Promise.race([Promise.all(finishing), left.promise]);
  } finally {
    forget();
  }
}

/**
 * Answers a request of the run. If the request may be answered elsewhere, the events with that answer are read from
 * the sequence number `fromSeq` on.
 */
async function decide(
  run: RunHandle,
  { request, fromSeq }: { readonly request: ApprovalRequest; readonly fromSeq: number },
  watcher: RunWatcher,
  { terminal, yes }: Person,
): Promise<void> {
  const { approvalId, toolName, kind } = request;
  // --yes allows calls. It neither answers a question, nor adds money, nor merges.
  const needsMore = needsAnswer(request) || kind === "top_up" || kind === "merge";
  // The approval was requested by a process that did not have --yes.
  if (yes && isForPerson(request) && !needsMore)
    return answerIfLive(run.as("person"), approvalId, { decision: "approved" });
  if (!terminal.canAsk) {
    const reason = needsMore
      ? "no terminal to ask; --yes allows calls, but it cannot answer this question"
      : "no terminal to ask; --yes allows every call";
    terminal.say(`  denied ${printable(toolName)}: ${reason}`);
    return answerIfLive(run.as("person"), approvalId, { decision: "denied", reason });
  }
  const elsewhere = answeredElsewhere(run, approvalId, fromSeq);
  try {
    const { signal } = elsewhere;
    const decision = await askDecision(request, terminal, { isShown: watcher.hasShown(request), signal });
    if (decision !== undefined)
      return await answerIfLive(run.as("person"), approvalId, decision, { limited: false });
    if (!signal.aborted) terminal.say(`  the request stays open; answer it with reeve approve ${run.runId}`);
  } finally {
    elsewhere.stop();
  }
}

async function sessionOf(
  { journal }: Store,
  { session, agent, continue: goesOn = false }: Pick<RunCommandOptions, "session" | "continue" | "agent">,
): Promise<SessionId> {
  if (session !== undefined) return parseSessionId(session);
  if (!goesOn) return formatSessionId(randomUUID());
  // A review has the settings of its run, and a place of its own within the session.
  const { runs } = await journal.list({ kind: "invocation", limit: 500 });
  const last = runs.find(
    ({ agentId, metadata }) =>
      findSettings(metadata) !== undefined && (agent === undefined || parseAgentId(agentId).name === agent),
  );
  if (last?.sessionId !== undefined) return last.sessionId;
  throw new Fault("not_found", "this store has no session to continue");
}

/** Options that a resumed run keeps from its start, so that they cannot be given again. */
const ofStart = {
  model: "--model",
  baseUrl: "--base-url",
  tools: "--tools",
  root: "--root",
  sandbox: "--sandbox",
  instructions: "--instructions",
  session: "--session",
  agent: "--agent",
  profile: "--profile",
  ephemeral: "--ephemeral",
  continue: "--continue",
} as const satisfies { readonly [Name in keyof RunCommandOptions]?: string };

function refuseTogether(words: readonly string[], options: RunCommandOptions): void {
  if (options.session !== undefined && options.continue === true)
    throw new Fault("invalid_argument", "--session and --continue cannot be combined; use one of them");
  if (options.resume === undefined) return;
  if (words.length > 0)
    throw new Fault("invalid_argument", "--resume takes no prompt; the run continues with its original one");
  const given = Object.entries(ofStart).flatMap(([name, option]) =>
    options[name as keyof typeof ofStart] === undefined ? [] : [option],
  );
  if (given.length > 0)
    throw new Fault(
      "invalid_argument",
      `--resume cannot change the options of a run; remove ${given.join(", ")}`,
    );
}

async function promptOf(words: readonly string[], terminal: Terminal): Promise<string> {
  const piped = words.length === 0 || words.includes("-") ? await terminal.input() : "";
  const prompt = [words.filter((word) => word !== "-").join(" "), piped]
    .filter((part) => part.trim() !== "")
    .join("\n\n");
  if (prompt !== "") return prompt;
  throw new Fault("invalid_argument", 'missing prompt; use reeve run "..." --model provider/id');
}

/**
 * Returns the budget of a new run, or the amounts that are added to the budget of a resumed run. Turns of a new run
 * are limited by the agent's loop, because the budget would count the turn of an interrupted call twice.
 */
function budgetOf({
  maxTokens,
  maxBudgetUsd,
  maxTurns,
  timeout,
  resume,
}: RunCommandOptions): Partial<ExecutionBudget> {
  const tokens = numberOf("--max-tokens", maxTokens, { whole: true });
  const usd = numberOf("--max-budget-usd", maxBudgetUsd, {});
  const seconds = numberOf("--timeout", timeout, {});
  const turns = resume === undefined ? undefined : numberOf("--max-turns", maxTurns, { whole: true });
  return {
    ...(turns !== undefined && { maxTurns: turns }),
    ...(tokens !== undefined && { maxTokens: tokens }),
    ...(usd !== undefined && { maxCostUsd: usd }),
    ...(seconds !== undefined && { deadlineMs: Math.round(seconds * 1000) }),
  };
}

function watcherOf({ mode }: RunCommandOptions, terminal: Terminal): RunWatcher {
  if (mode === "text") return new TextWatcher(terminal);
  if (mode === "json") return new JsonWatcher(terminal);
  throw new Fault("invalid_argument", `invalid --mode ${mode}: expected text or json`);
}

/** Resumes one run and executes it in this process until it ends. */
export function driveRun(
  runs: readonly string[],
  options: OrderManyOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { store, json = false } = options;
  return runCommand([], { resume: onlyRun(runs, options), store, mode: json ? "json" : "text" }, terminal);
}

function onlyRun([run, ...others]: readonly string[], { where, yes, dryRun }: OrderManyOptions): string {
  if (run !== undefined && others.length === 0 && where === undefined && yes !== true && dryRun !== true)
    return run;
  throw new Fault(
    "invalid_argument",
    "--drive takes one RUN, without --where, --yes and --dry-run; use reeve resume RUN --drive, or reeve run --resume RUN --yes to allow every tool call",
  );
}
