import {
  eventDraft,
  Fault,
  readProperty,
  type AgentId,
  type CancelSignal,
  type EmittableEvent,
  type ExtensionContext,
  type ExtensionPort,
  type ExtensionUi,
  type Model,
  type ModelRegistry,
  type RunContext,
  type SessionId,
  type SessionView,
} from "../../../kernel/index.ts";
import type { HandlerTime } from "./handler-time.ts";
import { checkNotice, personQuestions } from "./person-questions.ts";

/** The agent of an extension, as its contexts describe it. */
export interface ExtendedAgent {
  readonly id: AgentId;
  readonly name: string;
  /** The models by role, and the models that extensions registered by name. */
  readonly models: Readonly<Record<string, Model>>;
}

/** Where code of an extension runs: inside a step, beside a run, or outside of runs. */
export interface HandlerPlace {
  /**
   * The functions of the runtime. The property is read only when it is needed, so that a handler that uses nothing
   * costs nothing (F1).
   */
  readonly port: ExtensionPort;
  /** The scope of the step in which the code runs. Absent outside a step. */
  readonly step?: RunContext;
  /** Writes an event to the run's log. Absent outside a run. */
  readonly emit?: (event: EmittableEvent) => void;
  /** The system prompt of the invocation. */
  readonly systemPrompt: string;
  /** Requests a compaction after the invocation. Absent outside an invocation. */
  readonly requestCompaction?: (instructions: string | undefined) => void;
  /** Continues in another session. `busy` inside an unfinished invocation. Absent where no surface can continue. */
  readonly navigate?: "busy" | ((sessionId: SessionId, from: SessionId) => void);
}

export interface HandlerContextOptions {
  readonly agent: ExtendedAgent;
  readonly extension: string;
  /** Type of the event that is handled, or the name of the command. */
  readonly event: string;
  readonly place: HandlerPlace;
  readonly time: HandlerTime;
}

/** The agent's context for one call of an extension's code. It is valid until the call ends. */
export class HandlerContext implements ExtensionContext {
  readonly #agent: ExtendedAgent;
  readonly #extension: string;
  readonly #event: string;
  readonly #place: HandlerPlace;
  readonly #time: HandlerTime;
  /** The session after a navigation. */
  #sessionId: SessionId | undefined;
  #signal: ReturnType<ExtensionPort["newSignal"]> | undefined;
  #ui: ExtensionUi | undefined;

  constructor({ agent, extension, event, place, time }: HandlerContextOptions) {
    this.#agent = agent;
    this.#extension = extension;
    this.#event = event;
    this.#place = place;
    this.#time = time;
  }

  /** Aborts the signal, because the time limit of the call has passed. */
  end(reason: unknown): void {
    this.#signal?.abort(reason);
  }

  get cwd(): string {
    return this.#port.cwd;
  }

  get ui(): ExtensionUi {
    return (this.#ui ??= this.#userInterface());
  }

  get sessionManager(): SessionView {
    const sessionId = this.#session;
    const { sessions } = this.#port;
    return {
      sessionId,
      leafId: async () => (await sessions.get(sessionId))?.leafId ?? null,
      path: async () => ((await sessions.get(sessionId)) === undefined ? [] : sessions.path(sessionId)),
      append: ({ customType, data }) => {
        this.#check();
        const append = (): Promise<string> => sessions.append(sessionId, { customType, data });
        return this.#place.step?.step(`append ${customType}`, append, { input: data }) ?? append();
      },
    };
  }

  get model(): Model | undefined {
    return this.#agent.models["main"];
  }

  get modelRegistry(): ModelRegistry {
    const own = new Map<string, Model>();
    for (const [role, model] of Object.entries(this.#agent.models))
      own.set(role.includes("/") ? role : `${model.provider}/${model.modelId}`, model);
    return {
      list: () => [...own.keys()],
      find: (name) => own.get(name) ?? this.#port.findModel(name),
    };
  }

  get signal(): CancelSignal {
    return (this.#signal ??= this.#port.newSignal()).signal;
  }

  async isIdle(): Promise<boolean> {
    const { sessions } = this.#port;
    return (await sessions.phase(this.#session, this.#agent.id)) === "idle";
  }

  async hasPendingMessages(): Promise<boolean> {
    return this.#port.hasPendingMessages();
  }

  abort(reason = `aborted by extension ${this.#extension}`): void {
    const port = this.#port;
    if (port.runId === null) throw this.#unsupported("abort", "there is no invocation");
    port.cancel(reason);
  }

  shutdown(): void {
    const { surface } = this.#port;
    if (surface?.shutdown === undefined) throw this.#unsupported("shutdown", withoutSurface);
    surface.shutdown();
  }

  async getContextUsage(): Promise<{ tokens: number; contextWindow: number } | undefined> {
    const { sessions } = this.#port;
    if ((await sessions.get(this.#session)) === undefined) return undefined;
    const { tokens, contextWindow } = await sessions.contextUsage(this.#session);
    return contextWindow === null ? undefined : { tokens, contextWindow };
  }

  getSystemPrompt(): string {
    return this.#place.systemPrompt;
  }

  compact(instructions?: string): void {
    this.#check();
    const { requestCompaction } = this.#place;
    if (requestCompaction === undefined)
      throw this.#unsupported("compact", "there is no invocation; use runCompaction()");
    requestCompaction(instructions);
  }

  async runCompaction(instructions?: string): Promise<boolean> {
    await this.#requireIdle("runCompaction");
    const options = instructions === undefined ? {} : { instructions };
    const run = await this.#port.sessions.compact(this.#session, options);
    const { output } = await run.result();
    return readProperty(output, "entryId") !== undefined;
  }

  async reload(): Promise<void> {
    const { surface } = this.#port;
    if (surface?.reload === undefined)
      throw this.#unsupported(
        "reload",
        "there is no workspace; pass a surface with reload() to openRuntime()",
      );
    await surface.reload();
  }

  async waitForIdle(): Promise<void> {
    this.#refuseInside("waitForIdle");
    await this.#port.untilIdle();
  }

  async newSession(): Promise<SessionId> {
    return this.#goTo("newSession", (sessions, from) => sessions.switch(from, null));
  }

  async fork(entryId: string): Promise<SessionId> {
    return this.#goTo("fork", (sessions, from) => sessions.fork(from, { entryId }));
  }

  async switchSession(sessionId: string): Promise<void> {
    await this.#goTo("switchSession", (sessions, from) => sessions.switch(from, sessionId));
  }

  /** The functions of the runtime, as long as the call has not ended. */
  get #port(): ExtensionPort {
    this.#check();
    return this.#place.port;
  }

  get #session(): SessionId {
    return this.#sessionId ?? this.#port.sessionId;
  }

  async #goTo(
    method: string,
    change: (sessions: ExtensionPort["sessions"], from: SessionId) => Promise<SessionId>,
  ): Promise<SessionId> {
    const { navigate } = this.#place;
    await this.#requireIdle(method);
    if (typeof navigate !== "function") throw this.#unsupported(method, withoutSurface);
    const from = this.#session;
    const target = await change(this.#port.sessions, from);
    this.#sessionId = target;
    navigate(target, from);
    return target;
  }

  /** S5: throws `agent_busy` inside an invocation, and while another one is unfinished in the session. */
  async #requireIdle(method: string): Promise<void> {
    this.#refuseInside(method);
    if (!(await this.isIdle())) throw this.#busy(method);
  }

  #refuseInside(method: string): void {
    this.#check();
    if (this.#place.navigate === "busy") throw this.#busy(method);
  }

  #busy(method: string): Fault {
    const { runId, sessionId } = this.#place.port;
    return new Fault(
      "agent_busy",
      `${method}() of extension ${this.#extension} needs an idle session, but ${this.#agent.id} is busy${runId === null ? "" : ` with ${runId}`} in session ${sessionId}; call it after the invocation, for example in a command`,
      { details: { sessionId, ...(runId !== null && { runId }) } },
    );
  }

  #userInterface(): ExtensionUi {
    const check = (): void => this.#check();
    const notify: ExtensionUi["notify"] = (message, level = "info") => {
      check();
      checkNotice(message, level);
      const { emit, port } = this.#place;
      const extension = this.#extension;
      if (emit !== undefined) emit(eventDraft("extension_notice", { extension, message, level }));
      else if (port.surface?.notify === undefined) throw this.#unsupported("ui.notify", withoutSurface);
      else port.surface.notify({ extension, message, level, sessionId: this.#session });
    };
    const { step } = this.#place;
    // Only code inside a step can wait durably. Elsewhere the questions do not exist.
    if (step === undefined) return { notify } as ExtensionUi;
    const asker = {
      extension: this.#extension,
      event: this.#event,
      time: this.#time,
      ctx: () => step,
      check,
    };
    return { notify, ...personQuestions(asker) };
  }

  #check(): void {
    if (!this.#time.isOver) return;
    throw new Fault(
      "closed",
      `the context of extension ${this.#extension} is no longer valid, because its handler of ${this.#event} has ended or exceeded its time limit`,
    );
  }

  #unsupported(method: string, reason: string): Fault {
    return new Fault(
      "unsupported",
      `${method}() of extension ${this.#extension} is not available in ${this.#event}: ${reason}`,
    );
  }
}

const withoutSurface = "no surface is connected; pass one to openRuntime({ surface })";
