import {
  type Engine,
  type EnginePort,
  Fault,
  type Lease,
  type RunHost,
  type RunId,
  type StoreChange,
} from "../../../kernel/index.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Ingress } from "./ingress.ts";
import type { Slice, SliceDriver, SliceResult, Wake } from "./run-object.ts";

/** Error text for a slice whose attempt Restate has ended. */
const givenUp = "Restate no longer waits for this slice";

/**
 * Limits how many slices of a worker work at the same time. A slice whose run only waits takes no slot. A slice
 * that finds no free slot waits, in the order of arrival; it has not claimed its run yet, so that it holds no lease
 * in this time.
 */
class SliceSlots {
  /** Number of free slots. It is below 0 if runs that only waited have continued while all slots were taken. */
  #free: number;
  /** The waiting slices, the oldest first. */
  readonly #waiting = new Set<PromiseWithResolvers<void>>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves when the slice may begin. Rejects with `closed` if `signal` aborts or the worker closes first. */
  async take(signal: AbortSignal): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    const turn = Promise.withResolvers<void>();
    const leave = (): void => this.#refuse(turn, givenUp);
    this.#waiting.add(turn);
    signal.addEventListener("abort", leave);
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /** Frees a slot, because a slice has ended or its run only waits. */
  give(): void {
    const [next] = this.#waiting;
    if (this.#free < 0 || next === undefined) this.#free++;
    else if (this.#waiting.delete(next)) next.resolve();
  }

  /**
   * Takes a slot for a run that only waited and now continues. The run does not wait for a free slot, because its
   * slice holds the lease.
   */
  takeBack(): void {
    this.#free--;
  }

  /** Rejects the waiting slices, so that Restate lets other workers execute their runs. */
  close(): void {
    for (const turn of this.#waiting)
      this.#refuse(turn, "this worker is closing; another one executes the run");
  }

  #refuse(turn: PromiseWithResolvers<void>, reason: string): void {
    if (this.#waiting.delete(turn)) turn.reject(new Fault("closed", reason));
  }
}

/**
 * Decides when a slice starts no further call: when its time is over, but not before its run has recorded a step or
 * only waits. Without this condition, a run whose journal takes longer to load than a slice lasts would be loaded
 * again and again without progress.
 */
class SliceEnd {
  readonly #controller = new AbortController();
  #isDue = false;
  #hasStep = false;
  #isIdle = false;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The time of the slice is over. */
  readonly noteDue = (): void => {
    this.#isDue = true;
    this.#decide();
  };

  /** The run has recorded a step. */
  readonly noteStep = (): void => {
    this.#hasStep = true;
    this.#decide();
  };

  /** The run only waits, or it continues. */
  noteIdle(isIdle: boolean): void {
    this.#isIdle = isIdle;
    this.#decide();
  }

  /** Ends the slice in any case. */
  readonly now = (): void => this.#controller.abort();

  #decide(): void {
    if (this.#isDue && (this.#hasStep || this.#isIdle)) this.now();
  }
}

/**
 * Delay before lost wake-ups are sent again, after a wake-up that Restate did not accept or a write of another
 * process. Milliseconds.
 */
const retryMs = 1_000;

/** Maximum number of runs whose wake-ups are sent again at once. */
const mostSwept = 256;

/**
 * Maximum number of wake-ups that are kept in memory while Restate cannot be reached. Further ones are found in the
 * store later.
 */
const mostUnsent = 10_000;

/** A run that this process executes. */
interface OpenSlice {
  readonly result: Promise<SliceResult>;
  /** Whether the run has received mail or become ready since the slice began. */
  isReady: boolean;
}

export interface RestateEngineOptions {
  readonly ingress: Ingress;
  /** Serves the objects of runs. `undefined` in a process that only submits runs. */
  readonly endpoint: Endpoint | undefined;
  readonly sliceMs: number;
  readonly sweepMs: number;
  /** Whether `start` rejects if the ingress cannot be reached. */
  readonly isIngressRequired: boolean;
}

/**
 * Lets Restate decide which worker executes a run and when. An invocation of the object of a run is a slice: it
 * claims the run, executes it for `sliceMs`, and tells Restate when to continue. The lease in the store ensures
 * that only one worker writes.
 */
export class RestateEngine implements Engine, SliceDriver {
  readonly kind = "restate";
  readonly #port: EnginePort;
  readonly #options: RestateEngineOptions;
  /** The slices that execute a run or wait for a slot. */
  readonly #slices = new Map<RunId, OpenSlice>();
  readonly #slots: SliceSlots;
  #host: RunHost | undefined;
  /** Whether the last wake-up could not be sent. */
  #isCutOff = false;
  /**
   * Wake-ups for changes of this process that Restate did not accept. They are kept here because this process may
   * host no agent, and would then not find them in the store.
   */
  readonly #unsent = new Map<RunId, Wake>();
  /** Why the last claim failed. */
  #refusal: string | undefined;
  #sweeping: Promise<void> | undefined;
  #cancelSweep: (() => void) | undefined;
  #nextSweepAt = Infinity;
  /** The last run whose lost wake-up was sent, if there are more such runs. */
  #lastSwept: RunId | undefined;

  constructor(port: EnginePort, options: RestateEngineOptions) {
    this.#port = port;
    this.#options = options;
    this.#slots = new SliceSlots(port.concurrency);
  }

  async start(host: RunHost): Promise<void> {
    const { leases, workerId, onError } = this.#port;
    if (this.#options.isIngressRequired) await this.#options.ingress.check();
    await leases.enlist(workerId, { onLost: onError });
    this.#host = host;
    await this.#options.endpoint?.open(this);
    this.#sweepAfter(0);
  }

  wake(change: StoreChange): void {
    if (change.kind === "new") this.#wakeRun(change, { at: change.startAt });
    else if (change.kind === "mail") this.#wakeRun(change, { at: null });
    else if (change.kind === "released" && change.isReady) this.#noteReady(change.runId);
    else if (change.kind === "worker") this.#sweepAfter(0);
    // Another process wrote and did not say what. It may have no engine that sends wake-ups, like `reeve cancel`.
    else if (change.kind === "other" && change.owned === undefined) this.#sweepAfter(retryMs);
  }

  agentsChanged(): void {
    this.#sweepAfter(0);
  }

  async stop(): Promise<void> {
    this.#host = undefined;
    this.#cancelSweep?.();
    this.#options.endpoint?.stopAccepting();
    this.#slots.close();
    await this.#sweeping;
    await Promise.allSettled([...this.#slices.values()].map(({ result }) => result));
    await this.#options.endpoint?.close();
    await this.#port.leases.dismiss(this.#port.workerId);
  }

  /**
   * Executes a run for a slice. If Restate repeats an attempt while this process still executes the run, the
   * attempt waits for the same slice. Rejects if another process should try.
   */
  async slice(slice: Slice): Promise<SliceResult> {
    const { runId } = slice;
    const open = this.#slices.get(runId) ?? this.#begin(slice);
    try {
      const result = await open.result;
      return open.isReady ? { ...result, isReady: true } : result;
    } finally {
      if (this.#slices.get(runId) === open) this.#slices.delete(runId);
    }
  }

  #begin(slice: Slice): OpenSlice {
    const host = this.#host;
    if (host === undefined) throw new Fault("closed", "this worker is closing; another one executes the run");
    // It would claim nothing, and the wake-up would be lost.
    if (this.#port.agents().length === 0)
      throw new Fault("closed", "this worker hosts no agent yet; Restate repeats the slice");
    const open: OpenSlice = { result: this.#runInSlot(host, slice), isReady: false };
    this.#slices.set(slice.runId, open);
    return open;
  }

  async #runInSlot(host: RunHost, slice: Slice): Promise<SliceResult> {
    await this.#slots.take(slice.signal);
    try {
      return await this.#claimAndDrive(host, slice);
    } finally {
      this.#slots.give();
    }
  }

  async #claimAndDrive(host: RunHost, { runId, wake, isRepeated, signal }: Slice): Promise<SliceResult> {
    const { leases, clock } = this.#port;
    if (signal.aborted) throw new Fault("closed", givenUp);
    const now = clock.now();
    const lease = await this.#claim(runId, { isRepeated, now });
    if (lease === undefined) return this.#notOwned(wake, now);
    if (signal.aborted) {
      await this.#giveBack(lease);
      throw new Fault("closed", givenUp);
    }
    const end = new SliceEnd();
    const cancelTimer = clock.schedule(clock.now() + this.#options.sliceMs, end.noteDue);
    signal.addEventListener("abort", end.now);
    const onIdle = (isIdle: boolean): void => {
      if (isIdle) this.#slots.give();
      else this.#slots.takeBack();
      end.noteIdle(isIdle);
    };
    try {
      const { rest, isReleased } = await host.drive(lease, {
        signal: end.signal,
        onIdle,
        onStep: end.noteStep,
      });
      // Unread mail would make the run ready at once.
      if (rest.kind === "unloaded") await this.#pause();
      if (!isReleased) await leases.release(lease, rest);
      const wakeAt = "wakeAt" in rest ? rest.wakeAt : null;
      // L18: the next slice checks the limits of a queued run.
      const isReady = rest.kind === "ready" || rest.kind === "queued";
      return { isOwned: true, isReady, wake: this.#wakeTime(wakeAt) };
    } catch (error) {
      await this.#handBack(lease, Fault.from(error));
      throw error;
    } finally {
      cancelTimer();
      signal.removeEventListener("abort", end.now);
    }
  }

  /**
   * Claims the run. If a live worker owns it, the claim rejects, and Restate repeats the slice until that worker
   * has released the run or its lease has ended (L15). It does not take the run away, because a slice without a
   * signature may be forged, and a worker that Restate has lost still finishes its calls. If an earlier attempt
   * suspended the run and its result was lost, the run is claimed although it is not due, so that Restate learns
   * when it wakes up.
   */
  async #claim(
    runId: RunId,
    { isRepeated, now }: { readonly isRepeated: boolean; readonly now: number },
  ): Promise<Lease | undefined> {
    const { leases, workerId, agents } = this.#port;
    const claim = { workerId, limit: 1, now, agents: agents(), only: [runId] };
    try {
      const takeOver = { suspended: isRepeated, ended: this.#options.endpoint?.isSigned === true };
      const [lease] = await leases.claim({ ...claim, takeOver });
      this.#refusal = undefined;
      return lease;
    } catch (error) {
      // Restate repeats the slice up to once per second, mostly for the same reason.
      const { code, message } = Fault.from(error);
      if (code === "run_owned") throw error;
      if (message !== this.#refusal) this.#port.onError(error);
      this.#refusal = message;
      throw error;
    }
  }

  /**
   * Returns the result of a slice that could not claim its run. The clock of this worker may be behind the one that
   * scheduled the wake-up; the wake-up then came too early.
   */
  #notOwned({ at }: Wake, now: number): SliceResult {
    const wake = at !== null && at > now ? this.#wakeTime(at) : null;
    return { isOwned: false, isReady: false, wake };
  }

  #wakeTime(at: number | null): SliceResult["wake"] {
    return at === null ? null : { at, delayMs: Math.max(0, at - this.#port.clock.now()) };
  }

  /** Releases a run that could not be executed. Restate repeats the attempt after a delay. */
  async #handBack(lease: Lease, fault: Fault): Promise<void> {
    if (fault.code !== "version_mismatch") this.#port.onError(fault);
    if (fault.code !== "lease_lost") await this.#giveBack(lease);
  }

  #pause(): Promise<void> {
    const { clock } = this.#port;
    return new Promise((resolve) => {
      clock.schedule(clock.now() + retryMs, resolve);
    });
  }

  /**
   * Releases a run as ready. It tries again while the store cannot be reached, because the lease would block other
   * workers.
   */
  async #giveBack(lease: Lease): Promise<void> {
    const { leases, onError } = this.#port;
    for (;;) {
      try {
        await leases.release(lease, { kind: "ready" });
        return;
      } catch (error) {
        if (Fault.from(error).code === "lease_lost" || this.#host === undefined) return;
        onError(error);
        await this.#pause();
      }
    }
  }

  /**
   * Wakes a run after a change, of which every worker is notified. The engine of the process that made the change
   * sends the wake-up. If a slice is open there, it sends none, because the end of the slice tells Restate. If that
   * process has no engine, like `reeve cancel`, all workers send the same wake-up. A wake-up for a later time is
   * always sent: a slice whose run must wait for its rate limit (L17) ends without having owned the run, so that
   * its end tells Restate no time.
   */
  #wakeRun({ runId, writer }: Extract<StoreChange, { kind: "new" | "mail" }>, wake: Wake): void {
    const isLater = wake.at !== null && wake.at > this.#port.clock.now();
    if (writer === "worker" || (!isLater && this.#noteReady(runId))) return;
    void this.#send(runId, wake, { isOnlySender: writer === undefined });
  }

  async #send(runId: RunId, wake: Wake, { isOnlySender }: { readonly isOnlySender: boolean }): Promise<void> {
    const { ingress } = this.#options;
    const sending = isOnlySender ? ingress.send(runId, wake) : ingress.sendAgain(runId, wake);
    if (await this.#isAccepted(sending)) return;
    const [oldest] = this.#unsent.keys();
    if (this.#unsent.size >= mostUnsent && oldest !== undefined) this.#unsent.delete(oldest);
    this.#unsent.set(runId, wake);
  }

  /**
   * Records that a run is ready, so that an open slice of this process tells Restate. Returns whether such a slice
   * is open. Other workers do nothing: only slices release runs, and every worker is notified of each release, so
   * that each slice would cause several wake-ups.
   */
  #noteReady(runId: RunId): boolean {
    const open = this.#slices.get(runId);
    if (open !== undefined) open.isReady = true;
    return open !== undefined;
  }

  /** Returns whether Restate has stored the wake-up. If not, it is sent again later. */
  async #isAccepted(sending: Promise<void>): Promise<boolean> {
    try {
      await sending;
      this.#isCutOff = false;
      return true;
    } catch (error) {
      if (!this.#isCutOff) this.#port.onError(error);
      this.#isCutOff = true;
      this.#sweepAfter(retryMs);
      return false;
    }
  }

  /** Looks for lost wake-ups after a delay, unless this is already scheduled. */
  #sweepAfter(delayMs: number): void {
    const { clock } = this.#port;
    const at = clock.now() + delayMs;
    if (this.#host === undefined || at >= this.#nextSweepAt) return;
    this.#cancelSweep?.();
    this.#nextSweepAt = at;
    this.#cancelSweep = clock.schedule(at, () => this.#sweep(), { background: true });
  }

  #sweep(): void {
    this.#nextSweepAt = Infinity;
    this.#sweepAfter(this.#options.sweepMs);
    this.#sweeping ??= this.#sendLost()
      .catch((error: unknown) => {
        this.#port.onError(error);
        this.#sweepAfter(retryMs);
      })
      .finally(() => (this.#sweeping = undefined));
  }

  /**
   * Sends wake-ups again: those that Restate did not accept, and those of runs that are ready, because they were
   * lost between a commit and its wake-up or a dead worker has left the run. Each call continues after the last run
   * of the previous call, so that runs which stay ready do not delay others.
   */
  async #sendLost(): Promise<void> {
    const { leases, clock, agents } = this.#port;
    const { ingress } = this.#options;
    for (const [runId, wake] of this.#unsent) {
      if (!(await this.#isAccepted(ingress.sendAgain(runId, wake)))) return;
      if (this.#unsent.get(runId) === wake) this.#unsent.delete(runId);
    }
    const after = this.#lastSwept;
    const options = { now: clock.now(), limit: mostSwept, agents: agents() };
    const runs = await leases.findReady(after === undefined ? options : { ...options, after });
    for (const runId of runs)
      if (!this.#slices.has(runId) && !(await this.#isAccepted(ingress.sendAgain(runId, { at: null }))))
        return;
    // Only now: after a failure, the next sweep begins with the same runs.
    this.#lastSwept = runs.length < mostSwept ? undefined : runs.at(-1);
    if (this.#lastSwept !== undefined) this.#sweepAfter(retryMs);
  }
}
