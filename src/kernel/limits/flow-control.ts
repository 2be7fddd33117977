import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";

/** What the key of a limit is chosen by. */
export interface FlowStart<Input = JsonValue> {
  /** The input of the run, as it is stored. */
  readonly input: Input;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** Id of the user. `null` for a run without a user. */
  readonly userId: string | null;
}

/** The fields that all limits of an agent or a workflow have in common. */
interface FlowLimit<Input> {
  /**
   * Returns the key of a run. Runs with equal keys share the limit; the limit does not apply to a run with the key
   * `null`. It is called once, before the run exists. Keys belong to a tenant (S6). If absent, all runs of a tenant
   * share the limit.
   */
  readonly key?: (start: FlowStart<Input>) => string | null;
  /**
   * Name of the limit. Agents and workflows whose limits have the same name share it. Default: the name of the
   * agent or workflow.
   */
  readonly name?: string;
}

/** Limits how many runs of a key run at the same time, over all workers. */
export interface ConcurrencyLimit<Input = JsonValue> extends FlowLimit<Input> {
  /** Maximum number of runs of a key that have started and not ended. */
  readonly limit: number;
}

/** Limits how many runs of a key start within a time, over all workers. */
export interface RateLimit<Input = JsonValue> extends FlowLimit<Input> {
  /** Maximum number of runs of a key that start within each span of `perMs`. */
  readonly limit: number;
  /** Length of the span in milliseconds. */
  readonly perMs: number;
}

/** Limits of the runs of an agent or a workflow. A run above a limit waits in the store. */
export interface FlowOptions<Input = JsonValue> {
  /** How many runs of a key run at the same time. If absent, any number. */
  readonly concurrency?: ConcurrencyLimit<Input>;
  /** How many runs of a key start within a time. If absent, any number. */
  readonly rate?: RateLimit<Input>;
}

/** How several starts of a key within a short time become one run with the last input. */
export interface DebounceOptions<Input = JsonValue> extends FlowLimit<Input> {
  /** Milliseconds that must pass without another start of the key before the run starts. */
  readonly ms: number;
  /** Milliseconds after the first start of the key at which the run starts in any case. Default: no limit. */
  readonly maxMs?: number;
}

/** How several starts of a key become one run with a list of their inputs. */
export interface BatchOptions<Input = JsonValue> extends FlowLimit<Input> {
  /** Number of collected starts at which the run starts at once. At most 100. */
  readonly size: number;
  /** Milliseconds after the first start at which the run starts also with fewer inputs than `size`. */
  readonly ms: number;
}

/** Options that let several starts of a workflow become one run. */
export interface JoinedStartOptions<Input = JsonValue> {
  /**
   * Combines starts of a key within a short time into one run with the last input. If absent, each start is a run.
   * Cannot be combined with `batch`.
   */
  readonly debounce?: DebounceOptions<Input>;
  /** Combines several starts of a key into one run with a list of their inputs. If absent, each start is a run. */
  readonly batch?: BatchOptions<Input>;
}

/**
 * L20: the starts that a run collects before it begins. Only starts of the same tenant, user and key are collected.
 */
export interface RunCollection {
  readonly name: string;
  readonly key: string;
  /** Id of the user, or `null`. */
  readonly userId: string | null;
  /** Whether the run gets only the last input, or a list of all inputs. */
  readonly keeps: "last" | "all";
  /** Milliseconds by which another start delays the run. `null` if another start does not delay it. */
  readonly delayMs: number | null;
  /** Number of collected inputs at which the run starts at once. */
  readonly size: number;
  /** When the run starts, and the latest time at which it does, in epoch milliseconds. */
  readonly dueAt: number;
  readonly latestAt: number | null;
  readonly inputs: readonly JsonValue[];
}

/**
 * Maximum size of the inputs that one run collects, in characters of their JSON. A start that exceeds it begins
 * another run.
 */
const mostCollected = 262_144;

/**
 * L20: adds a start to the collection of a waiting run. Returns `undefined` if that collection accepts no more: its
 * time has come, it is full, or another version of the workflow began it, whose inputs have another form.
 */
export function joinStarts(
  former: RunCollection,
  { keeps, inputs, size, delayMs }: RunCollection,
  at: number,
): RunCollection | undefined {
  if (former.dueAt <= at || former.keeps !== keeps) return undefined;
  if (former.keeps === "last") {
    const dueAt = at + (delayMs ?? 0);
    return { ...former, inputs, dueAt: Math.min(dueAt, former.latestAt ?? dueAt) };
  }
  const all = [...former.inputs, ...inputs];
  if (former.inputs.length >= size || JSON.stringify(all).length > mostCollected) return undefined;
  return { ...former, inputs: all, ...(all.length >= size && { dueAt: at }) };
}

/**
 * Returns the limits of a run without the inputs that it has collected. Used when the content of the run is erased.
 */
export function withoutInputs(flow: RunFlow): RunFlow {
  return flow.collect === undefined ? flow : { ...flow, collect: { ...flow.collect, inputs: [] } };
}

/** Returns the limits of a fork, which does not take part in the collection of starts. */
export function flowOfFork(flow: RunFlow | undefined, runId: string): { readonly flow?: RunFlow } {
  if (flow?.collect === undefined) return flow === undefined ? {} : { flow };
  return { flow: { ...flow, collect: { ...flow.collect, key: `fork ${runId}`, dueAt: 0 } } };
}

/** Returns the input of a run that has collected starts. */
export function collectedInput({ keeps, inputs }: RunCollection): JsonValue {
  return keeps === "all" ? inputs : (inputs.at(-1) ?? null);
}

/** L19: an object and one of its keys. */
export interface ObjectPlace {
  /** Name of the object. */
  readonly name: string;
  /** Key of the object, within the tenant of the run. */
  readonly key: string;
}

/** L17: the limits of one run, as stores keep them with the run. The keys belong to the tenant of the run. */
export interface RunFlow {
  readonly concurrency?: { readonly name: string; readonly key: string; readonly limit: number };
  readonly rate?: {
    readonly name: string;
    readonly key: string;
    readonly limit: number;
    readonly perMs: number;
  };
  /**
   * L19: the object and the key of a call. Calls of a key run one at a time, in the order in which they were
   * created; a delayed call counts from the time at which it is due. A shared call only reads, and waits for no
   * other call.
   */
  readonly object?: ObjectPlace & { readonly isShared?: true };
  /** L20: the starts that the run collects before it starts. */
  readonly collect?: RunCollection;
}

/** Maximum length of the key of a limit, in UTF-16 code units. */
const longestKey = 512;

/**
 * Highest value of a limit. A store counts the runs or the starts of a key up to this number, to find out whether
 * the next run may start.
 */
const highestLimit = 10_000;

const limitKinds = { key: is.callback(), name: is.text({ empty: false }) };
const concurrencyTable = optionTable({
  ...limitKinds,
  limit: is.integer({ from: 1, to: highestLimit, required: true }),
} satisfies OptionKinds<ConcurrencyLimit<never>>);
const rateTable = optionTable({
  ...limitKinds,
  limit: is.integer({ from: 1, to: highestLimit, required: true }),
  perMs: is.integer({ from: 1, required: true }),
} satisfies OptionKinds<RateLimit<never>>);

const highestBatch = 100;
const debounceTable = optionTable({
  ...limitKinds,
  ms: is.integer({ from: 1, required: true }),
  maxMs: is.integer({ from: 1 }),
} satisfies OptionKinds<DebounceOptions<never>>);
const batchTable = optionTable({
  ...limitKinds,
  size: is.integer({ from: 2, to: highestBatch, required: true }),
  ms: is.integer({ from: 1, required: true }),
} satisfies OptionKinds<BatchOptions<never>>);

/** Option kinds of `JoinedStartOptions`. `flowControl` checks their content. */
export const collectKinds = { debounce: is.any, batch: is.any } satisfies OptionKinds<JoinedStartOptions>;

/**
 * Option kinds of `FlowOptions`, for the option tables of agents and workflows. `flowControl` checks their content.
 */
export const flowKinds = { concurrency: is.any, rate: is.any } satisfies OptionKinds<FlowOptions>;

/** Returns the limits of a run according to its input and its caller. `undefined` if the run has no limits. */
export type FlowControl = (start: FlowStart) => RunFlow | undefined;

/**
 * Checks the limits of an agent or a workflow and returns a function that computes the limits of each run. Returns
 * `undefined` if there are no limits. `owner` names the agent or workflow in errors, such as `workflow order`;
 * `ownName` is the default name of its limits.
 */
export function flowControl<Input>(
  owner: string,
  ownName: string,
  { concurrency, rate, debounce, batch }: FlowOptions<Input> & JoinedStartOptions<Input>,
): FlowControl | undefined {
  const collects = collector(owner, ownName, { debounce, batch } as JoinedStartOptions<Input>);
  if (concurrency === undefined && rate === undefined && collects === undefined) return undefined;
  const slots = concurrency && concurrencyTable.read(`concurrency of ${owner}`, concurrency);
  const starts = rate && rateTable.read(`rate of ${owner}`, rate);
  return (start) => {
    const held = slots && keyOf(`concurrency of ${owner}`, slots, start);
    const counted = starts && keyOf(`rate of ${owner}`, starts, start);
    const collect = collects?.(start);
    if (held === undefined && counted === undefined && collect === undefined) return undefined;
    return {
      ...(collect !== undefined && { collect }),
      ...(held !== undefined &&
        slots && { concurrency: { name: slots.name ?? ownName, key: held, limit: slots.limit } }),
      ...(counted !== undefined &&
        starts && {
          rate: { name: starts.name ?? ownName, key: counted, limit: starts.limit, perMs: starts.perMs },
        }),
    };
  };
}

/**
 * Checks `debounce` or `batch`, and returns a function that creates the collection of a first start. The times in
 * it count from 0; `collectFrom` adds the real time.
 */
function collector<Input>(
  owner: string,
  ownName: string,
  { debounce, batch }: JoinedStartOptions<Input>,
): ((start: FlowStart) => RunCollection | undefined) | undefined {
  if (debounce !== undefined && batch !== undefined)
    throw new Fault(
      "invalid_argument",
      `invalid batch of ${owner}: it has debounce as well, which keeps one input only; use one of them`,
    );
  const limits =
    debounce === undefined
      ? batch && batchTable.read(`batch of ${owner}`, batch)
      : debounceTable.read(`debounce of ${owner}`, debounce);
  if (limits === undefined) return undefined;
  const isBatch = debounce === undefined;
  const { ms, name = ownName } = limits;
  const size = "size" in limits ? limits.size : Infinity;
  const maxMs = "maxMs" in limits ? (limits.maxMs ?? null) : null;
  return (start) => {
    const key = keyOf(`${isBatch ? "batch" : "debounce"} of ${owner}`, limits as FlowLimit<Input>, start);
    if (key === undefined && !isBatch) return undefined;
    return {
      name,
      // A batch without a key is a batch of one.
      key: key ?? "",
      userId: start.userId,
      keeps: isBatch ? "all" : "last",
      delayMs: isBatch ? null : ms,
      size: key === undefined ? 1 : Math.min(size, highestBatch),
      dueAt: key === undefined ? 0 : maxMs === null ? ms : Math.min(ms, maxMs),
      latestAt: maxMs,
      inputs: [start.input],
    };
  };
}

/** L20: returns the limits of a run that is created at this time. The times of its collection count from this time. */
export function flowFrom(flow: RunFlow | undefined, at: number): RunFlow | undefined {
  if (flow?.collect === undefined) return flow;
  const { dueAt, latestAt } = flow.collect;
  return {
    ...flow,
    collect: { ...flow.collect, dueAt: at + dueAt, latestAt: latestAt === null ? null : at + latestAt },
  };
}

/** Returns the key of a run, or `undefined` if the limit does not apply to it. */
function keyOf<Input>(owner: string, { key }: FlowLimit<Input>, start: FlowStart): string | undefined {
  if (key === undefined) return "";
  const found: unknown = key(start as FlowStart<Input>);
  if (found === null) return undefined;
  if (
    typeof found === "string" &&
    found.length <= longestKey &&
    found.isWellFormed() &&
    !found.includes("\0")
  )
    return found;
  throw new Fault(
    "invalid_argument",
    `invalid key ${describeValue(found)} of ${owner}: expected a text of at most ${longestKey} characters without NUL, or null for a run without this limit`,
  );
}
