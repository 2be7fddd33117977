import {
  Fault,
  type Clock,
  type RunId,
  type RunRecord,
  type RunSummary,
  type Store,
} from "../../kernel/index.ts";

/** The facts about the agents of this process that say which runs it can execute. */
interface DrivableRuns {
  canDrive(run: RunRecord): boolean;
}

export interface UnhostedRunsOptions {
  readonly store: Pick<Store, "journal" | "mailbox">;
  readonly clock: Clock;
  readonly agents: DrivableRuns;
  /** L21: name of this machine. */
  readonly host: string;
  readonly onError: (error: unknown) => void;
  /** Ends a cancelled run that no worker has adopted. */
  readonly endUnadopted: (run: RunRecord) => Promise<void>;
  /** L21: ends a cancelled run that is bound to another machine, if no worker of that machine ends it. */
  readonly endBound: (run: RunRecord) => Promise<void>;
  /** Advice about a run without a worker, for the error. Default: the advice for a runtime. */
  readonly advice?: string;
}

const registerHere = "call runtime.register() with the agent, or start a process that hosts it";

/**
 * Interval at which an awaited run is checked, in milliseconds. A worker of another process usually claims a run
 * much faster.
 */
const checkEveryMs = 5_000;

interface Watch {
  readonly run: RunRecord;
  /** Number of callers that wait for the run. */
  callers: number;
  cancelTimer: () => void;
}

/**
 * The runs for which callers of this process wait and that it cannot execute, because their agent is not registered
 * here or because they are bound to another machine (L21). The wait is normal while another process executes the
 * run, or while the run itself waits for a person or a time. If the run needs a worker and has none, a fault is
 * reported once per watch, because the caller would otherwise wait without knowing why. The caller continues to
 * wait, because a worker may start at any time.
 */
export class UnhostedRuns {
  readonly #options: UnhostedRunsOptions;
  readonly #watches = new Map<RunId, Watch>();

  constructor(options: UnhostedRunsOptions) {
    this.#options = options;
  }

  watch(run: RunRecord): (() => void) | undefined {
    if (this.#canDrive(run)) return undefined;
    const watch = this.#watches.get(run.runId) ?? this.#start(run);
    watch.callers++;
    let isOpen = true;
    return () => {
      if (isOpen && --watch.callers === 0) this.#end(watch);
      isOpen = false;
    };
  }

  /**
   * L18, L21: called when a caller of this process has cancelled the run. The cancel is already stored, so that an
   * error here is only reported.
   */
  async cancelled(run: RunRecord): Promise<void> {
    const { agents, endUnadopted, endBound, onError } = this.#options;
    try {
      if (!agents.canDrive(run)) await endUnadopted(run);
      await endBound(run);
    } catch (error) {
      onError(error);
    }
  }

  #canDrive(run: RunRecord): boolean {
    const { agents, host } = this.#options;
    return agents.canDrive(run) && (run.host ?? host) === host;
  }

  #start(run: RunRecord): Watch {
    const watch: Watch = { run, callers: 0, cancelTimer: () => undefined };
    this.#watches.set(run.runId, watch);
    this.#checkLater(watch);
    return watch;
  }

  #end({ run, cancelTimer }: Watch): void {
    cancelTimer();
    this.#watches.delete(run.runId);
  }

  #checkLater(watch: Watch): void {
    const { clock, onError } = this.#options;
    const check = (): void => {
      this.#check(watch).catch(onError);
    };
    watch.cancelTimer = clock.schedule(clock.now() + checkEveryMs, check, { background: true });
  }

  async #check(watch: Watch): Promise<void> {
    const { advice, onError, store } = this.#options;
    const { run } = watch;
    const summary = await store.journal.summary(run.runId);
    if (summary === undefined || watch.callers === 0 || this.#canDrive(run)) return;
    if (summary.waitsFor.includes("host")) onError(noMachine(summary));
    else if (await this.#needsWorker(summary)) onError(noWorker(run, advice ?? registerHere));
    else this.#checkLater(watch);
  }

  /** Whether the run would continue if a worker claimed it. This includes an ended run that a command may resume. */
  async #needsWorker({ runId, endedAt, status }: RunSummary): Promise<boolean> {
    const { mailbox } = this.#options.store;
    return endedAt === null ? status === "pending" : (await mailbox.read(runId)).length > 0;
  }
}

function noMachine({ runId, host }: RunSummary): Fault {
  return new Fault(
    "not_found",
    `run ${runId} waits for the machine ${host}: it has left files there, and no worker of that machine executes it; start a process there that hosts its agent, or cancel the run`,
    { details: { runId, host: host ?? null } },
  );
}

function noWorker({ runId, agentId, agentVersion }: RunRecord, advice: string): Fault {
  const agent = agentVersion === null ? `agent ${agentId}` : `agent ${agentId} (version ${agentVersion})`;
  return new Fault(
    "not_found",
    `run ${runId} waits for a worker: ${agent} is not registered in this process, and no other process executes the run; ${advice}`,
    { details: { runId, agentId, agentVersion } },
  );
}
