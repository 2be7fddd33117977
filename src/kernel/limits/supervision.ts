import { describeValue } from "../base/describe-value.ts";
import { executionBudget, tightenBudget, unlimitedBudget, type ExecutionBudget } from "./execution-budget.ts";
import { Fault } from "../base/fault.ts";
import { HistoryRetention, parseHistoryRetention } from "./history-retention.ts";
import {
  agentIdOf,
  formatRunId,
  formatTopicId,
  parseRunId,
  parseSessionId,
  unnamedSessionId,
  type AgentId,
  type RunId,
  type SessionId,
  type TopicId,
} from "../base/identity.ts";
import type { IdSource } from "../base/id-source.ts";
import { Priority, parsePriority } from "./priority.ts";
import { defaultSpawnBudget, spawnBudget, type SpawnBudget } from "./spawn-budget.ts";

/** A node as it is stored and sent. */
export interface SupervisionJson {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly rootId: AgentId;
  readonly parentId: AgentId | null;
  readonly depth: number;
  readonly spawnBudget: SpawnBudget;
  readonly executionBudget: ExecutionBudget;
  readonly retention: HistoryRetention;
  readonly priority: Priority;
}

export interface RootOptions {
  readonly ids: IdSource;
  /** Absent: a new one. One that is given may have been that of a run which is gone. */
  readonly runId?: string | undefined;
  /** Absent: a new session, whatever the run's id. */
  readonly sessionId?: string | undefined;
  readonly spawnBudget?: Partial<SpawnBudget> | undefined;
  readonly executionBudget?: Partial<ExecutionBudget>;
  /** PERMANENT unless told. */
  readonly retention?: HistoryRetention | undefined;
  readonly priority?: Priority | undefined;
}

export interface ChildOptions {
  /** The agent that hires: the manager in the org chart. */
  readonly parentId: AgentId;
  /** Absent: the parent's. Present: tightened by the parent's (B6). */
  readonly executionBudget?: Partial<ExecutionBudget>;
  /** RUN unless told. */
  readonly retention?: HistoryRetention;
  /** NORMAL unless told; a branch's rank is not inherited. */
  readonly priority?: Priority;
}

type Fields = Omit<Supervision, "isRoot" | "progressTopic" | "spawnChild" | "toJSON">;

/** One agent's position in a run's org chart. Deeply frozen: a child is derived, a node is never changed. */
export class Supervision {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly rootId: AgentId;
  readonly parentId: AgentId | null;
  /** For display only; there is no limit on depth. */
  readonly depth: number;
  /** The same object in every node of one tree, so that the cap is the tree's and not a branch's. */
  readonly spawnBudget: SpawnBudget;
  readonly executionBudget: ExecutionBudget;
  readonly retention: HistoryRetention;
  readonly priority: Priority;

  private constructor(fields: Fields) {
    this.runId = fields.runId;
    this.sessionId = fields.sessionId;
    this.rootId = fields.rootId;
    this.parentId = fields.parentId;
    this.depth = fields.depth;
    this.spawnBudget = fields.spawnBudget;
    this.executionBudget = fields.executionBudget;
    this.retention = fields.retention;
    this.priority = fields.priority;
    Object.freeze(this);
  }

  /** The top of a new tree. */
  static root(agentId: AgentId, options: RootOptions): Supervision {
    const { ids, runId: given, retention = HistoryRetention.PERMANENT, priority = Priority.NORMAL } = options;
    const runId = given === undefined ? formatRunId(ids.next()) : parseRunId(given);
    return new Supervision({
      runId,
      sessionId:
        options.sessionId === undefined
          ? unnamedSessionId(runId, given === undefined ? undefined : ids.next())
          : parseSessionId(options.sessionId),
      rootId: agentIdOf(agentId),
      parentId: null,
      depth: 0,
      spawnBudget: options.spawnBudget === undefined ? defaultSpawnBudget : spawnBudget(options.spawnBudget),
      executionBudget:
        options.executionBudget === undefined ? unlimitedBudget : executionBudget(options.executionBudget),
      retention: parseHistoryRetention(retention),
      priority: parsePriority(priority),
    });
  }

  spawnChild(options: ChildOptions): Supervision {
    const { parentId, retention = HistoryRetention.RUN, priority = Priority.NORMAL } = options;
    return new Supervision({
      runId: this.runId,
      sessionId: this.sessionId,
      rootId: this.rootId,
      parentId: agentIdOf(parentId),
      depth: this.depth + 1,
      spawnBudget: this.spawnBudget,
      executionBudget:
        options.executionBudget === undefined
          ? this.executionBudget
          : tightenBudget(this.executionBudget, options.executionBudget),
      retention: parseHistoryRetention(retention),
      priority: parsePriority(priority),
    });
  }

  get isRoot(): boolean {
    return this.parentId === null;
  }

  /** Every agent of the run reports here, so that one subscription shows the whole tree. */
  get progressTopic(): TopicId {
    return formatTopicId({ type: "agent.progress", source: this.runId });
  }

  toJSON(): SupervisionJson {
    const { runId, sessionId, rootId, parentId, depth, retention, priority } = this;
    return {
      runId,
      sessionId,
      rootId,
      parentId,
      depth,
      spawnBudget: { ...this.spawnBudget },
      executionBudget: { ...this.executionBudget },
      retention,
      priority,
    };
  }

  /**
   * A stored node. Nodes revived one by one have equal spawn budgets, not the same object; hand in the tree's to share it.
   */
  static fromJSON(json: SupervisionJson, shared?: SpawnBudget): Supervision {
    if (!Number.isSafeInteger(json.depth) || json.depth < 0) {
      throw new Fault(
        "invalid_argument",
        `depth is ${describeValue(json.depth)}: it must be an integer from 0`,
      );
    }
    if (json.spawnBudget === undefined || json.executionBudget === undefined) {
      throw new Fault("invalid_argument", "a stored node without its budgets cannot be trusted to have none");
    }
    const budget = spawnBudget(json.spawnBudget);
    const same = shared?.maxAgents === budget.maxAgents && shared.allowPreempt === budget.allowPreempt;
    return new Supervision({
      runId: parseRunId(json.runId),
      sessionId: parseSessionId(json.sessionId),
      rootId: agentIdOf(json.rootId),
      parentId: json.parentId === null ? null : agentIdOf(json.parentId),
      depth: json.depth,
      spawnBudget: same ? Object.freeze(shared) : budget,
      executionBudget: executionBudget(json.executionBudget),
      retention: parseHistoryRetention(json.retention),
      priority: parsePriority(json.priority),
    });
  }
}
