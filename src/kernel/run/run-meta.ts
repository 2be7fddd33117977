import { CancellationError } from "../errors/cancellation-error.ts";
import { CancellationToken } from "../errors/cancellation-token.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import { formatRunId, type RunId } from "../base/identity.ts";
import type { IdSource } from "../base/id-source.ts";
import type { Supervision } from "../limits/supervision.ts";

export interface StandaloneOptions {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly runId?: RunId;
  readonly cancellation?: CancellationToken;
  readonly supervision?: Supervision | null;
  /** Absolute, in epoch milliseconds; `null` or absent is none. */
  readonly deadline?: number | null;
  readonly traceId?: string;
  readonly tenantId?: string | null;
}

export interface ChildMetaOptions {
  readonly supervision?: Supervision;
  /** The earlier of this and the parent's holds. */
  readonly deadline?: number | null;
}

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

/** The badge carried into every call: which run, how to stop, until when, for which tenant. Frozen; derived, not changed. */
export class RunMeta {
  readonly runId: RunId;
  readonly cancellation: CancellationToken;
  /** `null` for a call outside any tree. */
  readonly supervision: Supervision | null;
  /** Epoch milliseconds. The deadline is kept here alone, not in the token (trap R19). */
  readonly deadline: number | null;
  /** One for the whole run. */
  readonly traceId: string;
  readonly tenantId: string | null;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  #spanId: string | undefined;

  private constructor(fields: Fields) {
    if (fields.deadline !== null && !Number.isFinite(fields.deadline)) {
      throw new Fault(
        "invalid_argument",
        `deadline is ${fields.deadline}: it must be epoch milliseconds, or null`,
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

  /** A badge with a stop button of its own. With a supervision, the run is the supervision's. */
  static standalone(options: StandaloneOptions): RunMeta {
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

  /** New for each child. Minted when first asked for. */
  get spanId(): string {
    return (this.#spanId ??= this.#ids.next());
  }

  /** The badge of a call made under this one: same trace, a new span, a token this one's cancel reaches. */
  child({ supervision, deadline = null }: ChildMetaOptions = {}): RunMeta {
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

  /** C2: called before each model call, tool, loop round and retry. Throws `CancellationError`. */
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
