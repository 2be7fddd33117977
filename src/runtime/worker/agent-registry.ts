import {
  checkMethods,
  describeValue,
  Fault,
  is,
  memberNames,
  modelTimeouts,
  optionTable,
  retrySettings,
  type AgentId,
  type AgentResolver,
  type AgentsOfName,
  type AgentVersion,
  type CallPath,
  type Clock,
  type HostedAgent,
  type Journal,
  type ModelPipeline,
  type OptionKind,
  type OptionKinds,
  type RunId,
  type RunRecord,
  type ToolPipeline,
  readProperty,
  refuseOtherParts,
  spelledAs,
} from "../../kernel/index.ts";
import { AgentResolvers } from "./agent-resolvers.ts";
import type { AgentLookup, VersionPolicy } from "../process/worker-context.ts";

/** An agent and, recursively, its sub-agents, by id. */
export type AgentTree = ReadonlyMap<AgentId, HostedAgent>;

export interface AgentRegistryOptions {
  /** What `register` does with an agent whose id another agent already has. */
  readonly sameName: "refuse" | "replace";
  readonly versionPolicy: VersionPolicy;
  readonly clock: Clock;
}

/**
 * Maximum time of a resolver, in milliseconds. A runtime that closes waits for resolvers, so that one that never
 * returns must not block it.
 */
const resolveMs = 30_000;

/**
 * The agents that this worker hosts. With `sameName: "replace"` a later agent may take an id. Therefore a run is
 * bound to the agents with which it was submitted, until it has ended and cannot be resumed.
 */
export class AgentRegistry {
  readonly #options: AgentRegistryOptions;
  readonly #hosted = new Map<AgentId, HostedAgent>();
  readonly #resolvers = new AgentResolvers();
  /** The hosted agents in the form that `Leases.claim` accepts. Computed when it is first used after a change. */
  #versions: readonly (AgentVersion | AgentsOfName)[] | undefined;
  readonly #byRun = new Map<RunId, AgentTree>();
  /** Bound runs that have ended. They may be resumed until retention deletes them. */
  readonly #resumable = new Set<RunId>();

  constructor(options: AgentRegistryOptions) {
    this.#options = options;
  }

  get hosted(): ReadonlyMap<AgentId, HostedAgent> {
    return this.#hosted;
  }

  get replacesSameName(): boolean {
    return this.#options.sameName === "replace";
  }

  /**
   * The versions of agents whose runs are claimed. J9: with `versionPolicy: "pin"`, a run of another version is not
   * even claimed.
   */
  get versions(): readonly (AgentVersion | AgentsOfName)[] {
    return (this.#versions ??= [
      ...[...this.#hosted.values()].map((agent) => ({
        agentId: agent.id,
        ...(this.#isPinned(agent) && { version: agent.version ?? null }),
      })),
      ...this.#resolvers.names,
    ]);
  }

  /** Whether this worker can execute the run: it hosts or resolves the root agent, in the right version if runs are pinned (J9). */
  canDrive({ runId, agentId, agentVersion }: RunRecord): boolean {
    const agent = this.#byRun.get(runId)?.get(agentId) ?? this.#hosted.get(agentId);
    if (agent === undefined) return this.#resolvers.takes({ runId, agentId });
    return !this.#isPinned(agent) || (agent.version ?? null) === agentVersion;
  }

  #isPinned({ versionPolicy = this.#options.versionPolicy }: HostedAgent): boolean {
    return versionPolicy === "pin";
  }

  /** Hosts the agent and its sub-agents, all of them or none. Returns whether the hosted agents have changed. */
  register(agent: HostedAgent): boolean {
    requireAgent(agent);
    if (this.#hosted.get(agent.id) === agent) return false;
    const tree = agentTree(agent);
    if (!this.replacesSameName) for (const each of tree.values()) this.#refuseOther(each);
    for (const [agentId, each] of tree)
      if (this.#hosted.get(agentId)?.standsFor !== each) this.#hosted.set(agentId, each);
    this.#versions = undefined;
    return true;
  }

  /**
   * Registers a resolver, so that runs of all agents with its name are executed. Returns whether the resolvers have
   * changed.
   */
  registerResolver(resolver: AgentResolver): boolean {
    if (!this.#resolvers.register(resolver, this.replacesSameName)) return false;
    this.#versions = undefined;
    return true;
  }

  /** Whether this worker hosts nothing and resolves nothing. */
  get isEmpty(): boolean {
    return this.#hosted.size + this.#resolvers.size === 0;
  }

  /** Whether this worker hosts the agent, or a resolver for agents of its name. */
  mayHost(agentId: AgentId): boolean {
    return this.#hosted.has(agentId) || this.#resolvers.has(agentId);
  }

  /** Whether the agents of a run may have to be resolved before the run is executed. */
  get mayResolve(): boolean {
    return this.#resolvers.size > 0;
  }

  /**
   * Returns the agents of a run whose root agent is resolved: first the resolved ones, then the hosted ones.
   * `undefined` if the root agent is hosted. Rejects if the resolver takes longer than `resolveMs`.
   */
  async resolve(run: RunRecord): Promise<AgentLookup | undefined> {
    if (this.#hosted.has(run.agentId)) return undefined;
    const agent = await this.#resolveInTime(run);
    if (agent === undefined) return undefined;
    const own = agentTree(agent);
    return { get: (agentId) => own.get(agentId) ?? this.#hosted.get(agentId) };
  }

  async #resolveInTime(run: RunRecord): Promise<HostedAgent | undefined> {
    const { clock } = this.#options;
    const late = Promise.withResolvers<never>();
    const cancel = clock.schedule(clock.now() + resolveMs, () =>
      late.reject(
        new Fault(
          "internal",
          `the resolver of ${run.agentId} returned no agent for ${run.runId} within ${resolveMs} ms; let resolve() return or reject sooner`,
        ),
      ),
    );
    try {
      return await Promise.race([this.#resolvers.resolve(run), late.promise]);
    } finally {
      cancel();
    }
  }

  /** Called when the agents have changed. This worker may now execute runs that it has left to other workers. */
  forgetLeftAlone(): void {
    this.#resolvers.forgetLeftAlone();
  }

  #refuseOther(agent: HostedAgent): void {
    const known = this.#hosted.get(agent.id);
    if (known === undefined || known === agent || isSubstitute(known, agent)) return;
    throw new Fault(
      "already_exists",
      `another agent is registered as ${agent.id}: give one of the two another name or a key, or open the runtime with sameName: "replace"`,
    );
  }

  /**
   * Returns the agents for a bound run: first those with which it was submitted, then the hosted ones. `undefined`
   * for any other run.
   */
  forRun(runId: RunId): AgentLookup | undefined {
    const own = this.#byRun.get(runId);
    return own && { get: (agentId) => own.get(agentId) ?? this.#hosted.get(agentId) };
  }

  /** Returns whether the run is bound by this call; `false` if it was bound before. */
  bind(runId: RunId, agents: AgentTree): boolean {
    if (this.#byRun.has(runId)) return false;
    this.#byRun.set(runId, agents);
    return true;
  }

  unbind(runId: RunId): void {
    this.#byRun.delete(runId);
    this.#resumable.delete(runId);
  }

  /** Records that the run has ended. It may be resumed until retention deletes it. */
  noteResumable(runId: RunId): void {
    if (this.#byRun.has(runId)) this.#resumable.add(runId);
  }

  /** Unbinds the runs that retention has deleted. Costs O(resumable runs). */
  async unbindCollected(journal: Pick<Journal, "find">): Promise<void> {
    for (const runId of this.#resumable) if ((await journal.find(runId)) === undefined) this.unbind(runId);
  }
}

/** Throws for a value that is not an agent, such as the name of one. */
function requireAgent(agent: HostedAgent): void {
  if (typeof agent?.run === "function") return;
  throw new Fault(
    "invalid_argument",
    `invalid agent ${describeValue(agent)}: expected an agent; use new Agent({ ... }), or an object with id and run`,
  );
}

/** Throws for settings of model calls that would cause endless retries or attempts that never end. */
function checkModelSettings({ id, modelTimeouts: timeouts, retry }: HostedAgent): void {
  if (timeouts !== undefined) modelTimeouts(`agent ${id}`, timeouts);
  if (retry !== undefined) retrySettings(retry, `agent ${id}`);
}

/**
 * Checks and middleware that were validated before. They are remembered, because `agentTree` passes them again with
 * each submission.
 */
const checked = new WeakSet<object>();

/**
 * Throws for a check or middleware without its methods, and for one with other functions, which would never be
 * called.
 */
function checkEntry(place: string, entry: unknown, called: readonly string[], shape: string): void {
  if (typeof entry !== "object" || entry === null)
    throw new Fault("invalid_argument", `invalid ${place}: expected ${shape}, not ${describeValue(entry)}`);
  if (checked.has(entry)) return;
  checkMethods(place, entry, called.slice(0, 1), `expected ${shape}`);
  refuseOtherParts(
    place,
    entry,
    called,
    (name) => `is never called, only ${list(called)}; make a helper a private member (#${name})`,
  );
  checked.add(entry);
}

function list(methods: readonly string[]): string {
  return methods.map((method) => `${method}()`).join(" and ");
}

const middleware = is.checkedBy((value: unknown, option, owner) => {
  if (value !== null) checkEntry(`${option} of ${owner}`, value, ["process"], "an object with process()");
});

/** Option kind for a list of checks. Each call uses their method `called[0]`. */
function entries(called: readonly string[]): OptionKind<never> {
  const shape = "{ name, decide }";
  return is.checkedBy((value: unknown, option, owner) => {
    is.list({ hint: `use ${option}: [${shape}]` }).check?.(value, option, owner);
    for (const [index, entry] of ((value as readonly unknown[] | null) ?? []).entries()) {
      const name = readProperty(entry, "name");
      const isNamed = typeof name === "string" && name !== "";
      const place = `entry ${isNamed && typeof entry === "object" ? name : index + 1} of ${option} of ${owner}`;
      checkEntry(place, entry, called, shape);
      if (!isNamed)
        throw new Fault(
          "invalid_argument",
          `invalid name ${describeValue(name)} of ${place}: expected a text that says who decides`,
        );
    }
  });
}

const toolPipelineTable = optionTable({
  repair: is.callback(),
  before: entries(["decide", "remember"]),
  around: middleware,
  after: entries(["decide"]),
} satisfies OptionKinds<ToolPipeline>);

const modelPipelineTable = optionTable({ around: middleware } satisfies OptionKinds<ModelPipeline>);

/** Returns how a custom agent provides the policy that `new Agent()` takes as options. */
const gateOf = (part: string): string =>
  `use callPath: { tool: composeGate({ ${part} }) }, or new Agent({ ${part} })`;
const pathOfMiddleware =
  "use callPath: new MiddlewarePipeline(middleware).callPath(), or new Agent({ middleware })";

/** Options of `new Agent()` that are policy, with what a custom agent has instead. */
const policyOptions: ReadonlyMap<string, string> = new Map([
  ["middleware", pathOfMiddleware],
  ["permissions", gateOf("permissions")],
  ["guardrails", gateOf("guardrails")],
  ["toolHooks", "use callPath: { tool: composeGate({ hooks }) }, or new Agent({ toolHooks })"],
  ["hooks", "use callPath: { observer: hooks }, or new Agent({ hooks })"],
  ["repairToolCall", "use callPath: { tool: { repair: repairToolCall } }"],
  ["telemetry", "use callPath: new MiddlewarePipeline([tracing({ telemetry })]).callPath()"],
  ["maxTurns", "use budget: { maxTurns }"],
  [
    "onApproval",
    "answer with run.approve(), or use permissions({ onAsk: onApproval }) and callPath: { tool: composeGate({ permissions }) }",
  ],
  ...["extensions", "maxToolCallsPerTurn", "maxParallelToolCalls", "prepareStep"].map(onlyOfAgent),
  ...["stopWhen", "stopHooks", "reviewers", "compaction"].map(onlyOfAgent),
]);

function onlyOfAgent(option: string): readonly [option: string, fix: string] {
  return [option, `use new Agent({ ${option}, architecture })`];
}

/** Agents whose members were compared with the names of policy options. */
const spelled = new WeakSet<object>();

/**
 * Throws for policy that the runtime does not read on a custom agent. The author of the agent expects it to apply,
 * but every call would pass without it. A private member (`#hooks`) cannot be detected.
 */
function checkPolicy(agent: HostedAgent): void {
  for (const [option, fix] of policyOptions) refusePolicy(agent, option, fix);
  if (spelled.has(agent)) return;
  for (const name of memberNames(agent)) {
    const option = policyOptions.has(name) ? undefined : policySpelled(name);
    if (option !== undefined)
      refusePolicy(agent, name, `it resembles ${option}; ${policyOptions.get(option) ?? ""}`);
  }
  spelled.add(agent);
}

function refusePolicy(agent: HostedAgent, name: string, fix: string): void {
  const value: unknown = readProperty(agent, name);
  if (value === undefined || value === null) return;
  throw new Fault(
    "invalid_argument",
    `agent ${agent.id} has ${name}, which would have no effect, because an agent without the class Agent does not have this option: ${fix}`,
  );
}

/**
 * Returns the policy option that a name probably means, apart from its spelling and a missing or additional plural.
 */
function policySpelled(name: string): string | undefined {
  return [name, `${name}s`, name.replace(/s$/u, "")].flatMap(
    (each) => spelledAs(each, policyOptions.keys()) ?? [],
  )[0];
}

const movedMembers: ReadonlyMap<string, string> = new Map([
  ["middleware", pathOfMiddleware],
  ["agent", "a call path has no level agent; use new Agent({ middleware })"],
  ["permissions", gateOf("permissions")],
  ["guardrails", gateOf("guardrails")],
  ["hooks", "use observer"],
  ["gate", "use tool.before and tool.after, which are lists of entries"],
  ["function", "use tool.around"],
  ["repair", "use tool.repair"],
  ["chat", "use model.around"],
]);

const callPathTable = optionTable(
  {
    model: is.options(modelPipelineTable),
    tool: is.options(toolPipelineTable),
    observer: is.withMethods(["observe", "settled"], "use new HookManager()"),
  } satisfies OptionKinds<CallPath>,
  (name) => movedMembers.get(name),
);

/** Throws for an unknown member of `callPath`, because checks that are never asked would let every call pass. */
function checkCallPath({ id, callPath }: HostedAgent): void {
  if (callPath === undefined) return;
  const owner = `callPath of agent ${id}`;
  callPathTable.read(owner, callPath);
  // The table does not see the members of a class.
  for (const [name, fix] of movedMembers)
    if (readProperty(callPath, name) !== undefined)
      throw new Fault("invalid_argument", `unknown option ${describeValue(name)} of ${owner}: ${fix}`);
}

/** Whether one of two agents replaces the other on a worker. */
function isSubstitute(one: HostedAgent, other: HostedAgent): boolean {
  return one.standsFor === other || other.standsFor === one;
}

/**
 * Returns an agent with its sub-agents, by id. Throws if two different agents have the same id, because sub-agents
 * are spawned by id.
 */
export function agentTree(agent: HostedAgent, tree = new Map<AgentId, HostedAgent>()): AgentTree {
  requireAgent(agent);
  const known = tree.get(agent.id);
  if (known === agent || known?.standsFor === agent) return tree;
  if (known !== undefined && agent.standsFor !== known)
    throw new Fault(
      "already_exists",
      `two agents of one run are both ${agent.id}: give one of the two another name or a key`,
    );
  checkModelSettings(agent);
  checkCallPath(agent);
  checkPolicy(agent);
  tree.set(agent.id, agent);
  for (const subAgent of agent.subAgents ?? []) agentTree(subAgent, tree);
  return tree;
}
