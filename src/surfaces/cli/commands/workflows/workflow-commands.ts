import { readFile } from "node:fs/promises";
import { openClient } from "../../../../assembly/open-runtime.ts";
import {
  agentNameOf,
  Fault,
  nearestName,
  readDuration,
  runSummaryStatuses,
  type Client,
  type JsonObject,
  type JsonValue,
  type NamedStartOptions,
  type ObjectStatePage,
  type RunHandle,
  type Store,
  type WorkflowResult,
} from "../../../../kernel/index.ts";
import { findRunId } from "../../setup/find-run.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { exitKindOfRun, type ExitKind } from "../../terminal/exit-code.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface StartCommandOptions extends StoreOptions {
  readonly input?: string;
  readonly id?: string;
  readonly at?: string;
  readonly delay?: string;
  readonly tenant?: string;
  readonly user?: string;
  readonly metadata?: readonly string[];
  readonly forVersion?: string;
  readonly wait?: boolean;
  readonly json?: boolean;
}

interface ValueOptions extends StoreOptions {
  readonly value?: string;
}

export interface SendSignalOptions extends ValueOptions {
  readonly id?: string;
  readonly task?: string;
  readonly json?: boolean;
}

export type ReadOptions = StoreOptions;

export interface StateOptions extends StoreOptions {
  readonly tenant?: string;
}

export interface SendUpdateOptions extends ValueOptions {
  readonly id?: string;
}

export type PromiseOptions = ValueOptions;

export interface RejectOptions extends StoreOptions {
  readonly message: string;
}

/** Number of runs whose names are compared with a misspelt name. */
const comparedRuns = 500;

/** Opens the store with a client, which executes no runs. If a run has no worker, the person is informed. */
function withClient(
  options: StoreOptions,
  terminal: Terminal,
  use: (client: Client, store: Store) => Promise<ExitKind>,
): Promise<ExitKind> {
  const onError = (fault: Fault): void => terminal.say(printable(fault.message));
  return withStore(options, terminal, async (store) => {
    await using client = await openClient({ store, onError });
    return await use(client, store);
  });
}

/** Starts a run of a workflow by its name, and prints its id or, with --wait, its output. */
export async function startWorkflow(
  name: string,
  options: StartCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { wait = false, json = false } = options;
  const input = await jsonOf("--input", options.input, terminal);
  const starting = startOptionsOf(options);
  return withClient(options, terminal, async (client, store): Promise<ExitKind> => {
    const run = await client.start(name, input, starting);
    const { runId } = run;
    if (!wait) await terminal.out(json ? JSON.stringify({ runId }) : runId);
    const hint = await waitingHint(run, store, name);
    if (hint !== undefined) terminal.say(hint);
    if (!wait) return "ok";
    const result = await interruptible(run, terminal);
    if (result === undefined) return "ok";
    const { status, output, error } = result;
    if (json) await terminal.out(JSON.stringify({ runId, status, output, error }));
    else if (status === "completed") await terminal.out(shown(output));
    else
      terminal.say(
        `${runId} ended as ${status}: ${printable(error?.message ?? result.interruptionReason ?? "no reason is known")}`,
      );
    return exitKindOfRun(result);
  });
}

/** Waits for the end of the run. Returns `undefined` if the person stops waiting; the run then continues. */
async function interruptible(
  run: RunHandle<WorkflowResult<JsonValue>>,
  terminal: Terminal,
): Promise<WorkflowResult<JsonValue> | undefined> {
  const left = Promise.withResolvers<undefined>();
  const forget = terminal.onInterrupt(() => {
    terminal.say(`${run.runId} continues without this command; reeve show ${run.runId} shows it.`);
    left.resolve(undefined);
  });
  try {
    return await Promise.race([run.result(), left.promise]);
  } finally {
    forget();
  }
}

/**
 * Returns a hint for a run if no worker has executed a run of this name yet. A worker that hosts the name needs a
 * moment to claim the run.
 */
async function waitingHint(
  run: RunHandle<unknown>,
  { journal }: Store,
  name: string,
): Promise<string | undefined> {
  if (!(await run.summary()).waitsFor.includes("worker")) return undefined;
  const status = runSummaryStatuses.filter((each) => each !== "pending");
  if ((await journal.count({ agentName: name, status, limit: 1 })) > 0) return undefined;
  const recent = await journal.list({ kind: "workflow", limit: comparedRuns });
  const names = new Set(recent.runs.map(({ agentId }) => agentNameOf(agentId)));
  names.delete(name);
  const nearest = nearestName(name, names);
  const meant = nearest === undefined ? "" : ` Did you mean ${nearest}?`;
  return `${run.runId} waits for a worker that hosts the workflow ${name}: no worker of this store has executed a run of this name yet.${meant}`;
}

function startOptionsOf(options: StartCommandOptions): NamedStartOptions {
  const { id, at, delay, tenant, user, metadata, forVersion } = options;
  if (at !== undefined && delay !== undefined)
    throw new Fault("invalid_argument", "--at and --delay cannot be combined; use one of them");
  return {
    ...(id !== undefined && { runId: id.startsWith("run_") ? id : `run_${id}` }),
    ...(at !== undefined && { startAt: timeOf(at) }),
    ...(delay !== undefined && { delayMs: readDuration(numberOr(delay), "--delay") }),
    ...(tenant !== undefined && { tenantId: tenant }),
    ...(user !== undefined && { userId: user }),
    ...(metadata !== undefined && { metadata: metadataOf(metadata) }),
    ...(forVersion !== undefined && { version: forVersion }),
  };
}

/** Parses a duration. If it consists only of digits, it is in milliseconds. */
function numberOr(text: string): number | string {
  return /^\d+$/u.test(text) ? Number(text) : text;
}

function timeOf(text: string): number {
  const time = /^\d+$/u.test(text) ? Number(text) : Date.parse(text);
  if (Number.isSafeInteger(time)) return time;
  throw new Fault(
    "invalid_argument",
    `invalid --at ${printable(text)}: expected a time such as 2026-12-01T09:00:00Z, or epoch milliseconds`,
  );
}

function metadataOf(pairs: readonly string[]): JsonObject {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at > 0) return [pair.slice(0, at), pair.slice(at + 1)];
      throw new Fault("invalid_argument", `invalid --metadata ${printable(pair)}: expected KEY=VALUE`);
    }),
  );
}

/** Reads a JSON option: the text itself, a file with `@FILE`, or stdin with `-`. */
async function jsonOf(option: string, text: string | undefined, terminal: Terminal): Promise<JsonValue> {
  if (text === undefined) return null;
  const source = text === "-" ? "stdin" : text.startsWith("@") ? `the file ${text.slice(1)}` : undefined;
  const json =
    text === "-" ? await terminal.input() : text.startsWith("@") ? await fileOf(option, text.slice(1)) : text;
  try {
    return JSON.parse(json) as JsonValue;
  } catch (error) {
    const what = source ?? printable(text);
    throw new Fault(
      "invalid_argument",
      `invalid ${option} ${what}: ${printable((error as Error).message)}; expected JSON, such as '{"cents": 900}' or '"text"'`,
    );
  }
}

async function fileOf(option: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new Fault(
      "invalid_argument",
      `invalid ${option} @${printable(path)}: ${printable((error as Error).message)}`,
    );
  }
}

/** Formats a value as a line of data: a text is printed unchanged, any other value as JSON. */
function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

async function personRun(client: Client, store: Store, run: string, address: string): Promise<RunHandle> {
  return (await client.run(await findRunId(store, run, address))).as("person");
}

/** Sends a signal to a run, and prints the id of the run. */
export async function signalRun(
  run: string,
  name: string,
  options: SendSignalOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { id, task: taskId, json = false } = options;
  const value = await jsonOf("--value", options.value, terminal);
  return withClient(options, terminal, async (client, store): Promise<ExitKind> => {
    const target = await personRun(client, store, run, options.store);
    const { runId } = target;
    await target.signal(name, value, {
      ...(id !== undefined && { id }),
      ...(taskId !== undefined && { taskId }),
    });
    await terminal.out(json ? JSON.stringify({ runId }) : runId);
    return "ok";
  });
}

/** Prints the last value that a run has published under a key. */
export function readValue(
  run: string,
  name: string,
  options: ReadOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withClient(options, terminal, async (client, store): Promise<ExitKind> => {
    const target = await personRun(client, store, run, options.store);
    const value = await target.read(name);
    if (value === undefined)
      throw new Fault(
        "not_found",
        `${target.runId} has published no value under the name ${printable(name)}; ctx.publish() of its workflow publishes values`,
      );
    await terminal.out(JSON.stringify(value));
    return "ok";
  });
}

/** Prints the state of one key of an object, or all keys with their states. */
export function printState(
  name: string,
  key: string | undefined,
  options: StateOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withClient(options, terminal, async (client): Promise<ExitKind> => {
    const owner = options.tenant === undefined ? {} : { tenantId: options.tenant };
    if (key !== undefined) {
      const [found] = (await client.objectStates(name, { ...owner, key })).states;
      if (found === undefined)
        throw new Fault(
          "not_found",
          `key ${printable(key)} of object ${printable(name)} has no state; reeve state ${printable(name)} lists the keys that have one`,
        );
      await terminal.out(JSON.stringify(found.state));
      return "ok";
    }
    let after: string | null | undefined;
    do {
      const page: ObjectStatePage = await client.objectStates(name, { ...owner, ...(after && { after }) });
      for (const each of page.states) await terminal.out(JSON.stringify(each));
      after = page.next;
    } while (after !== null);
    return "ok";
  });
}

/** Sends an update to a run, and prints its reply. */
export async function updateRun(
  run: string,
  name: string,
  options: SendUpdateOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { id } = options;
  const value = await jsonOf("--value", options.value, terminal);
  return withClient(options, terminal, async (client, store): Promise<ExitKind> => {
    const target = await personRun(client, store, run, options.store);
    const reply = await target.update(name, value, id === undefined ? {} : { id });
    await terminal.out(JSON.stringify(reply));
    return "ok";
  });
}

/** Resolves a promise of a workflow. */
export async function resolvePromise(
  id: string,
  options: PromiseOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const value = await jsonOf("--value", options.value, terminal);
  return withClient(options, terminal, async (client) =>
    settled(await client.promise(id).resolve(value), terminal),
  );
}

/** Rejects a promise of a workflow. */
export function rejectPromise(id: string, options: RejectOptions, terminal: Terminal): Promise<ExitKind> {
  return withClient(options, terminal, async (client) =>
    settled(await client.promise(id).reject(new Error(options.message)), terminal),
  );
}

function settled(isFirst: boolean, terminal: Terminal): ExitKind {
  terminal.say(
    isFirst ? "The promise is settled." : "The promise was settled before; the first call counts.",
  );
  return "ok";
}
