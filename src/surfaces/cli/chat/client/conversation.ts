import {
  addUsd,
  Fault,
  visibleLine,
  rootTaskId,
  type ApprovalDecision,
  type Delta,
  type Event,
  type JsonValue,
  type ThinkingLevel,
} from "../../../../kernel/index.ts";
import type { Result } from "../../../server/route-values.ts";
import { addressOf } from "../../../view/request-address.ts";
import type { QuestionView, RunView } from "../../../view/run-view.ts";
import { ChatModel } from "../model/chat-model.ts";
import { inputText } from "../model/chat-words.ts";
import { RequestError, unlessAbsent, type RouteClient } from "../../../client/route-client.ts";
import { UnsureInputs, type InputPlace } from "./unsure-inputs.ts";

/** An input that no task has read. */
export type QueuedInput = Result<"GET", "/api/runs/{runId}/queued-input">["inputs"][number];
export type ContextUsage = Result<"GET", "/api/sessions/{sessionId}/context-usage">;
type Run = Result<"GET", "/api/runs">["runs"][number];

export interface ConversationOptions {
  readonly client: RouteClient;
  /** The agent of new sessions. */
  readonly agent: string;
  /** Called whenever there is something new to show. */
  readonly onChange: () => void;
  /** Receives the events and deltas of the followed runs as they arrive. Default: none. */
  readonly onItem?: (item: Event | Delta) => void;
  /** Called before the chat shows a session, so that its runs are executed. */
  readonly onOpen: (sessionId: string) => void;
}

/** What a person sets for a conversation. */
export interface SessionSettings {
  readonly name?: string;
  readonly model?: string;
  readonly thinkingLevel?: ThinkingLevel;
}

/** Maximum number of entries of a session that are read. The newest entries are read. */
const mostRead = 400;
/** The most runs that one request returns. */
const mostRuns = 200;
/** Milliseconds after which a surface has certainly drawn a session. */
const drawnMs = 50;

/** Events after which the queue is read again. */
const queueEvents: ReadonlySet<Event["type"]> = new Set<Event["type"]>([
  "run_steer",
  "user_message",
  "input_withdraw",
  "input_unread",
  "run_carry_over",
  "run_end",
]);

/**
 * One conversation with an agent of a server: the content that is shown, and the actions that a person can take. Every
 * surface of `reeve chat` is drawn from this class.
 */
export class Conversation {
  readonly model = new ChatModel();
  readonly #client: RouteClient;
  readonly #options: ConversationOptions;
  #agent: string;
  #sessionId: string | undefined;
  /** The id that the session gets when it is created. If absent, the server chooses one. */
  #plannedId: string | undefined;
  #isCut = false;
  #queue: readonly QueuedInput[] = [];
  #usage: ContextUsage | undefined;
  #pastUsd: number | null = 0;
  /** Cursor after which the runs begin whose cost is not read yet. `undefined` if the costs of all runs are read. */
  #unreadRuns: { readonly after: string } | undefined;
  /** Since when the server has not answered. */
  #lostAt: number | undefined;
  #following: AbortController | undefined;
  #followed: Promise<void> = Promise.resolve();
  readonly #unsure = new UnsureInputs();
  readonly #problems: ((error: unknown) => void)[] = [];
  #waiting: (() => void)[] = [];

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#agent = options.agent;
  }

  get agent(): string {
    return this.#agent;
  }

  /** The session. `undefined` until the first prompt of a new one. */
  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  /** The id of the session, or the one that an extension has chosen for the session that the first prompt creates. */
  get plannedId(): string | undefined {
    return this.#sessionId ?? this.#plannedId;
  }

  /** Whether the session has earlier entries, which were not read. */
  get isCut(): boolean {
    return this.#isCut;
  }

  get queue(): readonly QueuedInput[] {
    return this.#queue;
  }

  /** The part of the model's context window that is filled. `undefined` until it is known. */
  get usage(): ContextUsage | undefined {
    return this.#usage;
  }

  /** The cost of the session's runs, including the current one. `null` if the price of a call is unknown. */
  get costUsd(): number | null {
    const { model } = this;
    const run = model.isWorking ? spentBy(model.view) : 0;
    return sumOf(this.#pastUsd, run);
  }

  /** Whether the cost of older runs is not completely read yet, so that `costUsd` is too low. */
  get isCostPartial(): boolean {
    return this.#unreadRuns !== undefined;
  }

  /** Time since which the server has not answered, in epoch milliseconds. `undefined` while the server answers. */
  get lostAt(): number | undefined {
    return this.#lostAt;
  }

  /** Starts an empty conversation. The session is created with the first prompt. */
  startNew(agent: string = this.#agent): void {
    this.#unsure.clear();
    this.#leave();
    this.#agent = agent;
    this.model.load([]);
    this.#changed();
  }

  /** Shows the session to which an extension has moved. If it does not exist yet, the first prompt creates it. */
  async show(sessionId: string): Promise<void> {
    try {
      await this.open(sessionId);
    } catch (error) {
      if (!(error instanceof RequestError) || error.code !== "not_found") throw error;
      this.startNew();
      this.#plannedId = sessionId;
    }
  }

  /** Shows a session, and follows its unfinished run. */
  async open(sessionId: string): Promise<void> {
    const params = { sessionId };
    const [session, { entries }, { runs, next }] = await Promise.all([
      this.#client.get("/api/sessions/{sessionId}", { params }),
      this.#client.get("/api/sessions/{sessionId}/path", { params, query: { limit: mostRead } }),
      this.#client.get("/api/runs", { query: { sessionId, limit: mostRuns } }),
    ]);
    if (sessionId !== this.#sessionId) this.#unsure.clear();
    this.#leave();
    this.#options.onOpen(sessionId);
    this.#sessionId = sessionId;
    this.#agent = session.agentId;
    this.#pastUsd = costOf(runs);
    this.#unreadRuns = next === null ? undefined : { after: next };
    this.#isCut = entries.length === mostRead && entries[0]?.parentId !== null;
    this.model.load(entries);
    this.#changed();
    await this.#followNext();
    // The use of the window is counted from all entries. The conversation is drawn before that.
    await new Promise((resolve) => setTimeout(resolve, drawnMs));
    await Promise.all([this.#readUsage(), this.#readOlderRuns(sessionId)]);
  }

  /** Adds the costs of the runs that are older than those of the first page. Takes O(runs of the session). */
  async #readOlderRuns(sessionId: string): Promise<void> {
    for (let unread = this.#unreadRuns; unread !== undefined; unread = this.#unreadRuns) {
      const query = { sessionId, limit: mostRuns, after: unread.after };
      const { runs, next } = await this.#client.get("/api/runs", { query });
      // The conversation was left meanwhile.
      if (this.#unreadRuns !== unread) return;
      this.#pastUsd = sumOf(this.#pastUsd, costOf(runs));
      this.#unreadRuns = next === null ? undefined : { after: next };
      this.#changed();
    }
  }

  /** Reads the conversation again after the session was changed, such as by a move. */
  async reopen(): Promise<void> {
    if (this.#sessionId !== undefined) await this.open(this.#sessionId);
  }

  /**
   * Sends an input. The input starts a run, or steers the run that is active. Rejects if the server refuses the input or does
   * not answer; the same input can then be sent again and is still executed only once.
   */
  send(input: JsonValue): Promise<void> {
    return this.#sendTo("steer", input);
  }

  /** Sends an input that the agent reads only when it would otherwise end. If no run is active, the input starts one. */
  followUp(input: JsonValue): Promise<void> {
    return this.#sendTo("follow-up", input);
  }

  /** Sends an input to a queue of the active run. A repeated input takes the place of its unanswered first attempt. */
  #sendTo(queue: InputPlace["queue"], input: JsonValue): Promise<void> {
    const before = this.#unsure.find(input);
    if (before !== undefined) return before === "run" ? this.#start(input) : this.#enqueue(before, input);
    const { runId, isWorking } = this.model;
    return isWorking && runId !== undefined ? this.#enqueue({ queue, runId }, input) : this.#start(input);
  }

  /** Starts a run. If another run has started in the session in the meantime, the input steers that run. */
  async #start(input: JsonValue): Promise<void> {
    const shown = this.model.say(input);
    this.#changed();
    try {
      const body = {
        agent: this.#agent,
        input,
        channel: "terminal",
        ...(this.plannedId !== undefined && { sessionId: this.plannedId }),
      };
      const { run, isSteered } = await this.#unsure.deliver(input, "run", (key) =>
        this.#client.post("/api/runs", { body }, key),
      );
      const { sessionId } = run;
      if (sessionId === undefined)
        throw new Fault("unsupported", `${this.#agent} is no agent with sessions; use reeve run`);
      if (this.#sessionId === undefined) this.#options.onOpen(sessionId);
      this.#sessionId = sessionId;
      if (isSteered) this.model.unsay(shown);
      this.#follow(run, !isSteered);
    } catch (error) {
      this.model.unsay(shown);
      this.#changed();
      const busy = busyRun(error);
      if (busy !== undefined) {
        // The server has executed nothing.
        this.#unsure.forget(input);
        await this.#followNext();
        const { runId, isWorking } = this.model;
        if (isWorking && runId !== undefined) return this.#enqueue({ queue: "steer", runId }, input);
      }
      throw error;
    }
  }

  /** Sets the name, the model or the thinking level of the session. If the session does not exist yet, it is created. */
  async change(settings: SessionSettings): Promise<void> {
    const sessionId = this.#sessionId;
    const isKnown =
      sessionId !== undefined &&
      (await unlessAbsent(
        this.#client.patch("/api/sessions/{sessionId}", { params: { sessionId }, body: settings }),
      )) !== undefined;
    if (!isKnown) {
      const { plannedId } = this;
      const body = {
        agent: this.#agent,
        ...(plannedId !== undefined && { sessionId: plannedId }),
        ...settings,
      };
      const created = await this.#client.post("/api/sessions", { body });
      this.#options.onOpen(created.sessionId);
      this.#sessionId = created.sessionId;
    }
    await this.#readUsage();
  }

  /**
   * Withdraws inputs that no task has read from the queue. Returns the inputs that were withdrawn in time, the oldest first,
   * and the inputs whose withdrawal is stored but not answered yet.
   */
  async takeOut(inputs: readonly QueuedInput[]): Promise<readonly QueuedInput[]> {
    const { runId } = this.model;
    if (runId === undefined || inputs.length === 0) return [];
    const asked = await Promise.allSettled(
      inputs.map(({ inputId }) =>
        this.#client.post("/api/runs/{runId}/withdraw-input", {
          params: { runId },
          body: { inputId, waitMs: 5_000 },
        }),
      ),
    );
    const taken: QueuedInput[] = [];
    for (const [index, each] of inputs.entries()) {
      const answer = asked[index];
      if (answer?.status === "rejected") this.model.note(Fault.from(answer.reason).message, "bad");
      if (answer?.status !== "fulfilled" || answer.value === undefined) continue;
      // The order is stored before the worker answers, and a text must not be lost.
      const isDecided = "isWithdrawn" in answer.value;
      if (!isDecided)
        this.model.note(
          `Not known yet whether the agent has read: ${visibleLine(inputText(each.input))}`,
          "hold",
        );
      if (!isDecided || ("isWithdrawn" in answer.value && answer.value.isWithdrawn)) taken.push(each);
    }
    // The texts are out of the queue, also if it cannot be read.
    await this.#readQueue().catch((error: unknown) => this.#report(error));
    return taken;
  }

  /**
   * Puts an input into the queue before later ones, which keep their order. Later inputs that a task reads during this call
   * stay read. If the server refuses an input or does not answer, `onUnsent` receives the inputs that could not be sent.
   */
  async insert(
    kind: QueuedInput["kind"],
    input: JsonValue,
    later: readonly QueuedInput[],
    onUnsent: (inputs: readonly JsonValue[]) => void,
  ): Promise<void> {
    const unsent = [input];
    try {
      const taken = await this.takeOut(later);
      unsent.push(...taken.map((each) => each.input));
      for (let next = unsent[0]; next !== undefined; next = unsent[0]) {
        await (kind === "steer" ? this.send(next) : this.followUp(next));
        unsent.shift();
      }
    } catch (error) {
      onUnsent(unsent);
      throw error;
    }
  }

  /** Stops the active run. Returns the inputs that waited in its queue. */
  async stop(reason = "stopped at the terminal"): Promise<readonly JsonValue[]> {
    const { runId } = this.model;
    if (runId === undefined || !this.model.isWorking) return [];
    const restored = (await this.takeOut(this.#queue)).map(({ input }) => input);
    try {
      await this.#client.post("/api/runs/{runId}/cancel", { params: { runId }, body: { reason } });
    } catch (error) {
      // The texts are no longer in the queue of the run, so the person gets them in any case.
      this.model.note(Fault.from(error).message, "bad");
    }
    return restored;
  }

  /** Answers a question of the run. */
  async decide({ request: { approvalId } }: QuestionView, decision: ApprovalDecision): Promise<void> {
    const { runId } = this.model;
    if (runId === undefined) return;
    await this.#client.post("/api/runs/{runId}/decide", {
      params: { runId },
      body: { approvalId, ...decision },
    });
  }

  /** Follows the last run again, after a person has continued it although it had ended. */
  async refollow(): Promise<void> {
    const { runId, view } = this.model;
    if (runId === undefined) return;
    await this.#untilContinued(runId, view?.at ?? 0);
    // What the run has cost so far is part of what it costs when it ends again.
    const spent = spentBy(view);
    if (this.#pastUsd !== null && spent !== null) this.#pastUsd -= spent;
    this.#connect(runId, (view?.seq ?? -1) + 1);
  }

  /** Waits until a worker has continued the run. Until then, every reader sees the run as ended. */
  async #untilContinued(runId: string, lastAt: number): Promise<void> {
    for (let tries = 0; tries < 100; tries++) {
      const { endedAt } = await this.#client.get("/api/runs/{runId}", { params: { runId } });
      // It may have ended again already.
      if (endedAt === null || endedAt > lastAt) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Fault(
      "engine_unavailable",
      `${runId} has not continued within 10 s; start a worker that hosts its agent`,
    );
  }

  /** Resolves when all runs of the session have ended, or when the active run waits for a person. */
  async untilIdle(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.model.isWorking && this.model.questions.length > 0) return;
      if (!this.model.isWorking) {
        const followed = this.#followed;
        await followed;
        // The end of a run may have brought the next one.
        if (followed === this.#followed) return;
      } else await this.untilChange(signal);
    }
  }

  /** Resolves when the answer to a question is part of the conversation. */
  async untilAnswered({ request: { approvalId } }: QuestionView, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.model.questions.some(({ request }) => request.approvalId === approvalId))
      await this.untilChange(signal);
  }

  /** Resolves with the next change. */
  untilChange(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#waiting.push(done);
      signal.addEventListener("abort", done, { once: true });
    });
  }

  /** Registers a callback for errors of the event streams, which no other call can report. */
  onProblem(callback: (error: unknown) => void): void {
    this.#problems.push(callback);
  }

  close(): void {
    this.#leave();
  }

  #changed(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
    this.#options.onChange();
  }

  #leave(): void {
    this.#following?.abort();
    this.#following = undefined;
    this.#sessionId = undefined;
    this.#plannedId = undefined;
    this.#isCut = false;
    this.#queue = [];
    this.#usage = undefined;
    this.#pastUsd = 0;
    this.#unreadRuns = undefined;
  }

  /** Sends an input to a queue of a run. If the run has ended without reading the input, the input starts the next run. */
  async #enqueue(place: InputPlace, input: JsonValue): Promise<void> {
    const { queue, runId } = place;
    const params = { runId };
    const path = queue === "steer" ? "/api/runs/{runId}/steer" : "/api/runs/{runId}/follow-up";
    let isKept = false;
    try {
      isKept = await this.#unsure.deliver(input, place, async (key) => {
        const { inputId, endedAt } = await this.#client.post(path, { params, body: { input } }, key);
        // What an ended run has not read, it passes on to a run of its own, or keeps until a person continues it.
        return endedAt !== null && this.#takeFromEnded(runId, inputId);
      });
    } catch (error) {
      // The run does not exist any more.
      if (!(error instanceof RequestError) || error.code !== "not_found") throw error;
      this.#unsure.forget(input);
      isKept = true;
    }
    if (isKept) return this.#start(input);
    // The input is sent, also if nothing more can be read.
    const shown = this.model.isWorking ? this.#readQueue() : this.#followNext();
    await shown.catch((error: unknown) => this.#report(error));
  }

  /** Takes an input out of the queue of an ended run. Returns `true` if the run had not read the input. */
  async #takeFromEnded(runId: string, inputId: string): Promise<boolean> {
    const answer = await this.#client.post("/api/runs/{runId}/withdraw-input", {
      params: { runId },
      body: { inputId, waitMs: 5_000 },
    });
    if ("isWithdrawn" in answer) return answer.isWithdrawn;
    throw new Fault(
      "engine_unavailable",
      `it is not known yet whether ${runId} has read the text; start a worker that hosts its agent, and send the text again`,
    );
  }

  /** Follows the oldest unfinished run of the session, if there is one. */
  async #followNext(): Promise<void> {
    const sessionId = this.#sessionId;
    if (sessionId === undefined) return;
    const status = ["pending", "running", "waiting", "paused"] as const;
    const { runs } = await this.#client.get("/api/runs", {
      query: { sessionId, status: [...status], limit: 50 },
    });
    const next = runs.findLast(({ kind }) => kind === "invocation" || kind === "compaction");
    if (next !== undefined && this.#sessionId === sessionId) this.#follow(next, false);
  }

  #follow(run: Run, isInputShown: boolean): void {
    const { runId, kind } = run;
    this.model.follow(runId, { isInputShown, isQuiet: kind === "compaction" });
    this.#connect(runId, 0);
    this.#changed();
  }

  /** Reads the events of a run, beginning with a sequence number, until the run has ended. */
  #connect(runId: string, from: number): void {
    this.#following?.abort();
    const following = new AbortController();
    this.#following = following;
    this.#followed = this.#read(runId, from, following.signal)
      .then(() => (following.signal.aborted ? undefined : this.#ended()))
      .catch((error: unknown) => this.#report(error));
  }

  async #read(runId: string, from: number, signal: AbortSignal): Promise<void> {
    let next = from;
    const messages = this.#client.messages({
      path: () => addressOf("/api/runs/{runId}/stream", { runId }, { from: next }),
      signal,
      onOpen: () => {
        this.#lostAt = undefined;
        this.#changed();
      },
      onLost: () => {
        this.#lostAt ??= Date.now();
        this.#changed();
      },
    });
    for await (const { name, data } of messages) {
      if (name === "end") return;
      const item = data as Event | Delta;
      this.model.add(item);
      this.#options.onItem?.(item);
      if ("seq" in item) {
        next = item.seq + 1;
        if (queueEvents.has(item.type)) this.#readQueue().catch((error: unknown) => this.#report(error));
      }
      this.#changed();
    }
  }

  async #ended(): Promise<void> {
    this.#pastUsd = sumOf(this.#pastUsd, spentBy(this.model.view));
    this.#queue = [];
    this.#changed();
    await Promise.all([this.#followNext(), this.#readUsage()]);
    this.#changed();
  }

  async #readQueue(): Promise<void> {
    const { runId, isWorking } = this.model;
    if (runId === undefined || !isWorking) {
      this.#queue = [];
      return this.#changed();
    }
    const { inputs } = await this.#client.get("/api/runs/{runId}/queued-input", { params: { runId } });
    if (this.model.runId !== runId) return;
    this.#queue = inputs;
    this.#changed();
  }

  async #readUsage(): Promise<void> {
    const sessionId = this.#sessionId;
    if (sessionId === undefined) return;
    // A run that failed before its first turn has left no session.
    const usage = await unlessAbsent(
      this.#client.get("/api/sessions/{sessionId}/context-usage", { params: { sessionId } }),
    );
    if (this.#sessionId === sessionId) this.#usage = usage;
    this.#changed();
  }

  #report(error: unknown): void {
    for (const callback of this.#problems) callback(error);
  }
}

/** Returns the cost of the runs of a list that have ended. `null` if the cost of one of these runs is unknown. */
function costOf(runs: readonly Run[]): number | null {
  return runs.reduce<number | null>(
    (sum, { endedAt, costUsd }) => (endedAt === null ? sum : sumOf(sum, costUsd)),
    0,
  );
}

/** Returns the sum of two costs, or `null` if one of the two is unknown. */
function sumOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : addUsd(one, other);
}

/** What all tasks of a run have spent. */
function spentBy(view: RunView | undefined): number | null {
  const root = view?.tasks.get(rootTaskId);
  return root === undefined ? 0 : root.total.costUsd;
}

/** Returns the id of the run that makes a session busy, if the error says that a request was refused for this reason. */
function busyRun(error: unknown): string | undefined {
  if (!(error instanceof RequestError) || error.code !== "agent_busy") return undefined;
  const { runId } = error.details;
  return typeof runId === "string" ? runId : undefined;
}
