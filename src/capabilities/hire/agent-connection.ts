import type * as Sdk from "@agentclientprotocol/sdk";
import { describeValue, Fault, readProperty, type Clock, type JsonValue } from "../../kernel/index.ts";
import type { AgentProcess } from "./agent-process.ts";
import { MessageStream } from "./message-stream.ts";

/** The functions of the optional package. */
export type AcpSdk = typeof Sdk;

/** What an agent sends on its own. */
export interface AgentHandlers {
  /** Called when the agent reports something about its session. It must not throw. */
  readonly onUpdate: (update: Sdk.SessionUpdate) => void;
  /** Called when the agent asks whether it may make a call. */
  readonly onPermission: (
    request: Sdk.RequestPermissionRequest,
  ) => Promise<Sdk.RequestPermissionResponse["outcome"]>;
}

/** What an agent says of itself. */
export interface AgentFacts {
  readonly name: string;
  readonly version: string;
  /** Whether the agent can load a session of an earlier process. */
  readonly loads: boolean;
  /** Whether the agent accepts steering while it works. */
  readonly steers: boolean;
  readonly images: boolean;
}

/** Options of a connection. */
export interface ConnectionOptions {
  readonly name: string;
  readonly clock: Clock;
  /** The login method that is sent after `initialize`. Default: none. */
  readonly login?: string;
  /** Maximum time in milliseconds for an answer that needs no model. */
  readonly startTimeoutMs: number;
}

const stopReasons = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"] as const;

/** Length at which the name and the version of an agent are cut. */
const longestName = 100;
/** The code of an agent that wants a login. */
const authRequired = -32_000;
const methodNotFound = -32_601;

/**
 * The connection to a hired agent: requests of the Agent Client Protocol, with faults instead of the protocol's
 * errors.
 */
export class AgentConnection {
  readonly #sdk: AcpSdk;
  readonly #process: AgentProcess;
  readonly #options: ConnectionOptions;
  readonly #messages: MessageStream;
  readonly #connection: Sdk.ClientConnection;
  /** Rejects when the agent exceeds a limit of its stream. */
  readonly #broken = Promise.withResolvers<never>();

  constructor(sdk: AcpSdk, process: AgentProcess, handlers: AgentHandlers, options: ConnectionOptions) {
    this.#sdk = sdk;
    this.#process = process;
    this.#options = options;
    this.#broken.promise.catch(() => undefined);
    this.#messages = new MessageStream(process.output, process.input, {
      onBreach: (fault) => this.#broken.reject(fault),
    });
    const { client, methods } = sdk;
    this.#connection = client({ name: "reeve" })
      .onNotification(methods.client.session.update, ({ params }) => handlers.onUpdate(params.update))
      .onRequest(methods.client.session.requestPermission, async ({ params }) => ({
        outcome: await handlers.onPermission(params),
      }))
      .connect(this.#messages.stream);
  }

  /** Number of lines of the agent that were not messages, with the first of them. */
  get otherLines(): { readonly count: number; readonly first: string | undefined } {
    return { count: this.#messages.otherLines, first: this.#messages.firstOtherLine };
  }

  /** Asks the agent for its capabilities, and sends it the login method. */
  async initialize(): Promise<AgentFacts> {
    const { methods, PROTOCOL_VERSION } = this.#sdk;
    const { login: methodId } = this.#options;
    const answer = await this.#soon("initialize", (agent) =>
      agent.request(methods.agent.initialize, {
        protocolVersion: PROTOCOL_VERSION,
        clientInfo: { name: "reeve", title: "Reeve", version: "1" },
        // Agents use tools of their own, whose calls the sandbox confines and a person approves.
        clientCapabilities: {},
      }),
    );
    const version = readProperty(answer, "protocolVersion");
    if (version !== PROTOCOL_VERSION)
      throw new Fault(
        "agent_protocol",
        `agent ${this.#options.name} speaks version ${describeValue(version)} of the Agent Client Protocol, and Reeve speaks version ${PROTOCOL_VERSION}; install a version of the agent that speaks it`,
      );
    if (methodId !== undefined)
      await this.#soon("authenticate", (agent) => agent.request(methods.agent.authenticate, { methodId }));
    const { agentInfo, agentCapabilities = {} } = answer;
    const steers = [answer, agentCapabilities].some(
      (part) => readProperty(readProperty(readProperty(part, "_meta"), "steering"), "supported") === true,
    );
    return {
      name: shortText(agentInfo?.name) ?? this.#options.name,
      version: shortText(agentInfo?.version) ?? "unknown",
      loads: agentCapabilities.loadSession === true,
      steers,
      images: agentCapabilities.promptCapabilities?.image === true,
    };
  }

  async newSession(cwd: string): Promise<string> {
    const { methods } = this.#sdk;
    const answer = await this.#soon("session/new", (agent) =>
      agent.request(methods.agent.session.new, { cwd, mcpServers: [] }),
    );
    const sessionId = readProperty(answer, "sessionId");
    if (typeof sessionId === "string" && sessionId !== "") return sessionId;
    throw this.#wrongAnswer("session/new", "it has no sessionId");
  }

  /** Loads a session of an earlier process. The agent reports its whole history as updates before it resolves. */
  async loadSession(sessionId: string, cwd: string): Promise<void> {
    const { methods } = this.#sdk;
    await this.#soon("session/load", (agent) =>
      agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] }),
    );
  }

  /** Sends a prompt. Resolves when the agent has ended its turn. */
  async prompt(sessionId: string, prompt: Sdk.ContentBlock[]): Promise<Sdk.StopReason> {
    const { methods } = this.#sdk;
    const answer = await this.#ask("session/prompt", (agent) =>
      agent.request(methods.agent.session.prompt, { sessionId, prompt }),
    );
    const stopReason = readProperty(answer, "stopReason");
    const known = stopReasons.find((each) => each === stopReason);
    if (known !== undefined) return known;
    throw this.#wrongAnswer("session/prompt", `its stopReason is ${describeValue(stopReason)}`);
  }

  /** Asks the agent to end its turn. It then answers the prompt. */
  async cancel(sessionId: string): Promise<void> {
    const { methods } = this.#sdk;
    await this.#connection.agent.notify(methods.agent.session.cancel, { sessionId });
  }

  /** Sends the agent a message while it works. Returns whether the agent accepted it. */
  async steer(sessionId: string, text: string): Promise<boolean> {
    const prompt = [{ type: "text", text }];
    const answer = await this.#soon<{ readonly outcome?: unknown }>("_session/steering", (agent) =>
      agent.request("_session/steering", { sessionId, prompt }),
    );
    return answer.outcome === "injected";
  }

  close(): void {
    this.#connection.close();
  }

  /** Makes a request that an agent answers without a model. */
  async #soon<Answer>(method: string, ask: (agent: Sdk.ClientContext) => Promise<Answer>): Promise<Answer> {
    const { clock, name, startTimeoutMs } = this.#options;
    const late = Promise.withResolvers<never>();
    const cancel = clock.schedule(clock.now() + startTimeoutMs, () => {
      const { first } = this.otherLines;
      const printed = first === undefined ? "" : `; it printed ${JSON.stringify(first)}`;
      late.reject(
        new Fault(
          "agent_protocol",
          `agent ${name} did not answer ${method} within ${startTimeoutMs} ms${printed}; check that its command speaks the Agent Client Protocol, or raise startTimeoutMs`,
        ),
      );
    });
    try {
      return await Promise.race([this.#ask(method, ask), late.promise]);
    } finally {
      cancel();
    }
  }

  async #ask<Answer>(method: string, ask: (agent: Sdk.ClientContext) => Promise<Answer>): Promise<Answer> {
    const crashed = this.#process.ended.then((): never => {
      throw this.#process.crash;
    });
    crashed.catch(() => undefined);
    const asked = ask(this.#connection.agent).catch(async (error: unknown) => {
      // The connection closes when the process ends, a moment before its exit code is known.
      if (!this.#isAnswer(error) && this.#connection.signal.aborted)
        await Promise.race([crashed, this.#broken.promise]);
      throw this.#faultOf(method, error);
    });
    return Promise.race([asked, crashed, this.#broken.promise]);
  }

  #isAnswer(error: unknown): error is Sdk.RequestError {
    return error instanceof this.#sdk.RequestError;
  }

  #wrongAnswer(method: string, why: string, cause?: unknown): Fault {
    return new Fault(
      "agent_protocol",
      `agent ${this.#options.name} answered ${method} with something else than the protocol says: ${why}`,
      cause === undefined ? {} : { cause },
    );
  }

  #faultOf(method: string, error: unknown): Fault {
    const { name } = this.#options;
    if (!this.#isAnswer(error)) return this.#wrongAnswer(method, Fault.from(error).message, error);
    const { code, message } = error;
    const details = { code, ...(error.data !== undefined && { data: error.data as JsonValue }) };
    if (code === authRequired)
      return new Fault(
        "agent_login_required",
        `agent ${name} asks for a login: ${message}. Reeve hires agents with the key of a provider only, behind the gateway: a subscription has no price that a budget could bound. Set its gateway, and leave its home private`,
        { details },
      );
    if (code === methodNotFound)
      return new Fault("agent_protocol", `agent ${name} does not know ${method}: ${message}`, { details });
    return new Fault("child_failed", `agent ${name} answered ${method} with an error: ${message}`, {
      details,
    });
  }
}

/** Returns a short text that an agent gives about itself. `undefined` if the value is not a text. */
function shortText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value.slice(0, longestName) : undefined;
}
