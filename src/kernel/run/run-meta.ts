import { CancellationError } from "../errors/cancellation-error.ts";
import { CancellationToken } from "../errors/cancellation-token.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { formatRunId, type RunId } from "../base/identity.ts";
import type { IdSource } from "../base/id-source.ts";
import { checkOptions, optionNames } from "../base/option-check.ts";
import type { Supervision } from "../limits/supervision.ts";

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
  /** Deadline in epoch milliseconds. The earlier one of this and the parent's applies. */
  readonly deadline?: number | null;
}

const standaloneNames = optionNames<StandaloneOptions>({
  clock: true,
  ids: true,
  runId: true,
  cancellation: true,
  supervision: true,
  deadline: true,
  traceId: true,
  tenantId: true,
});
const childNames = optionNames<ChildMetaOptions>({ supervision: true, deadline: true });

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
 * What every call carries: its run, cancellation, deadline, trace and tenant. Frozen; `child` derives the metadata of a
 * nested call.
 */
export class RunMeta {
  /** Id of the run. */
  readonly runId: RunId;
  /** Token that cancels the call. */
  readonly cancellation: CancellationToken;
  /** Position in the tree of tasks. `null` for a call outside any tree. */
  readonly supervision: Supervision | null;
  /**
   * Deadline in epoch milliseconds. Only `check` enforces it; the token does not know it (trap R19). `null` means no
   * deadline.
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

  /** Creates metadata without a parent. With a `supervision`, the run id is the supervision's. */
  static standalone(options: StandaloneOptions): RunMeta {
    checkOptions("RunMeta.standalone()", options, standaloneNames);
    const { clock, ids, supervision = null, deadline = null, tenantId = null } = options;
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
    checkOptions("child()", options, childNames);
    const { supervision, deadline = null } = options;
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
