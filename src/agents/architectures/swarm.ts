import {
  assistantMessage,
  describeValue,
  Fault,
  textOf,
  type AgentSession,
  type Architecture,
  type ChatMessage,
  type Dependencies,
  type EmittableEvent,
  type HostedAgent,
  type JsonSchema,
  type JsonValue,
  type WorkerBrief,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { opening, readInput } from "../base/agent-input.ts";
import { withFormat } from "../base/answer-format.ts";
import { HandoffArchitecture, readHandoff, type Handoff } from "./handoff.ts";
import { adoptWorkerResult, runWorker, keepPartialText } from "../team/run-worker.ts";
import { loadPromptContext, type PromptContext } from "../context/prompt-context.ts";
import { architectureEvent } from "../context/role-call.ts";
import { memberKinds, spawnOptionsOf, TeamMembers, workerBrief, type Member } from "../team/team-members.ts";
import { endOnWorkerInterruption } from "../team/worker-interruption.ts";

/** A handoff between two peers, as `inputFilter` sees it. */
export interface SwarmHandOver {
  /** Name of the peer that hands over. */
  readonly from: string;
  /** Name of the peer that continues. */
  readonly to: string;
  /** Text for the target; empty if the target has an input schema. */
  readonly message: string;
  /** Input by the schema of the target; `null` if the target has no schema. */
  readonly input: JsonValue;
  /** The conversation so far; empty if `passFullHistory` is `false`. */
  readonly history: readonly ChatMessage[];
}

/** An agent that can be copied with another name and architecture, as `Agent` can. */
interface PeerAgent extends HostedAgent {
  readonly name: string;
  readonly architecture: Architecture;
  with(changes: { readonly name: string; readonly architecture: Architecture }): PeerAgent;
}

/** A peer of a swarm, with the options to spawn it. */
export interface SwarmPeer extends Omit<Member, "agent"> {
  /** The agent to spawn. */
  readonly agent: PeerAgent;
  /**
   * JSON Schema of the input that this peer needs in a handoff. The other peers then have a tool
   * `transfer_to_<name>`. If absent, a handoff contains a text message.
   */
  readonly input?: JsonSchema;
  /**
   * Creates the brief of this peer from a handoff. Called once per handoff; the result is journaled. If absent, the
   * peer gets the message or the input, and the history.
   */
  readonly inputFilter?: (handOver: SwarmHandOver) => WorkerBrief | Promise<WorkerBrief>;
}

/** Options of `swarm`. */
export interface SwarmOptions {
  /** At least two agents, by name. Each may hand over the conversation to any other. */
  readonly peers: Readonly<Record<string, PeerAgent | SwarmPeer>>;
  /** Name of the peer with which a session starts. Default: the first peer. */
  readonly entry?: string;
  /**
   * Whether a later invocation of a session starts with the peer that gave the session's latest answer. `false` means
   * that every invocation starts with `entry`. Default: `true`.
   */
  readonly continueWithLastActive?: boolean;
  /** Maximum number of handoffs. A further handoff interrupts the invocation with `max_handoffs`. Default: 8. */
  readonly maxHandoffs?: number;
  /**
   * Whether to interrupt the invocation with `swarm_cycle` if the same two or more peers hand over to each other in the
   * same order twice in a row, such as `a, b, c, a, b, c`. Default: `true`.
   */
  readonly detectCycles?: boolean;
  /**
   * Whether a peer sees the whole conversation. `false` means that it sees only the message or the input of the
   * handoff. Default: `true`.
   */
  readonly passFullHistory?: boolean;
  /**
   * Name of the swarm. Peers run as agents named `<agent>@<name>`, so swarms that share an agent need different names.
   * Default: the names of the peers, joined with a dot.
   */
  readonly name?: string;
}

const peerTable = optionTable({
  ...memberKinds,
  input: is.any,
  inputFilter: is.any,
} satisfies OptionKinds<SwarmPeer>);

const knownOptions = optionTable({
  peers: is.any,
  entry: is.text(),
  continueWithLastActive: is.boolean({ default: true }),
  maxHandoffs: is.integer({ from: 1, default: 8 }),
  detectCycles: is.boolean({ default: true }),
  passFullHistory: is.boolean({ default: true }),
  name: is.text(),
} satisfies OptionKinds<SwarmOptions>);

/**
 * Peers without a supervisor: one peer at a time has the conversation and either answers or hands it over. Each peer is
 * spawned for its part with handoff tools that the agent itself does not have.
 */
export class Swarm implements Architecture {
  readonly name = "swarm";
  readonly requiresModel = false;
  readonly #peers: TeamMembers;
  readonly #filters: ReadonlyMap<string, NonNullable<SwarmPeer["inputFilter"]>>;
  readonly #schemas: readonly (readonly [peer: string, schema: JsonSchema])[];
  readonly #entry: string;
  readonly #continueWithLastActive: boolean;
  readonly #maxHandoffs: number;
  readonly #detectCycles: boolean;
  readonly #passFullHistory: boolean;

  constructor(options: SwarmOptions) {
    const { entry, maxHandoffs, continueWithLastActive, detectCycles, passFullHistory } = knownOptions.read(
      "swarm()",
      options,
    );
    this.#continueWithLastActive = continueWithLastActive;
    const peerEntries = Object.entries(options.peers).map(([name, peer]): [string, SwarmPeer] => [
      name,
      "agent" in peer ? peer : { agent: peer },
    ]);
    const plain = new TeamMembers("swarm", "peers", Object.fromEntries(peerEntries), 2, peerTable);
    for (const [name, { input, inputFilter }] of peerEntries) {
      if (input !== undefined && !isRecord(input))
        throw new Fault(
          "invalid_argument",
          `input of peer ${name} of swarm is ${describeValue(input)}: it must be a JSON Schema object`,
        );
      if (inputFilter !== undefined && typeof inputFilter !== "function")
        throw new Fault(
          "invalid_argument",
          `inputFilter of peer ${name} of swarm is ${describeValue(inputFilter)}: it must be a function`,
        );
    }
    this.#schemas = peerEntries.flatMap(([name, { input }]) => (input === undefined ? [] : [[name, input]]));
    const swarmName = options.name ?? plain.names.join(".");
    this.#passFullHistory = passFullHistory;
    const derived = peerEntries.map(([name, { input: _input, inputFilter: _filter, ...peer }]) => {
      const targets = peerEntries
        .filter(([other]) => other !== name)
        .map(([other, { input }]) => ({
          name: other,
          description: plain.describe(other),
          ...(input !== undefined && { input }),
        }));
      const architecture = new HandoffArchitecture(peer.agent.architecture, targets, passFullHistory);
      const peerName = `${peer.agent.name}@${swarmName}`.slice(0, 128);
      return [name, { ...peer, agent: peer.agent.with({ name: peerName, architecture }) }] as const;
    });
    this.#peers = new TeamMembers("swarm", "peers", Object.fromEntries(derived), 2);
    this.#filters = new Map(
      peerEntries.flatMap(([name, { inputFilter }]) =>
        inputFilter === undefined ? [] : [[name, inputFilter]],
      ),
    );
    this.#entry = entry ?? plain.names[0] ?? "";
    if (plain.find(this.#entry) === undefined)
      throw new Fault(
        "invalid_argument",
        `entry of swarm is ${this.#entry}, which is not a peer; peers: ${plain.names.join(", ")}`,
      );
    this.#maxHandoffs = maxHandoffs;
    this.#detectCycles = detectCycles;
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return endOnWorkerInterruption(session, this.#work(session, deps, prompt));
  }

  async *#work(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    await this.#acceptSchemas(deps);
    const promptContext = await loadPromptContext(session, deps, prompt);
    const entry = this.#startingPeer(session);
    const path = [entry];
    let input = this.#opening(promptContext);
    // Every peer gets these, because any peer may write the answer of the swarm.
    const { prompt: _prompt, history: _history, ...carriedOver } = input;
    let history: readonly ChatMessage[] = [
      ...(input.history ?? []),
      opening(prompt, promptContext.attachments),
    ];
    yield architectureEvent(this.name, "started", { entry, peers: this.#peers.names });
    for (;;) {
      const active = path.at(-1) ?? entry;
      yield architectureEvent(this.name, "active", { agent: active });
      const member = this.#peers.get(active);
      const onPartialText = keepPartialText(session);
      const result = await runWorker(deps, {
        worker: member.agent,
        input,
        options: { ...spawnOptionsOf(member), handsOver: true },
        onPartialText: onPartialText,
      });
      if (result.kind !== "answered")
        yield architectureEvent(this.name, "peer_interrupted", { agent: active });
      session.metadata["swarm"] = { path: [...path] };
      const hasText = adoptWorkerResult(session, deps, active, result);
      const handoff = result.kind === "answered" ? readHandoff(result.metadata) : undefined;
      if (handoff === undefined) {
        if (!hasText) yield architectureEvent(this.name, "empty_answer", { agent: active });
        else appendAnswerOf(active, session, promptContext);
        yield architectureEvent(this.name, "completed", { agent: active, handoffs: path.length - 1 });
        return;
      }
      const { target } = handoff;
      if (path.length > this.#maxHandoffs) {
        yield architectureEvent(this.name, "max_handoffs", {
          handoffs: path.length - 1,
          agent: active,
          target,
        });
        return stop(session, "max_handoffs");
      }
      path.push(target);
      session.metadata["swarm"] = { path: [...path] };
      yield architectureEvent(this.name, "handoff", { from: active, to: target, message: handoff.message });
      const cycle = this.#detectCycles ? cycleLength(path) : 0;
      if (cycle > 0) {
        yield architectureEvent(this.name, "cycle_detected", { path: path.slice(-2 * cycle) });
        return stop(session, "swarm_cycle");
      }
      // The first message of the peer's conversation is its own input, which the history already contains.
      history = [...history, ...handoff.said.slice(1)];
      const brief = await this.#brief(deps, { from: active, to: target, handoff, history });
      input = { ...carriedOver, ...brief };
      const { prompt: asked } = input;
      history = [...history, opening(typeof asked === "string" ? asked : textOf(asked), [])];
    }
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#peers.agents;
  }

  /**
   * Checks the input schemas before the first model call, because a handoff with an invalid schema would never
   * succeed.
   */
  async #acceptSchemas(deps: Dependencies): Promise<void> {
    for (const [name, schema] of this.#schemas) {
      try {
        await deps.problemsOf(schema, null);
      } catch (error) {
        const { message } = Fault.from(error);
        throw new Fault("invalid_argument", `input of peer ${name} of swarm: ${message}`, { cause: error });
      }
    }
  }

  /**
   * Returns the peer that starts the invocation. It depends only on the session's messages, which the step `turn`
   * has recorded (J4), so that a replay starts with the same peer.
   */
  #startingPeer({ messages }: AgentSession): string {
    const last = this.#continueWithLastActive ? lastActivePeer(messages) : undefined;
    return last !== undefined && this.#peers.find(last) !== undefined ? last : this.#entry;
  }

  #opening(promptContext: PromptContext): WorkerBrief {
    const { format } = promptContext;
    const schema = format?.type === "json" ? format.schema : undefined;
    // The output format is part of the instructions only: a peer that hands over gives no answer, so it is not
    // enforced.
    const { history, ...brief } = workerBrief(promptContext, schema && withFormat("", schema));
    return this.#passFullHistory && history !== undefined ? { ...brief, history } : brief;
  }

  async #brief(
    { ctx }: Dependencies,
    {
      from,
      to,
      handoff: { message, input },
      history,
    }: { from: string; to: string; handoff: Handoff; history: readonly ChatMessage[] },
  ): Promise<WorkerBrief> {
    const filter = this.#filters.get(to);
    const shown = this.#passFullHistory ? history : [];
    if (filter !== undefined) {
      const filtered = await ctx.step(`input of ${to}`, async () => {
        const brief = (await filter({ from, to, message, input, history: shown })) as unknown as JsonValue;
        if (isRecord(brief) && readInput(brief) !== undefined) return brief;
        throw new Fault(
          "invalid_argument",
          `inputFilter of peer ${to} of swarm returned ${describeValue(brief)}: it must return { prompt, instructions?, history? }, with a text or a list of parts as prompt`,
        );
      });
      return filtered as unknown as WorkerBrief;
    }
    const prompt = input === null ? message : JSON.stringify(input);
    return shown.length === 0 ? { prompt } : { prompt, history: shown };
  }
}

function stop(session: AgentSession, reason: string): void {
  session.interrupted = true;
  session.interruptionReason = reason;
}

function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Returns the length of the sequence of peers that occurs twice in a row at the end of a path. 0 if there is no
 * such sequence.
 */
function cycleLength(path: readonly string[]): number {
  for (let length = 2; 2 * length <= path.length; length++) {
    const earlier = path.slice(-2 * length, -length);
    if (path.slice(-length).every((peer, index) => peer === earlier[index])) return length;
  }
  return 0;
}

/** Key in the answer's `providerMetadata.reeve` for the name of the peer that answered. Stored in sessions. */
const peerKey = "swarmPeer";

/** Appends the answer of a peer to the session and marks it with the peer's name, for the next invocation. */
function appendAnswerOf(
  peer: string,
  session: AgentSession,
  { prompt, attachments }: Pick<PromptContext, "prompt" | "attachments">,
): void {
  const providerMetadata = { reeve: { [peerKey]: peer } };
  const answer = { ...assistantMessage(session.output), providerMetadata };
  session.messages = session.messages.append(opening(prompt, attachments), answer);
  session.attachments = [];
}

/** Returns the peer that gave the latest answer of a swarm in these messages. */
function lastActivePeer(messages: AgentSession["messages"]): string | undefined {
  for (let index = messages.length - 1; index >= 0; index--) {
    const peer = messages.at(index)?.providerMetadata?.["reeve"]?.[peerKey];
    if (typeof peer === "string") return peer;
  }
  return undefined;
}

/**
 * Creates an architecture of peers that hand the conversation over to each other. Use it if the peer that gets a
 * message may not be the one that can answer it.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { swarm } from "reeve/architectures";
 *
 * const reception = new Agent({ name: "reception", model: "anthropic/claude-sonnet-5", description: "Greets customers." });
 * const bank = new Agent({ name: "bank", model: "anthropic/claude-sonnet-5", description: "Handles payments." });
 * const team = new Agent({ name: "office", architecture: swarm({ peers: { reception, bank }, entry: "reception" }) });
 * ```
 */
export function swarm(options: SwarmOptions): Swarm {
  return new Swarm(options);
}
