import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { formatRunId, type RunId } from "../base/identity.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { Clock, IdSource } from "../base/sources.ts";
import { CancellationError, CancellationToken } from "../errors/cancellation-token.ts";
import type { Supervision } from "../limits/supervision.ts";
import type { RunRecord } from "./run-record.ts";

/** Options of `RunMeta.standalone`. */
export interface StandaloneOptions {
  /** Clock for the deadline. */
  readonly clock: Clock;
  /** Source of the run id, trace id and span id. */
  readonly ids: IdSource;
  /** Id of the run. Default: a new id. Ignored if `supervision` is given. */
  readonly runId?: RunId;
  /** Token that cancels the call. Default: a new token. */
  readonly cancellation?: CancellationToken;
  /** Position in the tree of tasks. Default: `null`. */
  readonly supervision?: Supervision | null;
  /** Deadline in epoch milliseconds. `null` or absent means no deadline. */
  readonly deadline?: number | null;
  /** Id of the trace. Default: a new id. */
  readonly traceId?: string;
  /** Id of the tenant. Default: `null`. */
  readonly tenantId?: string | null;
}

/** Options of `RunMeta.child`. */
export interface ChildMetaOptions {
  /** Position of the child in the tree of tasks. Default: the parent's. */
  readonly supervision?: Supervision;
  /** Deadline in epoch milliseconds. If the parent's deadline is earlier, that one applies. */
  readonly deadline?: number | null;
}

const standaloneTable = optionTable({
  clock: is.any,
  ids: is.any,
  runId: is.any,
  cancellation: is.any,
  supervision: is.any,
  deadline: is.any,
  traceId: is.text(),
  tenantId: is.any,
} satisfies OptionKinds<StandaloneOptions>);
const childTable = optionTable({
  supervision: is.any,
  deadline: is.any,
} satisfies OptionKinds<ChildMetaOptions>);

interface Fields {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly runId: RunId;
  readonly cancellation: CancellationToken;
  readonly supervision: Supervision | null;
  readonly deadline: number | null;
  readonly traceId: string;
  readonly tenantId: string | null;
}

/**
 * Metadata that every call carries: its run, cancellation, deadline, trace and tenant. It is frozen; `child`
 * creates the metadata of a nested call.
 */
export class RunMeta {
  /** Id of the run. */
  readonly runId: RunId;
  /** Token that cancels the call. */
  readonly cancellation: CancellationToken;
  /** Position in the tree of tasks. `null` for a call outside any tree. */
  readonly supervision: Supervision | null;
  /**
   * Deadline in epoch milliseconds. Only `check` enforces it, because the cancellation token knows no deadlines
   * (trap R19). `null` means no deadline.
   */
  readonly deadline: number | null;
  /** Id of the trace, the same in the whole run. */
  readonly traceId: string;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  #spanId: string | undefined;

  protected constructor(fields: Fields) {
    if (fields.deadline !== null && !Number.isFinite(fields.deadline)) {
      throw new Fault(
        "invalid_argument",
        `invalid deadline ${fields.deadline}: use epoch milliseconds, or null for no deadline`,
      );
    }
    this.runId = fields.runId;
    this.cancellation = fields.cancellation;
    this.supervision = fields.supervision;
    this.deadline = fields.deadline;
    this.traceId = fields.traceId;
    this.tenantId = fields.tenantId;
    this.#clock = fields.clock;
    this.#ids = fields.ids;
    Object.freeze(this);
  }

  /** Creates metadata without a parent. If `supervision` is given, the run id is taken from it. */
  static standalone(options: StandaloneOptions): RunMeta {
    const {
      clock,
      ids,
      supervision = null,
      deadline = null,
      tenantId = null,
    } = standaloneTable.read("RunMeta.standalone()", options);
    return new RunMeta({
      clock,
      ids,
      runId: supervision?.runId ?? options.runId ?? formatRunId(ids.next()),
      cancellation: options.cancellation ?? new CancellationToken(),
      supervision,
      deadline,
      traceId: options.traceId ?? ids.next(),
      tenantId,
    });
  }

  /** Id of the span, different for each `RunMeta`. Created on first access. */
  get spanId(): string {
    return (this.#spanId ??= this.#ids.next());
  }

  /**
   * Returns the metadata of a nested call: same run and trace, a new span, and a child token that is
   * cancelled together with this one.
   */
  child(options: ChildMetaOptions = {}): RunMeta {
    const { supervision, deadline = null } = childTable.read("child()", options);
    return new RunMeta({
      clock: this.#clock,
      ids: this.#ids,
      runId: this.runId,
      cancellation: this.cancellation.child(),
      supervision: supervision ?? this.supervision,
      deadline: earlier(this.deadline, deadline),
      traceId: this.traceId,
      tenantId: this.tenantId,
    });
  }

  /**
   * C2: throws `CancellationError` after a cancel or after the deadline. Runs before each model call, tool call, loop
   * round and retry.
   */
  check(): void {
    this.cancellation.check();
    if (this.deadline !== null && this.#clock.now() > this.deadline) {
      throw new CancellationError("deadline exceeded", { status: "deadline_exceeded" });
    }
  }
}

function earlier(one: number | null, other: number | null): number | null {
  if (one === null) return other;
  return other === null ? one : Math.min(one, other);
}

/** The text with which an agent answers a heartbeat when it has nothing to report. */
export const nothingToReport = "nothing to report";

/**
 * Matches characters that models often put around a short answer: spaces, quotation marks, emphasis and a final
 * punctuation mark.
 */
const wrapping = /^[\s"'`*_“”‘’«»([]+|[\s"'`*_“”‘’«»)\].!。]+$/gu;

/**
 * Whether an answer consists only of "nothing to report". Letter case, quotation marks, emphasis and a final
 * punctuation mark do not matter. An answer with any other word reports something.
 */
export function reportsNothing(answer: unknown): boolean {
  if (typeof answer !== "string" || answer.length > 256) return false;
  const words = answer.replaceAll(wrapping, "").split(/\s+/u).join(" ");
  return words.toLowerCase() === nothingToReport;
}

/** Returns the input of a heartbeat with a sentence that tells the model how to answer if it has nothing to report. */
export function heartbeatInput(input: string): string {
  return `${input}\n\nIf there is nothing to report, answer only: ${nothingToReport}`;
}

/** The platforms on which a person reads answers and for which workspaces have rules about the form of answers. */
export const platforms = ["terminal", "web", "telegram", "discord", "slack", "email"] as const;

/** A platform on which a person reads answers. */
export type Platform = (typeof platforms)[number];

/**
 * Where the input of a run came from: a platform, a platform and an id such as `telegram:4711`, or any other name
 * such as `mcp`. A name that is not a platform has no rules about the form of answers.
 */
export type Channel = Platform | `${Platform}:${string}` | (string & Record<never, never>);

/** Returns the platform of a channel. `null` is the terminal. `undefined` for a name that is not a platform. */
export function platformOf(channel: Channel | null): Platform | undefined {
  const [name = ""] = (channel ?? "terminal").toLowerCase().split(/[:/]/u);
  return platforms.find((platform) => platform === name);
}

/** A queue of input to a run in progress: steering for the next turn, or follow-ups for after the last turn. */
export type InputQueue = "steer" | "follow_up";

/** How many waiting inputs are read at once: the oldest one, or all. */
export type DrainMode = "one" | "all";

type Caller = Pick<RunRecord, "userId" | "tenantId">;

/**
 * Whether two runs belong to the same user of the same tenant. Runs without a user count as one user, who differs
 * from all named users.
 */
export function sameCaller(one: Caller, other: Caller): boolean {
  return one.userId === other.userId && one.tenantId === other.tenantId;
}

/** Limits a view to one tenant, or to one user of that tenant. */
export interface TenantScope {
  /** Id of the tenant. */
  readonly tenantId: string;
  /** Id of the user. If absent, the scope contains everything of the tenant, with or without a user. */
  readonly userId?: string;
}

/** Whether a run or a session with this owner belongs to the scope. An absent scope contains everything. @advanced */
export function isInScope(
  { tenantId, userId }: { readonly tenantId: string | null; readonly userId: string | null },
  scope: TenantScope | undefined,
): boolean {
  if (scope === undefined) return true;
  return tenantId === scope.tenantId && (scope.userId === undefined || userId === scope.userId);
}

/** Maximum length of a name that the caller of a run chooses, in characters. Names are copied to tasks, events and indexes. */
export const longestName = 1_024;

/**
 * Returns what is wrong with the id of a user or a tenant, or with the name of a channel. `undefined` if it is
 * valid. Unpaired surrogates are invalid: a store writes all of them as the same character, so that it would
 * confuse two ids that differ only in them.
 */
export function nameProblem(name: unknown): string | undefined {
  if (typeof name !== "string") return `expected a text, not ${describeValue(name)}`;
  if (name === "") return "it is empty; use a text of at least one character, or leave it out";
  if (name.length > longestName) return `it has ${name.length} characters; use at most ${longestName}`;
  if (!name.isWellFormed())
    return `${describeValue(name)} has an unpaired surrogate; use well-formed Unicode`;
  return undefined;
}
