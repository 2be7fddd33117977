import {
  describeValue,
  Fault,
  textOf,
  type AgentSession,
  type Architecture,
  type ChatMessage,
  type Dependencies,
  type EmittableEvent,
  type JsonSchema,
  type JsonValue,
  type WorkerBrief,
} from "../../kernel/index.ts";
import type { AgentCore } from "../agent.ts";
import { opening, readInput } from "../agent-input.ts";
import { withFormat } from "../answer-format.ts";
import { requireCount } from "./option-checks.ts";
import { HandoffArchitecture, readHandoff, type Handoff } from "./handoff.ts";
import { adoptWorkerResult, runWorker, keepPartialText } from "./run-worker.ts";
import { loadPromptContext, type PromptContext } from "./prompt-context.ts";
import { architectureEvent } from "./role-call.ts";
import { spawnOptionsOf, TeamMembers, workerBrief, type Member } from "./team-members.ts";
import { endOnWorkerInterruption } from "./worker-interruption.ts";

/** What a hand-over is, for whoever decides what the one it goes to is told. */
export interface SwarmHandOver {
  readonly from: string;
  readonly to: string;
  readonly message: string;
  /** By the schema of the one it goes to; `null` where it has none. */
  readonly input: JsonValue;
  /** The conversation so far; empty without `passFullHistory`. */
  readonly history: readonly ChatMessage[];
}

export interface SwarmPeer extends Omit<Member, "agent"> {
  readonly agent: AgentCore;
  /** What it is to be told when it is handed over to, by a tool `transfer_to_<name>` of its own. A message, unless told. */
  readonly input?: JsonSchema;
  /** Makes of a hand-over what this peer is told. Asked once, journaled. */
  readonly inputFilter?: (handOver: SwarmHandOver) => WorkerBrief | Promise<WorkerBrief>;
}

export interface SwarmOptions {
  /** At least two, who hand over to each other as they see fit. */
  readonly peers: Readonly<Record<string, AgentCore | SwarmPeer>>;
  /** Who begins. The first unless told. */
  readonly entry?: string;
  /** One more is `max_handoffs`. 8 unless told. */
  readonly maxHandoffs?: number;
  /** Two that hand over to each other, there and back and there again, are stopped: `swarm_cycle`. Unless told not to. */
  readonly detectCycles?: boolean;
  /** Whoever is handed over to is shown the whole conversation. Unless told not to: then it is told the message alone. */
  readonly passFullHistory?: boolean;
  /** Peers work as `<agent>@<name>`: tells swarms apart that share an agent. The peers' names unless told. */
  readonly name?: string;
}

/**
 * Peers without a boss: one at a time has the conversation and answers, or hands it over to another. Each is hired for its part, with tools
 * to hand over that the agent itself does not have.
 */
export class Swarm implements Architecture {
  readonly name = "swarm";
  readonly requiresModel = false;
  readonly #peers: TeamMembers;
  readonly #filters: ReadonlyMap<string, NonNullable<SwarmPeer["inputFilter"]>>;
  readonly #schemas: readonly (readonly [peer: string, schema: JsonSchema])[];
  readonly #entry: string;
  readonly #maxHandoffs: number;
  readonly #detectCycles: boolean;
  readonly #passFullHistory: boolean;

  constructor(options: SwarmOptions) {
    const { entry, maxHandoffs = 8, detectCycles = true, passFullHistory = true } = options;
    const peerEntries = Object.entries(options.peers).map(([name, peer]): [string, SwarmPeer] => [
      name,
      "agent" in peer ? peer : { agent: peer },
    ]);
    const plain = new TeamMembers("swarm", "peers", Object.fromEntries(peerEntries), 2);
    for (const [name, { input, inputFilter }] of peerEntries) {
      if (input !== undefined && !isRecord(input))
        throw new Fault(
          "invalid_argument",
          `input of peer ${name} of swarm is ${describeValue(input)}: it must be a JSON Schema, as an object`,
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
        `entry of swarm is ${this.#entry}, which is no peer; there are: ${plain.names.join(", ")}`,
      );
    this.#maxHandoffs = requireCount("swarm", "maxHandoffs", maxHandoffs);
    this.#detectCycles = detectCycles;
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return endOnWorkerInterruption(session, this.#work(session, deps, prompt));
  }

  async *#work(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    await this.#acceptSchemas(deps);
    const promptContext = await loadPromptContext(session, deps, prompt);
    const path = [this.#entry];
    let input = this.#opening(promptContext);
    // Whoever answers in the end, by hand-overs or not, answers for the swarm.
    const { prompt: _prompt, history: _history, ...carriedOver } = input;
    let history: readonly ChatMessage[] = [
      ...(input.history ?? []),
      opening(prompt, promptContext.attachments),
    ];
    yield architectureEvent(this.name, "started", { entry: this.#entry, peers: this.#peers.names });
    for (;;) {
      const active = path.at(-1) ?? this.#entry;
      yield architectureEvent(this.name, "active", { agent: active });
      const member = this.#peers.get(active);
      const onPartialText = keepPartialText(session);
      const result = await runWorker(deps, {
        worker: member.agent,
        input,
        options: spawnOptionsOf(member),
        onPartialText: onPartialText,
      });
      if (result.kind !== "answered")
        yield architectureEvent(this.name, "peer_interrupted", { agent: active });
      session.metadata["swarm"] = { path: [...path] };
      const hasText = adoptWorkerResult(session, deps, active, result);
      const handoff = result.kind === "answered" ? readHandoff(result.metadata) : undefined;
      if (handoff === undefined) {
        if (!hasText) yield architectureEvent(this.name, "empty_answer", { agent: active });
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
      if (this.#detectCycles && isCycle(path)) {
        yield architectureEvent(this.name, "cycle_detected", { path: path.slice(-4) });
        return stop(session, "swarm_cycle");
      }
      // The first message of what it said is what it was told.
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

  /** Before anything is paid: nobody could ever be handed over to by a schema that is none. */
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

  #opening(promptContext: PromptContext): WorkerBrief {
    const { format } = promptContext;
    const schema = format?.type === "json" ? format.schema : undefined;
    // In words: a peer that hands over owes no answer, so none is held to it.
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
          `inputFilter of peer ${to} of swarm gave ${describeValue(brief)}: it must give { prompt, instructions?, history? }, the prompt a text or a list of parts`,
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

/** There and back and there again. */
function isCycle(path: readonly string[]): boolean {
  const [a, b, c, d] = path.slice(-4);
  return d !== undefined && a === c && b === d && a !== b;
}

/** Peers who hand the conversation over to each other. */
export function swarm(options: SwarmOptions): Swarm {
  return new Swarm(options);
}
