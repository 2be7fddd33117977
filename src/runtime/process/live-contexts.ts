import {
  agentNameOf,
  Fault,
  type AgentId,
  type ContextFactory,
  type RunId,
  type TaskRecord,
} from "../../kernel/index.ts";
import { factsOf } from "./async-context.ts";

/** Maximum number of ended runs whose contexts are kept because the runs can be resumed. */
const maxEnded = 100;

/** The live contexts of the runs that were submitted in this process, and the factories for all other runs. */
export class LiveContexts {
  readonly #values = new Map<RunId, { readonly value: unknown }>();
  /** Runs of `#values` that have ended and can be resumed, oldest first. */
  readonly #ended = new Set<RunId>();
  readonly #factories = new Map<AgentId, ContextFactory>();
  /** Factories for runs whose agents a resolver makes, by the name of the root agent. */
  readonly #byName = new Map<string, ContextFactory>();

  /** Sets the factory for runs of an agent. It also applies to the agents below it that have no other factory. */
  register(agentId: AgentId, below: Iterable<AgentId>, factory: ContextFactory): void {
    for (const each of below) if (!this.#factories.has(each)) this.#factories.set(each, factory);
    this.#factories.set(agentId, factory);
  }

  /** Sets the factory for runs of the agents with this name that have no other factory. */
  registerName(agentName: string, factory: ContextFactory): void {
    this.#byName.set(agentName, factory);
  }

  set(runId: RunId, value: unknown): void {
    this.#values.set(runId, { value });
  }

  delete(runId: RunId): void {
    this.#values.delete(runId);
    this.#ended.delete(runId);
  }

  /** The run has ended and can be resumed. */
  noteEnded(runId: RunId): void {
    if (!this.#values.has(runId)) return;
    this.#ended.delete(runId);
    this.#ended.add(runId);
    const [oldest] = this.#ended;
    if (this.#ended.size > maxEnded && oldest !== undefined) this.delete(oldest);
  }

  /** Returns the context of a run. `undefined` if the run has none. `root` is the record of its root task. */
  forRun(tenantId: string | null, root: TaskRecord): LiveContext | undefined {
    const known = this.#values.get(root.supervision.runId);
    if (known !== undefined) return new LiveContext(tenantId, root, async () => known.value, known);
    const factory = this.#factories.get(root.agentId) ?? this.#byName.get(agentNameOf(root.agentId));
    const hasContext = factory !== undefined || root.hasContext === true;
    return hasContext ? new LiveContext(tenantId, root, factory) : undefined;
  }
}

/** The context of one run, for the time in which this process executes the run. */
export class LiveContext {
  readonly #tenantId: string | null;
  readonly #root: TaskRecord;
  readonly #factory: ContextFactory | undefined;
  #opened: { readonly value: unknown } | undefined;
  #opening: Promise<void> | undefined;

  constructor(
    tenantId: string | null,
    root: TaskRecord,
    factory: ContextFactory | undefined,
    opened?: { readonly value: unknown },
  ) {
    this.#tenantId = tenantId;
    this.#root = root;
    this.#factory = factory;
    this.#opened = opened;
  }

  /** The context. `undefined` before `open`. */
  get value(): unknown {
    return this.#opened?.value;
  }

  /**
   * Opens the context before the code of a task starts. Returns `undefined` if it is already open. If the factory
   * fails, the next call tries again. Throws `context_missing` if there is no factory.
   */
  open(): Promise<void> | undefined {
    if (this.#opened !== undefined) return undefined;
    const factory = this.#factory;
    if (factory === undefined) throw missing(this.#root);
    this.#opening ??= this.#build(factory).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #build(factory: ContextFactory): Promise<void> {
    const { context: _, ...facts } = factsOf(this.#tenantId, this.#root);
    this.#opened = { value: await factory(Object.freeze(facts)) };
  }
}

function missing({ agentId, supervision: { runId } }: TaskRecord): Fault {
  return new Fault(
    "context_missing",
    `${runId} has no context: it was submitted with one, which is not stored; call runtime.register(agent, { context: (facts) => ... }) for agent ${agentId}, then resume the run`,
    { details: { runId, agentId } },
  );
}
