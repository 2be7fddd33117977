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

/** What the limits of an agent or a workflow have in common. */
interface FlowLimit<Input> {
  /**
   * Returns the key of a run. Runs with equal keys share the limit; `null` means that the run has no limit. It is called
   * once, before the run exists. Keys belong to a tenant (S6). If absent, all runs of a tenant share the limit.
   */
  readonly key?: (start: FlowStart<Input>) => string | null;
  /** Name of the limit. Agents and workflows whose limits have the same name share it. Default: their own name. */
  readonly name?: string;
}

/** How many runs of a key run at the same time, over all workers. */
export interface ConcurrencyLimit<Input = JsonValue> extends FlowLimit<Input> {
  /** Maximum number of runs of a key that have started and not ended. */
  readonly limit: number;
}

/** How many runs of a key start within a time, over all workers. */
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

/** L19: an object and one of its keys. */
export interface ObjectPlace {
  /** Name of the object. */
  readonly name: string;
  /** Key of the object, within the tenant of the run. */
  readonly key: string;
}

/** L17: the limits of one run, as stores keep them with the run. The keys are those of its tenant. */
export interface RunFlow {
  readonly concurrency?: { readonly name: string; readonly key: string; readonly limit: number };
  readonly rate?: {
    readonly name: string;
    readonly key: string;
    readonly limit: number;
    readonly perMs: number;
  };
  /**
   * L19: the object and the key of a call. Calls of a key run one at a time, in the order in which they were created. A
   * shared call only reads, and waits for none.
   */
  readonly object?: ObjectPlace & { readonly isShared?: true };
}

/** Longest key of a limit, in UTF-16 code units. */
const longestKey = 512;

/** Highest limit: the store counts the places or the starts of a key up to it, to find out whether the next run may start. */
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

/** The kinds of `FlowOptions`, for the tables of agents and workflows. `flowControl` checks their content. */
export const flowKinds = { concurrency: is.any, rate: is.any } satisfies OptionKinds<FlowOptions>;

/** Returns the limits of a run from what it starts with. `undefined` if it has none. */
export type FlowControl = (start: FlowStart) => RunFlow | undefined;

/**
 * Checks the limits of an agent or a workflow and returns a function that gives each run its own. Returns `undefined` if
 * there are no limits. `owner` names it in errors, such as `workflow order`; `ownName` is the name of its limits.
 */
export function flowControl<Input>(
  owner: string,
  ownName: string,
  { concurrency, rate }: FlowOptions<Input>,
): FlowControl | undefined {
  if (concurrency === undefined && rate === undefined) return undefined;
  const slots = concurrency && concurrencyTable.read(`concurrency of ${owner}`, concurrency);
  const starts = rate && rateTable.read(`rate of ${owner}`, rate);
  return (start) => {
    const held = slots && keyOf(`concurrency of ${owner}`, slots, start);
    const counted = starts && keyOf(`rate of ${owner}`, starts, start);
    if (held === undefined && counted === undefined) return undefined;
    return {
      ...(held !== undefined &&
        slots && { concurrency: { name: slots.name ?? ownName, key: held, limit: slots.limit } }),
      ...(counted !== undefined &&
        starts && {
          rate: { name: starts.name ?? ownName, key: counted, limit: starts.limit, perMs: starts.perMs },
        }),
    };
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
