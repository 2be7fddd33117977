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
import type { IdSource } from "../base/sources.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import { Priority, parsePriority } from "./priority.ts";
import { defaultSpawnBudget, spawnBudget, type SpawnBudget } from "./budget.ts";

/** The serialised form of a `Supervision`. */
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
  /** Id of the run. An earlier run that no longer exists may have had the same id. Default: a new id. */
  readonly runId?: string | undefined;
  /** Id of the session. If absent, the run gets a new session, even if `runId` was used before. */
  readonly sessionId?: string | undefined;
  readonly spawnBudget?: Partial<SpawnBudget> | undefined;
  readonly executionBudget?: Partial<ExecutionBudget>;
  /** Default: `PERMANENT`. */
  readonly retention?: HistoryRetention | undefined;
  readonly priority?: Priority | undefined;
}

export interface ChildOptions {
  /** The agent that spawns the child. */
  readonly parentId: AgentId;
  /**
   * Budget of the child, to which the limits of the parent apply too (B6). If absent, the child has its parent's
   * budget.
   */
  readonly executionBudget?: Partial<ExecutionBudget>;
  /**
   * Retention of the child's history. Default: `RUN`. A child of a task with `NONE` always has `NONE`, because the
   * child's input repeats content of the parent.
   */
  readonly retention?: HistoryRetention;
  /** Priority of the child. Default: `NORMAL`. A child does not inherit its parent's priority. */
  readonly priority?: Priority;
}

const rootTable = optionTable({
  ids: is.any,
  runId: is.text(),
  sessionId: is.text(),
  spawnBudget: is.any,
  executionBudget: is.any,
  retention: is.any,
  priority: is.any,
} satisfies OptionKinds<RootOptions>);
const childTable = optionTable({
  parentId: is.any,
  executionBudget: is.any,
  retention: is.any,
  priority: is.any,
} satisfies OptionKinds<ChildOptions>);

type Fields = Omit<Supervision, "isRoot" | "progressTopic" | "spawnChild" | "toJSON">;

/**
 * The position of one agent in the tree of a run. It is deeply frozen: a child node is derived from its parent, and
 * no node ever changes.
 */
export class Supervision {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly rootId: AgentId;
  readonly parentId: AgentId | null;
  /** Distance from the root, for display only. There is no limit on the depth. */
  readonly depth: number;
  /**
   * The spawn budget, which is the same object in every node of the tree, because the limit applies to the whole
   * tree.
   */
  readonly spawnBudget: SpawnBudget;
  readonly executionBudget: ExecutionBudget;
  readonly retention: HistoryRetention;
  readonly priority: Priority;

  protected constructor(fields: Fields) {
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

  /** Creates the root of a new tree. */
  static root(agentId: AgentId, options: RootOptions): Supervision {
    const {
      ids,
      runId: given,
      retention = HistoryRetention.PERMANENT,
      priority = Priority.NORMAL,
    } = rootTable.read("Supervision.root()", options);
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
    const {
      parentId,
      retention = HistoryRetention.RUN,
      priority = Priority.NORMAL,
    } = childTable.read("spawnChild()", options);
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
      retention: parseHistoryRetention(this.retention === HistoryRetention.NONE ? this.retention : retention),
      priority: parsePriority(priority),
    });
  }

  get isRoot(): boolean {
    return this.parentId === null;
  }

  /** The topic to which every agent of the run reports, so that one subscription shows the whole tree. */
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
   * Recreates a node from its stored form. Nodes that are recreated separately have equal spawn budgets but not the
   * same object; pass `shared` to share one.
   */
  static fromJSON(json: SupervisionJson, shared?: SpawnBudget): Supervision {
    if (!Number.isSafeInteger(json.depth) || json.depth < 0) {
      throw new Fault(
        "invalid_argument",
        `invalid depth ${describeValue(json.depth)}: expected an integer from 0`,
      );
    }
    if (json.spawnBudget === undefined || json.executionBudget === undefined) {
      throw new Fault(
        "invalid_argument",
        "invalid stored Supervision: its budgets are missing, and missing budgets are not treated as unlimited",
      );
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
