import {
  type AnswerableEventType,
  CancellationError,
  type Clock,
  type Command,
  type CommandResult,
  type CompactionResult,
  type Delta,
  type Event,
  type EventObserver,
  type Extension,
  type ExtensionEventType,
  type ExtensionPort,
  Fault,
  type ObservedTask,
  type RunContext,
  type RunFacts,
  type SessionId,
  type SessionNavigation,
  deepFreeze,
  eventDraft,
  stopsTask,
} from "../../../kernel/index.ts";
import {
  answerRules,
  readAnswer,
  type Answer,
  type AnswerableEvent,
  type AnswerRule,
} from "./answer-rules.ts";
import { EventDelivery } from "./event-delivery.ts";
import { builtPart, skillPrompt } from "./extended-parts.ts";
import { HandlerContext, type ExtendedAgent, type HandlerPlace } from "./handler-context.ts";
import { HandlerTime } from "./handler-time.ts";
import {
  isAnswerable,
  isDelta,
  memoryHook,
  Registrations,
  SetupApi,
  type RegisteredHandler,
} from "./registrations.ts";

/** Maximum number of sessions whose system prompt is kept. */
const mostSessions = 256;

/** The system prompts that this process built last, by session. The oldest ones are removed. */
class RecentPrompts {
  readonly #prompts = new Map<SessionId, string>();

  /** Returns the prompt of a session, or an empty text. */
  get(sessionId: SessionId): string {
    return this.#prompts.get(sessionId) ?? "";
  }

  set(sessionId: SessionId, prompt: string): void {
    this.#prompts.delete(sessionId);
    this.#prompts.set(sessionId, prompt);
    if (this.#prompts.size <= mostSessions) return;
    const [oldest] = this.#prompts.keys();
    if (oldest !== undefined) this.#prompts.delete(oldest);
  }
}

/** The combined answer of the handlers of an event. */
export interface Answered<Type extends AnswerableEventType> {
  /** The event, as the last handler left it. */
  readonly event: AnswerableEvent<Type>;
  /** The answer that applies. `undefined` if no handler has answered. */
  readonly answer: Answer<Type> | undefined;
  /** Name of the extension that gave the answer. */
  readonly by: string | undefined;
}

/** An error of an extension that no run has recorded yet. */
interface SetupFailure {
  readonly extension: string;
  readonly fault: Fault;
}

/**
 * Number of times in a row that a handler may exceed its time limit in one run. After that it receives no more
 * events of the run.
 */
const mostHangs = 2;

/**
 * Runs the extensions of one agent: their `setup` once, and their handlers in the order of the extensions. S4: an
 * error of an extension is recorded and does not fail a run.
 */
export class ExtensionHost {
  readonly registered = new Registrations();
  /** Receives the committed events of the agent's runs. */
  readonly observer: EventObserver;
  readonly #extensions: readonly Extension[];
  readonly #agent: () => ExtendedAgent;
  readonly #onReady: (registered: Registrations) => void;
  readonly #prompts = new RecentPrompts();
  /** How often in a row each handler has exceeded its time limit, by run. */
  readonly #hangs = new Map<string, Map<RegisteredHandler, number>>();
  #setup: Promise<void> | undefined;
  #isReady = false;
  #failures: SetupFailure[] = [];
  #denial: string | undefined;

  /** `onReady` is called once, after the `setup` of every extension has ended. */
  constructor(
    extensions: readonly Extension[],
    agent: () => ExtendedAgent,
    onReady: (registered: Registrations) => void,
  ) {
    this.#extensions = extensions;
    this.#agent = agent;
    this.#onReady = onReady;
    this.observer = new EventDelivery(
      (type) =>
        (!this.#isReady && !isDelta(type)) ||
        type === "run_end" ||
        (type === "hook_error" && this.registered.hasSources) ||
        (!isAnswerable(type) && this.has(type)),
      (event, task) => this.#deliver(event, task),
    );
  }

  /**
   * Returns why tool calls are denied, if an extension that checks them could not be set up. Otherwise `undefined`.
   */
  get denial(): string | undefined {
    return this.#denial;
  }

  /** Whether a handler is registered for events of this type. */
  has(type: ExtensionEventType): boolean {
    return this.registered.handlers.has(type);
  }

  /** Runs every `setup`, once per agent. */
  ready(clock: () => Clock): Promise<void> {
    this.#setup ??= this.#setUpAll(clock);
    return this.#setup;
  }

  /**
   * Prepares an invocation. It runs `setup` before the first one, and records errors of `setup` in it. This also
   * applies to a process that resumes a run which another process started without such errors.
   */
  async open(ctx: RunContext): Promise<void> {
    const { extensionPort: port } = ctx;
    await this.ready(() => port.clock);
    const failures = this.#failures;
    this.#failures = [];
    const place = { port, systemPrompt: "", emit: (event) => port.emitEvent(event) } satisfies HandlerPlace;
    for (const { extension, fault } of failures) this.#record(extension, "setup", fault, place);
  }

  /** Stores the system prompt of an invocation, for `getSystemPrompt`. */
  notePrompt({ facts: { sessionId } }: RunContext, systemPrompt: string): void {
    this.#prompts.set(sessionId, systemPrompt);
  }

  /** Returns the place for code that runs inside a step of an invocation. `ctx` is the scope of the step. */
  placeIn(ctx: () => RunContext, emit?: HandlerPlace["emit"]): HandlerPlace {
    const prompts = this.#prompts;
    return {
      get port() {
        return ctx().extensionPort;
      },
      get step() {
        return ctx();
      },
      get systemPrompt() {
        return prompts.get(ctx().facts.sessionId);
      },
      emit: emit ?? ((event) => ctx().emitEvent(event)),
      requestCompaction: (instructions) => ctx().requestCompaction(instructions),
      navigate: "busy",
    };
  }

  /**
   * Calls the handlers of an event that extensions may answer, one after another. Call it inside a step and pass
   * the step's scope, so that a replay of a recorded step calls none of them again (J7).
   */
  async answer<Type extends AnswerableEventType>(
    type: Type,
    event: AnswerableEvent<Type>,
    place: HandlerPlace,
  ): Promise<Answered<Type>> {
    const rule = answerRules[type] as AnswerRule<Type>;
    // S4: a handler changes an event by its answer only, which is checked.
    let answered: Answered<Type> = { event: deepFreeze(event), answer: undefined, by: undefined };
    for (const handler of this.registered.handlers.get(type) ?? []) {
      const answer = await this.#ask(type, handler, answered.event, place);
      if (answer === undefined) continue;
      const next = rule.next?.(answered.event, answer) ?? answered.event;
      answered = { event: deepFreeze(next), answer, by: handler.extension };
      if (rule.isFinal(answer)) break;
    }
    return answered;
  }

  /**
   * Returns the text that extensions add to the system prompt: their parts in order, then the list of skills. S4: a
   * part that fails or takes too long is recorded as an error and left out.
   */
  async promptText(facts: RunFacts, place: HandlerPlace): Promise<string> {
    const texts: string[] = [];
    for (const { extension, part } of this.registered.all("prompt").values()) {
      const name = `prompt ${part.name}`;
      const time = new HandlerTime(`${name} of extension ${extension}`, () => place.port.clock);
      try {
        texts.push(
          await time.run(
            () => builtPart(part, facts),
            (fail) => watchCancel(place, fail),
          ),
        );
      } catch (error) {
        if (stops(error, place)) throw error;
        this.#record(extension, name, Fault.from(error), place);
      }
    }
    return [...texts, skillPrompt(this.registered)].filter((text) => text !== "").join("\n\n");
  }

  /**
   * Asks the extensions before a compaction, inside its step. `undefined` if no extension decides. If `problemOf`
   * returns a fault for a summary, the fault is recorded as an error of its extension.
   */
  async beforeCompact(
    event: AnswerableEvent<"session_before_compact">,
    ctx: RunContext,
    problemOf: (summary: CompactionResult) => Fault | undefined,
  ): Promise<Answered<"session_before_compact">["answer"]> {
    const type = "session_before_compact";
    if (!this.has(type)) return undefined;
    const place = this.placeIn(() => ctx);
    const { answer, by = "" } = await this.answer(type, event, place);
    const problem = answer === undefined || "cancel" in answer ? undefined : problemOf(answer);
    if (problem !== undefined) this.#record(by, type, problem, place);
    return answer;
  }

  /**
   * Asks the extensions whether a session may be switched, forked or moved. Returns the reason if an extension
   * refuses.
   */
  async refusal({ type, event }: SessionNavigation, port: ExtensionPort): Promise<string | undefined> {
    await this.ready(() => port.clock);
    const place: HandlerPlace = { port, systemPrompt: this.#prompts.get(port.sessionId) };
    const { answer, by } = await this.answer(type, event, place);
    return answer && `extension ${by} refuses${answer.reason === undefined ? "" : `: ${answer.reason}`}`;
  }

  /** Returns the registered commands, after every `setup` has run. */
  async commands(clock: Clock): Promise<readonly Command[]> {
    await this.ready(() => clock);
    return [...this.registered.all("command").values()].map(({ command }) => command);
  }

  /** Runs a command. Rejects with the error of the command, which is also recorded. */
  async runCommand(name: string, args: string, port: ExtensionPort): Promise<CommandResult> {
    await this.ready(() => port.clock);
    const commands = this.registered.all("command");
    const found = commands.get(name);
    if (found === undefined)
      throw new Fault(
        "not_found",
        `agent ${this.#agent().name} has no command ${name}; there are: ${[...commands.keys()].join(", ") || "none"}`,
      );
    let { sessionId } = port;
    const place: HandlerPlace = {
      port,
      systemPrompt: this.#prompts.get(sessionId),
      navigate: (target: SessionId) => {
        sessionId = target;
      },
    };
    const { extension, command } = found;
    const event = `command ${name}`;
    const time = new HandlerTime(`command ${name}`, () => port.clock, Infinity);
    const context = this.#context(extension, event, place, time);
    try {
      await time.run(() => command.run(args, context));
    } catch (error) {
      throw this.#record(extension, event, Fault.from(error), place);
    }
    return { sessionId };
  }

  async #ask<Type extends AnswerableEventType>(
    type: Type,
    handler: RegisteredHandler,
    event: AnswerableEvent<Type>,
    place: HandlerPlace,
  ): Promise<Answer<Type> | undefined> {
    try {
      return readAnswer(type, await this.#call(type, handler, event, place));
    } catch (error) {
      // S4: a cancel, an exhausted budget or a termination inside a step stops the task as usual.
      if (place.navigate === "busy" && stops(error, place)) throw error;
      const fault = this.#record(handler.extension, type, Fault.from(error), place);
      return (answerRules[type] as AnswerRule<Type>).onFailure?.(fault);
    }
  }

  async #call(
    type: string,
    { extension, handle }: RegisteredHandler,
    event: unknown,
    place: HandlerPlace,
  ): Promise<unknown> {
    const name = `the handler of ${type} of extension ${extension}`;
    const time = new HandlerTime(name, () => place.port.clock);
    const context = this.#context(extension, type, place, time);
    try {
      return await time.run(
        () => handle(event as never, context as never),
        place.navigate === "busy" ? (fail) => watchCancel(place, fail) : undefined,
      );
    } catch (error) {
      context.end(error);
      throw error;
    }
  }

  #context(extension: string, event: string, place: HandlerPlace, time: HandlerTime): HandlerContext {
    return new HandlerContext({ agent: this.#agent(), extension, event, place, time });
  }

  /**
   * Delivers a committed event or a delta to its handlers. A handler of deltas that fails receives no more of them
   * in that run, because a message has thousands of deltas. Never rejects.
   */
  async #deliver(event: Event | Delta, task: ObservedTask): Promise<void> {
    // A child that shares the agent's prompt has no extensions.
    if (task.sharesPrompt) return;
    const { type, runId } = event;
    const { extensionPort: port } = task;
    await this.ready(() => port.clock);
    if (type === "hook_error") this.#reportSource(event, port);
    const handlers = isAnswerable(type) ? none : (this.registered.handlers.get(type) ?? none);
    const hangs = this.#hangs.get(runId) ?? new Map<RegisteredHandler, number>();
    for (const handler of handlers) {
      if ((hangs.get(handler) ?? 0) >= mostHangs) continue;
      const place: HandlerPlace = {
        port,
        systemPrompt: this.#prompts.get(task.facts.sessionId),
        emit: (draft) => task.emitEvent(draft),
        ...(port.surface?.showSession && { navigate: port.surface.showSession.bind(port.surface) }),
      };
      try {
        await this.#call(type, handler, event, place);
        hangs.delete(handler);
      } catch (error) {
        const fault = this.#record(handler.extension, type, Fault.from(error), place);
        if (isDelta(type)) hangs.set(handler, mostHangs);
        else if (HandlerTime.isExpiry(fault)) hangs.set(handler, (hangs.get(handler) ?? 0) + 1);
      }
    }
    if (type === "run_end" || hangs.size === 0) this.#hangs.delete(runId);
    else this.#hangs.set(runId, hangs);
  }

  async #setUpAll(clock: () => Clock): Promise<void> {
    for (const extension of this.#extensions) await this.#setUp(extension, clock);
    this.#isReady = true;
    try {
      this.#onReady(this.registered);
    } catch (error) {
      // A part does not fit the agent. The agent continues with its own parts.
      this.#failures.push({
        extension: this.#extensions.map(({ name }) => name).join(", "),
        fault: Fault.from(error),
      });
    }
  }

  async #setUp(extension: Extension, clock: () => Clock): Promise<void> {
    const { name, required = false } = extension;
    const api = new SetupApi(name, this.registered);
    const time = new HandlerTime(`setup() of extension ${name}`, clock);
    try {
      await time.run(() => extension.setup(api));
      this.registered.merge(api.registered);
    } catch (error) {
      const fault = Fault.from(error);
      this.#failures.push({ extension: name, fault });
      const { handlers } = api.registered;
      if (required || handlers.has("tool_call") || handlers.has("tool_result"))
        this.#denial ??= `extension ${name}, which checks tool calls, could not be set up: ${fault.message}`;
    } finally {
      api.end();
    }
  }

  /**
   * Adds an error of a memory or an ephemeral source that an extension registered to `Runtime.extensionErrors`. The
   * log of the run has it as `hook_error`.
   */
  #reportSource({ data }: Event<"hook_error">, port: ExtensionPort): void {
    const { hook, failure } = data;
    const extension = this.registered.sourceOwner(hook);
    if (extension === undefined) return;
    const event = hook === memoryHook ? hook : `ephemeral ${hook}`;
    port.reportError({ extension, event, failure, agentId: this.#agent().id });
  }

  /** S4: records an error as an event of the run, if there is one, and in `Runtime.extensionErrors`. */
  #record(extension: string, event: string, fault: Fault, { emit, port }: HandlerPlace): Fault {
    const failure = fault.toJSON();
    emit?.(eventDraft("extension_error", { extension, event, failure }));
    port.reportError({ extension, event, failure, agentId: this.#agent().id });
    return fault;
  }
}

const none: readonly RegisteredHandler[] = [];

/**
 * Whether an error of a handler ends its task. If the handler waited for other work and that work was cancelled, it
 * does not.
 */
function stops(error: unknown, { step }: HandlerPlace): boolean {
  return stopsTask(error) && (!(error instanceof CancellationError) || step?.signal.aborted === true);
}

/** Fails a handler when its task is cancelled. */
function watchCancel({ step }: HandlerPlace, fail: (error: unknown) => void): () => void {
  if (step === undefined) return () => {};
  const { signal } = step;
  const onAbort = (): void => {
    try {
      step.check();
    } catch (error) {
      fail(error);
    }
  };
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  return () => signal.removeEventListener("abort", onAbort);
}
