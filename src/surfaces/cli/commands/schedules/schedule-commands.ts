import {
  Fault,
  parseAgentId,
  type AgentId,
  type JsonValue,
  type Schedule,
  type ScheduleOptions,
  type Store,
} from "../../../../kernel/index.ts";
import { openWorkspace } from "../../../../workspace/workspace.ts";
import { sha256, storedSchedules, systemClock } from "../../../../runtime/index.ts";
import { cronReader } from "../../../../capabilities/schedules/cron-reader.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, duration, shortText } from "../../terminal/format.ts";
import { findRunId } from "../../setup/find-run.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

interface OwnerOptions extends StoreOptions {
  readonly user?: string;
  readonly tenant?: string;
}

export interface AddScheduleOptions extends OwnerOptions {
  readonly agent?: string;
  /** Id of a run whose agent and input are used for the schedule. */
  readonly from?: string;
  readonly cron?: string;
  readonly every?: string;
  readonly at?: string;
  readonly start?: string;
  readonly timeZone?: string;
  readonly session?: string;
  readonly overlap?: string;
  readonly missed?: string;
  readonly heartbeat?: boolean;
  readonly maxTokens?: string;
  readonly maxBudgetUsd?: string;
  readonly replace?: boolean;
}

export interface ListSchedulesOptions extends OwnerOptions {
  readonly json?: boolean;
}

export type NamedScheduleOptions = OwnerOptions;

export interface EditScheduleOptions extends Omit<AddScheduleOptions, "agent" | "replace" | "from"> {
  readonly agent?: string;
  readonly input?: string;
}

/** Creates a schedule and prints its next fire. Creates the store if it does not exist. */
export async function addSchedule(
  name: string,
  words: readonly string[],
  options: AddScheduleOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const given = ["cron", "every", "at"].filter((each) => each in options);
  if (given.length !== 1)
    throw new Fault(
      "invalid_argument",
      `reeve schedule add needs exactly one of --cron, --every and --at${given.length === 0 ? "" : `, not --${given.join(" and --")}`}`,
    );
  const store = await createStore(options.store);
  try {
    const { agent, input } = await sourceOf(store, words.join(" "), options);
    const wanted = scheduleOptions({ ...options, name, input, agent }) as unknown as ScheduleOptions;
    const schedule = await schedulesOf(store).create(wanted);
    await terminal.out(schedule.name);
    terminal.say(`Next fire: ${timeText(schedule.nextAt, schedule)}`);
    terminal.say(
      `It fires while a process that hosts the agent ${printable(schedule.agentId)} is open on this store.`,
    );
    await warnUnknown(schedule.agentId, terminal);
    return "ok";
  } finally {
    await store.close();
  }
}

/**
 * Returns the agent and the input of a new schedule: the given ones, otherwise those of the run that `--from`
 * names.
 */
async function sourceOf(
  store: Store,
  words: string,
  { agent, from, store: address }: AddScheduleOptions,
): Promise<{ readonly agent: string; readonly input: JsonValue }> {
  if (from === undefined) {
    if (agent === undefined || words === "")
      throw new Fault(
        "invalid_argument",
        "reeve schedule add needs --agent and INPUT, or --from with a run that has both",
      );
    return { agent, input: words };
  }
  const runId = await findRunId(store, from, address);
  for await (const event of store.events.read(runId)) {
    if (event.type !== "run_start") break;
    if (words === "" && event.erased === true)
      throw new Fault("invalid_argument", `the input of ${runId} was erased: pass INPUT`);
    return { agent: agent ?? event.agentId, input: words === "" ? event.data.input : words };
  }
  throw new Fault("store_corrupt", `the log of ${runId} does not begin with run_start`);
}

/** Changes a schedule and prints its name. */
export function editSchedule(
  name: string,
  options: EditScheduleOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { user: userId = null, tenant: tenantId = null } = options;
  const { userId: _user, tenantId: _tenant, ...changes } = scheduleOptions(options);
  if (Object.keys(changes).length === 0)
    throw new Fault("invalid_argument", "reeve schedule edit needs at least one option to change");
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const schedule = await schedulesOf(store).edit(name, changes, { userId, tenantId });
    await terminal.out(schedule.name);
    terminal.say(`Next fire: ${timeText(schedule.nextAt, schedule)}`);
    return "ok";
  });
}

/** Starts a run of a schedule at once, and prints its id. */
export function runSchedule(
  name: string,
  options: NamedScheduleOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { user: userId = null, tenant: tenantId = null } = options;
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const { runId, schedule } = await schedulesOf(store).runNow(name, { userId, tenantId });
    await terminal.out(runId);
    terminal.say(
      `It starts while a process that hosts the agent ${printable(schedule.agentId)} is open on this store.`,
    );
    return "ok";
  });
}

/** Warns if the workspace of this folder does not contain the agent. A program of the user may still host it. */
async function warnUnknown(agentId: AgentId, terminal: Terminal): Promise<void> {
  const { name } = parseAgentId(agentId);
  try {
    await using workspace = await openWorkspace();
    if (workspace.agents().some((agent) => agent.name === name)) return;
    // The error says what the workspace has, and whether trust is missing.
    await workspace.agent(name);
  } catch (error) {
    const reason = printable(Fault.from(error).message);
    terminal.say(`reeve: warning: reeve serve in this folder does not host the agent: ${reason}`);
  }
}

/** Prints the schedules of a store. */
export function printSchedules(options: ListSchedulesOptions, terminal: Terminal): Promise<ExitKind> {
  const { user: userId, tenant: tenantId, json = false } = options;
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const schedules = await schedulesOf(store).list({
      ...(userId !== undefined && { userId }),
      ...(tenantId !== undefined && { tenantId }),
    });
    const rows = schedules.map((schedule) => row(schedule, Date.now()));
    const lines = columns(terminal.isWatched ? [heading, ...rows] : rows);
    for (const line of json ? schedules.map((each) => JSON.stringify(each)) : rows.length === 0 ? [] : lines)
      await terminal.out(line);
    if (schedules.length === 0) terminal.say("No schedule found; reeve schedule add creates one.");
    return "ok";
  });
}

/** Removes a schedule. Its runs stay. */
export function removeSchedule(
  name: string,
  options: NamedScheduleOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { user: userId = null, tenant: tenantId = null } = options;
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    if (!(await schedulesOf(store).remove(name, { userId, tenantId })))
      throw new Fault(
        "not_found",
        `schedule ${printable(name)} not found in ${printable(options.store)}; reeve schedule list prints the schedules, and --user and --tenant name its owner`,
      );
    await terminal.out(name);
    return "ok";
  });
}

interface GivenOptions extends Omit<AddScheduleOptions, "store"> {
  readonly name?: string;
  readonly input?: JsonValue;
}

/** Returns the options of a schedule that are given on the command line. `create` and `edit` check all values. */
function scheduleOptions(options: GivenOptions): Readonly<Record<string, unknown>> {
  const {
    name,
    input,
    agent,
    every,
    at,
    start,
    session: sessionId,
    user: userId,
    tenant: tenantId,
  } = options;
  const { cron, overlap, missed, heartbeat, replace } = options;
  const maxTokens = limitOf("--max-tokens", options.maxTokens);
  const maxCostUsd = limitOf("--max-budget-usd", options.maxBudgetUsd);
  const usesClock = [cron, at, start].some((each) => each !== undefined);
  const timeZone =
    options.timeZone ?? (usesClock ? Intl.DateTimeFormat().resolvedOptions().timeZone : undefined);
  const budget = {
    ...(maxTokens !== undefined && { maxTokens }),
    ...(maxCostUsd !== undefined && { maxCostUsd }),
  };
  const own = {
    name,
    agent,
    input,
    cron,
    everyMs: every === undefined ? undefined : intervalOf(every),
    at,
    startAt: start,
    timeZone,
    sessionId,
    userId,
    tenantId,
    overlap,
    missed,
    heartbeat,
    replace,
    budget: Object.keys(budget).length === 0 ? undefined : budget,
  };
  return Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads an interval such as `15m`. */
function intervalOf(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,9})([smhd])$/u.exec(text) ?? [];
  const ms = Number(count) * (units[unit] ?? 0);
  if (ms > 0) return ms;
  throw new Fault(
    "invalid_argument",
    `invalid --every ${printable(text)}: expected a number and a unit, such as 30s, 15m, 1h or 1d`,
  );
}

function limitOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value >= 0) return value;
  throw new Fault("invalid_argument", `invalid ${option} ${printable(text)}: expected a number from 0`);
}

function schedulesOf(store: Store): ReturnType<typeof storedSchedules> {
  return storedSchedules({
    records: store.records,
    clock: systemClock,
    hash: sha256,
    cron: async () => cronReader,
  });
}

async function createStore(address: string): Promise<Store> {
  if (!/^(?:sqlite:|postgres(?:ql)?:\/\/)./u.test(address))
    throw new Fault(
      "invalid_argument",
      `invalid --store ${printable(address)}: expected sqlite:PATH or postgres://HOST/DATABASE`,
    );
  return openOwnStore(address, { allowForeign: true });
}

const heading = ["SCHEDULE", "AGENT", "TIMES", "NEXT", "LAST RUN", "INPUT"];

function row(schedule: Schedule, now: number): string[] {
  const { name, agentId, status, nextAt, lastRunId, skipped, input } = schedule;
  const isOverdue = nextAt !== null && nextAt < now;
  const next = status === "active" ? timeText(nextAt, schedule) : status;
  return [
    printable(name),
    printable(agentId),
    printable(timesText(schedule)),
    isOverdue ? `${next} (waits)` : next,
    lastRunId ?? (skipped === null ? "-" : `skipped: ${skipped.reason}`),
    shortText(input),
  ];
}

function timesText({ times }: Schedule): string {
  if ("cron" in times) return `${times.cron} ${times.timeZone}`;
  return "everyMs" in times ? `every ${duration(times.everyMs)}` : "once";
}

/** Formats a time as local time in the time zone of the schedule. */
function timeText(at: number | null, { times }: Schedule): string {
  if (at === null) return "none";
  if (!("cron" in times)) return new Date(at).toISOString().replace(":00.000Z", "Z");
  const { timeZone } = times;
  const text = new Date(at).toLocaleString("sv-SE", { timeZone }).slice(0, 16).replace(" ", "T");
  return `${text} ${timeZone}`;
}
