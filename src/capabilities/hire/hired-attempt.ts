import type {
  ContentBlock,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import {
  BudgetExhaustedError,
  Fault,
  type AttemptContext,
  type Clock,
  type ForeignVerdict,
  type RunId,
} from "../../kernel/index.ts";
import type { Gateway, GatewayAccess } from "../gateway/gateway.ts";
import { AgentConnection, type AcpSdk, type AgentFacts } from "./agent-connection.ts";
import type { AgentLaunch } from "./agent-launch.ts";
import { AgentProcess } from "./agent-process.ts";
import { AgentReport } from "./agent-report.ts";
import { foreignCall } from "./call-view.ts";
import { HireRecords, inputText, SessionHistory, type Exchange, type HireRecord } from "./hire-records.ts";
import type { Preset } from "./presets.ts";
import { endAllOf, endOrphan, endProcessesOf, startedProcess } from "./orphans.ts";

/** What one hired task works on. */
export interface HiredTask {
  /** Id of the run, for the refusals of the gateway. */
  readonly runId: RunId;
  /** Real path of the folder in which the agent works. */
  readonly folder: string;
  /** Mark of the attempt: a value by which its processes are found. */
  readonly mark: string;
  /** The text of the prompt, by which the prompt is found in the history of the agent. */
  readonly prompt: string;
  /** The prompt as the agent receives it. */
  readonly blocks: (facts: AgentFacts) => readonly ContentBlock[];
  /** Text that is sent before the first prompt of a new session, such as the instructions. May be empty. */
  readonly opening: string;
  /** The session of an earlier run of the same conversation. `undefined` if there is none. */
  readonly earlierSession: string | undefined;
  /** The conversation before this task as a text, for an agent that cannot load its session. May be empty. */
  readonly earlierTalk: string;
  /** Prepares the process, after the gateway has given it access. */
  readonly launch: (access: GatewayAccess) => Promise<AgentLaunch>;
  /** What the task has cost so far according to the ledger. */
  readonly costUsd: () => number;
}

/** The values that are the same for all attempts of a hired task. */
export interface HiredPlan {
  readonly name: string;
  readonly gateway: Gateway;
  readonly preset?: Preset;
  readonly sdk: AcpSdk;
  readonly clock: Clock;
  readonly startTimeoutMs: number;
}

/** The value of an attempt: the conversation, and how its last turn ended. JSON. */
export interface HiredResult {
  readonly sessionId: string;
  readonly exchanges: readonly { readonly prompt: string; readonly answer: string }[];
  readonly stopReason: StopReason;
}

/** Milliseconds that an agent has to end its turn when it is cancelled. */
const cancelMs = 5_000;
/**
 * Share of the time since the cancel that an agent has between SIGTERM and SIGKILL, if the runtime no longer waits
 * for its call.
 */
const dropShare = 0.8;
/**
 * Time in which the agent may end its turn by itself after the gateway refused a request because of a budget or
 * cap. Milliseconds.
 */
const refusedMs = 10_000;
/**
 * H2: maximum time that a request of the agent, or its question about a call, waits until its task has a seat.
 * Milliseconds.
 */
const seatWaitMs = 60_000;
/** Maximum number of questions of an agent that are open at a time. Further questions are refused. */
const mostQuestions = 100;
/** Share of the ledger's cost by which the cost that an agent reports may differ without a note. */
const costTolerance = 0.05;

/** The prompt for an agent whose process was interrupted in the middle of a turn. */
const continueText =
  "Your process was interrupted, and this is a new one with the same session. Continue where you stopped. Do not repeat what you have done. A call that was interrupted was not refused: make it again if you still need it.";

type Refusal = Extract<ForeignVerdict, { readonly decision: "refused" }>;

/** One process of a hired agent, from its start to its end. */
export class HiredAttempt {
  readonly #plan: HiredPlan;
  readonly #task: HiredTask;
  readonly #attempt: AttemptContext;
  readonly #records: HireRecords;
  readonly #report: AgentReport;
  /** The history that the agent reports while it loads its session. */
  #history: SessionHistory | undefined;
  #access: GatewayAccess | undefined;
  #launch: AgentLaunch | undefined;
  #process: AgentProcess | undefined;
  #connection: AgentConnection | undefined;
  #sessionId: string | undefined;
  #isOpenedHere = false;
  /** The turn that is in progress. */
  #turn: Promise<unknown> | undefined;
  /** Why the attempt has to end. */
  #reason: unknown;
  readonly #stopped = Promise.withResolvers<void>();
  #isDropped = false;
  /** Time at which the attempt began to stop the agent. */
  #stoppedAt: number | undefined;
  #cancelRefusal: (() => void) | undefined;
  /** Number of questions that are open. */
  #questions = 0;
  /** Resolves when steering waits. It is kept between two turns, so that no steering is missed. */
  #steered: Promise<void> | undefined;
  /** The cost of the session according to the agent. */
  #reportedUsd: number | undefined;

  constructor(plan: HiredPlan, task: HiredTask, attempt: AttemptContext) {
    this.#plan = plan;
    this.#task = task;
    this.#attempt = attempt;
    this.#records = new HireRecords(attempt.earlier);
    this.#report = new AgentReport(attempt, task.folder, plan.clock);
  }

  /** The answer of the agent in its last turn so far. */
  get answer(): string {
    return this.#report.answer;
  }

  /**
   * Ends the agent at once because this process drops the task. The agent's session is not changed. An agent that
   * is already being stopped gets SIGTERM first, because the runtime waits for its resources as long as it waited
   * for the call. Resolves when its processes have ended.
   */
  async drop(): Promise<void> {
    this.#isDropped = true;
    const process = this.#process;
    if (process === undefined) return;
    const { clock } = this.#plan;
    const now = clock.now();
    const graceMs = this.#stoppedAt === undefined ? 0 : (now - this.#stoppedAt) * dropShare;
    if (graceMs <= 0) process.kill();
    else void process.end(0);
    const cancel = clock.schedule(now + graceMs, () => process.kill());
    await process.ended;
    cancel();
    await endAllOf(this.#task.mark);
  }

  async run(): Promise<HiredResult> {
    const { signal } = this.#attempt;
    const { gateway } = this.#plan;
    for (const each of this.#records.processes) await endOrphan(each);
    endProcessesOf(this.#records.marks);
    const access = (this.#access = gateway.admit(this.#attempt, {
      runId: this.#task.runId,
      ...(this.#plan.preset && { wire: this.#plan.preset.wire }),
      seatWaitMs,
      onRefusal: (fault) => this.#refused(fault),
    }));
    const onAbort = (): void => void setImmediate(() => this.#isDropped || this.#stop(signal.reason));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      signal.throwIfAborted();
      const facts = await this.#open(access);
      const result = await this.#talk(facts);
      await this.#process?.end();
      this.#connection?.close();
      if (access.refusal !== undefined) throw access.refusal;
      return result;
    } catch (error) {
      // The agent may report another reason, or success: the gateway and the runtime know better.
      throw this.#reason ?? access.refusal ?? error;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#cancelRefusal?.();
      access.close();
      await this.#process?.end(0);
      this.#noteOtherLines();
      endProcessesOf([this.#task.mark]);
      await this.#endLaunch();
    }
  }

  async #open(access: GatewayAccess): Promise<AgentFacts> {
    const { name, sdk, clock, startTimeoutMs, preset: { login } = {} } = this.#plan;
    await this.#keep({ type: "mark", mark: this.#task.mark });
    const { start } = (this.#launch = await this.#task.launch(access));
    const process = (this.#process = new AgentProcess({ ...start, clock, secrets: [access.token] }));
    if (this.#isDropped) process.kill();
    const started = process.pid === undefined ? undefined : await startedProcess(process.pid);
    if (started !== undefined) await this.#keep({ type: "process", ...started });
    const handlers = {
      onUpdate: (update: SessionUpdate) => this.#onUpdate(update),
      onPermission: (request: RequestPermissionRequest) => this.#onPermission(request),
    };
    this.#connection = new AgentConnection(sdk, process, handlers, {
      name,
      clock,
      startTimeoutMs,
      ...(login !== undefined && { login }),
    });
    const facts = await this.#connection.initialize();
    await this.#openSession(facts, this.#connection);
    return facts;
  }

  /** Opens the session: that of an earlier attempt, that of an earlier run of the conversation, or a new session. */
  async #openSession({ name, version, loads }: AgentFacts, connection: AgentConnection): Promise<void> {
    const { folder, earlierSession } = this.#task;
    const { sessionId: own, exchanges } = this.#records;
    const agent = { agent: name, version };
    if (own !== undefined && (exchanges.length > 0 || loads)) {
      if (!loads) throw this.#cannotResume(`${name} ${version} cannot load a session`);
      this.#history = new SessionHistory();
      try {
        await connection.loadSession(own, folder);
      } catch (error) {
        if (!Fault.is(error) || error.code !== "child_failed") throw error;
        if (exchanges.length > 0) throw this.#cannotResume(error.message, error);
        return this.#newSession(connection, agent);
      }
      this.#sessionId = own;
      this.#report.event("session_loaded", { ...agent, sessionId: own });
      return;
    }
    if (earlierSession !== undefined && loads) {
      this.#history = new SessionHistory();
      try {
        await connection.loadSession(earlierSession, folder);
      } catch (error) {
        if (!Fault.is(error) || error.code !== "child_failed") throw error;
        return this.#newSession(connection, agent);
      }
      this.#history = undefined;
      this.#sessionId = earlierSession;
      await this.#keep({ type: "session", sessionId: earlierSession });
      this.#report.event("session_loaded", { ...agent, sessionId: earlierSession });
      return;
    }
    await this.#newSession(connection, agent);
  }

  async #newSession(
    connection: AgentConnection,
    agent: { readonly agent: string; readonly version: string },
  ): Promise<void> {
    const sessionId = await connection.newSession(this.#task.folder);
    this.#history = undefined;
    this.#sessionId = sessionId;
    this.#isOpenedHere = true;
    await this.#keep({ type: "session", sessionId });
    this.#report.event("session_opened", { ...agent, sessionId });
  }

  #cannotResume(why: string, cause?: Fault): Fault {
    const { name } = this.#plan;
    const message = `the conversation of ${name} cannot be continued: ${why}. Its prompt is not sent again, because its work would be repeated; the log of the run and the folder ${this.#task.folder} keep what it has done`;
    return new Fault("cannot_resume", message, { ...(cause !== undefined && { cause }) });
  }

  /** Sends the prompts of the task, and input that arrives while the agent works. Returns the conversation. */
  async #talk(facts: AgentFacts): Promise<HiredResult> {
    const sent: Exchange[] = [...this.#records.exchanges];
    const open = this.#delivered(sent);
    const queue = this.#unsent(sent);
    let last = sent.at(-1);
    if (last !== undefined && last.answer === undefined) {
      if (open) this.#report.event("prompt_continued", { from: last.from });
      else this.#report.event("prompt_resent", { from: last.from });
      const blocks = open ? [textBlock(continueText)] : this.#blocksOf(last, sent.length - 1, facts);
      await this.#turnOf(last, blocks, facts, queue);
    }
    for (;;) {
      if (queue.length === 0)
        for (const input of await this.#attempt.followUps())
          queue.push({
            prompt: inputText(input),
            from: "follow_up",
            answer: undefined,
            stopReason: undefined,
          });
      const next = queue.shift();
      if (next === undefined) break;
      await this.#keep({ type: "prompt", text: next.prompt, from: next.from });
      sent.push(next);
      await this.#turnOf(next, this.#blocksOf(next, sent.length - 1, facts), facts, queue);
      last = next;
    }
    this.#compareCost();
    return {
      sessionId: this.#sessionId as string,
      exchanges: sent.map(({ prompt, answer = "" }) => ({ prompt, answer })),
      stopReason: (last?.stopReason ?? "end_turn") as StopReason,
    };
  }

  /** Whether the history contains the last prompt, which has no answer yet. */
  #delivered(sent: readonly Exchange[]): boolean {
    const history = this.#history;
    const found = sent.map(({ prompt }) => history?.take(prompt) === true);
    return found.at(-1) === true;
  }

  /**
   * Returns the prompts that must be sent: the prompt of the task, and input that earlier attempts took and did not
   * deliver.
   */
  #unsent(sent: readonly Exchange[]): Exchange[] {
    const queue: Exchange[] = [];
    const add = (prompt: string, from: Exchange["from"]): number =>
      queue.push({ prompt, from, answer: undefined, stopReason: undefined });
    if (sent.length === 0) add(this.#task.prompt, "input");
    const sentFrom = (from: Exchange["from"]): string[] =>
      sent.filter((each) => each.from === from).map(({ prompt }) => prompt);
    const queued = sentFrom("steering");
    for (const text of this.#records.steering) {
      const at = queued.indexOf(text);
      if (at !== -1) queued.splice(at, 1);
      else if (this.#history?.take(text) !== true) add(text, "steering");
    }
    for (const text of this.#records.followUps.slice(sentFrom("follow_up").length)) add(text, "follow_up");
    this.#history = undefined;
    return queue;
  }

  #blocksOf({ prompt, from }: Exchange, index: number, facts: AgentFacts): readonly ContentBlock[] {
    if (from !== "input") return [textBlock(prompt)];
    const { opening, earlierTalk, earlierSession } = this.#task;
    const isNew = index === 0 && (this.#isOpenedHere || earlierSession === undefined);
    const before = isNew ? [opening, earlierTalk].filter((text) => text !== "") : [];
    return [...before.map(textBlock), ...this.#task.blocks(facts)];
  }

  /** Sends a prompt, gives the agent steering while it works, and records its answer. */
  async #turnOf(
    exchange: Exchange,
    blocks: readonly ContentBlock[],
    facts: AgentFacts,
    queue: Exchange[],
  ): Promise<void> {
    const connection = this.#connection as AgentConnection;
    const report = this.#report;
    report.startTurn();
    const turn = connection.prompt(this.#sessionId as string, [...blocks]);
    this.#turn = turn.catch(() => undefined);
    const over = new AbortController();
    const steering = this.#steer(facts, queue, over.signal);
    try {
      const stopReason = await turn;
      report.endTurn();
      if (this.#reason !== undefined) throw this.#reason;
      // Some agents report a normal end after a refusal. What they say is no answer, so that the next attempt continues the prompt.
      if (this.#access?.refusal !== undefined) throw this.#access.refusal;
      Object.assign(exchange, { answer: report.answer, stopReason });
      await this.#keep({ type: "answer", text: report.answer, stopReason });
    } finally {
      over.abort();
      this.#turn = undefined;
      report.endTurn();
      await steering;
      const { usage } = report;
      if (usage !== undefined)
        report.event("usage", {
          used: usage.used,
          size: usage.size,
          ...(usage.cost && { cost: { amount: usage.cost.amount, currency: usage.cost.currency } }),
        });
      report.usage = undefined;
      if (usage?.cost?.currency === "USD") this.#reportedUsd = usage.cost.amount;
    }
  }

  /** Passes steering to the agent during a turn. What the agent does not accept at once becomes the next prompt. */
  async #steer(facts: AgentFacts, queue: Exchange[], over: AbortSignal): Promise<void> {
    const ended = new Promise<"over">((resolve) =>
      over.addEventListener("abort", () => resolve("over"), { once: true }),
    );
    while (!over.aborted) {
      this.#steered ??= this.#attempt.whenSteered();
      if ((await Promise.race([this.#steered, ended])) === "over") return;
      this.#steered = undefined;
      for (const input of await this.#attempt.steering())
        await this.#giveSteering(inputText(input), facts, queue);
    }
  }

  async #giveSteering(text: string, { steers }: AgentFacts, queue: Exchange[]): Promise<void> {
    const connection = this.#connection as AgentConnection;
    let isTaken = false;
    try {
      isTaken = steers && (await connection.steer(this.#sessionId as string, text));
    } catch (error) {
      this.#report.event("steering_failed", { reason: Fault.from(error).message });
    }
    this.#report.event(isTaken ? "steering_injected" : "steering_queued", { text });
    if (!isTaken) queue.push({ prompt: text, from: "steering", answer: undefined, stopReason: undefined });
  }

  #onUpdate(update: SessionUpdate): void {
    try {
      this.#take(update);
    } catch (error) {
      this.#stop(error);
    }
  }

  #take(update: SessionUpdate): void {
    const history = this.#history;
    if (history === undefined) return this.#report.update(update);
    // The history that a load reports is in the log already.
    if (!("content" in update) || Array.isArray(update.content)) return history.add("", false);
    const text = update.content?.type === "text" ? update.content.text : "";
    history.add(text, update.sessionUpdate === "user_message_chunk");
  }

  /**
   * Answers a question of the agent about a call. Reeve decides and remembers by itself, so that it never gives an
   * answer which the agent would remember.
   */
  async #onPermission({
    toolCall,
    options,
  }: RequestPermissionRequest): Promise<RequestPermissionResponse["outcome"]> {
    const call = this.#report.askedCall(toolCall);
    const allow = optionOf(options, "allow_once");
    const reject = optionOf(options, "reject_once");
    let isAllowed = false;
    const problem =
      allow === undefined
        ? "the agent offers no answer that allows the call once"
        : this.#questions >= mostQuestions
          ? `the agent asks about more than ${mostQuestions} calls at once`
          : undefined;
    if (problem !== undefined)
      this.#report.event("permission_refused", { callId: call.toolCallId, reason: problem });
    else {
      this.#questions++;
      const asked = this.#attempt
        .permit(foreignCall(call, this.#task.folder, options), { seatWaitMs })
        .catch((error: unknown) => this.#unasked(error))
        .finally(() => this.#questions--);
      const verdict = await Promise.race([asked, this.#stopped.promise]);
      if (verdict === undefined) return { outcome: "cancelled" };
      isAllowed = verdict.decision === "approved";
    }
    if (isAllowed && allow !== undefined) return { outcome: "selected", optionId: allow };
    this.#report.deny(call.toolCallId);
    return reject === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: reject };
  }

  /**
   * Returns the refusal of a call about which no decision was possible. If the task has no seat, the turn ends, and
   * the agent asks again when the task has one.
   */
  #unasked(error: unknown): Refusal | undefined {
    const fault = Fault.from(error);
    if (fault.code !== "seat_lost") return { decision: "refused", reason: fault.message };
    this.#stop(fault);
    return undefined;
  }

  /**
   * Called when the gateway has refused a request. If the reason is a budget or cap, the agent may end its turn by
   * itself.
   */
  #refused(fault: Fault): void {
    if (!(fault instanceof BudgetExhaustedError)) return this.#stop(fault);
    const { clock } = this.#plan;
    this.#cancelRefusal ??= clock.schedule(clock.now() + refusedMs, () => this.#stop(fault));
  }

  /** Ends the attempt: the turn is cancelled, then the process ends. */
  #stop(reason: unknown): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#stoppedAt = this.#plan.clock.now();
    void this.#end();
  }

  async #end(): Promise<void> {
    const { clock } = this.#plan;
    if (this.#turn !== undefined && this.#sessionId !== undefined) {
      const over = Promise.withResolvers<void>();
      const cancel = clock.schedule(clock.now() + cancelMs, over.resolve);
      // A connection that is closed has no turn to cancel.
      this.#connection?.cancel(this.#sessionId).catch(over.resolve);
      this.#stopped.resolve();
      await Promise.race([this.#turn, over.promise]);
      cancel();
    }
    this.#stopped.resolve();
    await this.#process?.end(0);
  }

  async #keep(record: HireRecord): Promise<void> {
    await this.#attempt.keep(record);
  }

  /**
   * Releases the resources of the launch. It writes to the log which control files the agent has created or tried
   * to change.
   */
  async #endLaunch(): Promise<void> {
    const report = await this.#launch?.end();
    const { created = [], undone = [] } = report ?? {};
    if (created.length > 0 || undone.length > 0) this.#report.event("control_files", { created, undone });
  }

  #noteOtherLines(): void {
    const { count = 0, first = "" } = this.#connection?.otherLines ?? {};
    if (count > 0) this.#report.event("lines_skipped", { count, first });
  }

  /** Writes a note if the cost that an agent reports differs from that of the ledger, which is the valid one. */
  #compareCost(): void {
    const reportedUsd = this.#reportedUsd;
    const ledgerUsd = this.#task.costUsd();
    if (reportedUsd === undefined || this.#records.exchanges.length > 0) return;
    if (!this.#isOpenedHere || Math.abs(reportedUsd - ledgerUsd) <= costTolerance * ledgerUsd) return;
    this.#report.event("cost_differs", { reportedUsd, ledgerUsd });
  }
}

function optionOf(options: readonly PermissionOption[], kind: PermissionOption["kind"]): string | undefined {
  return options.find((option) => option.kind === kind)?.optionId;
}

function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}
