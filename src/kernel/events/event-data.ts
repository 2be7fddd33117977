import type { ErrorKind, Failure } from "../base/fault.ts";
import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { RefusalReason, SeatHolder } from "../limits/headcount.ts";
import type { Exhaustion, Overrun, TopUp } from "../limits/ledger.ts";
import type { Priority } from "../limits/priority.ts";
import type { SupervisionJson } from "../limits/supervision.ts";
import type { ChatMessage, UserMessage } from "../messages/chat-message.ts";
import type { FinishReason, StopReason } from "../messages/llm-reply.ts";
import type { ToolResult } from "../messages/tool-call.ts";
import type { Usage } from "../messages/usage.ts";
import type {
  ApprovalDecision,
  ApprovalRequest,
  ForeignCallView,
  GuardrailDecision,
  GuardrailStage,
} from "../run/approval.ts";
import type { CompactionSkip } from "../run/compaction-skip.ts";
import type { CrashLoop, LostOwner } from "../run/crash-loop.ts";
import type { EditedToolResult, StoredChanges } from "../run/run-changes.ts";
import type { UpdateReply } from "../run/run-messages.ts";
import type { RunSpend } from "../run/run-record.ts";
import type { EventSource } from "./event-source.ts";
import type { Interruption, RunStatus, UnreportedSpend } from "../run/run-result.ts";
import type { FolderMerge, FolderMergeStatus, FolderWork, SomePaths } from "../run/task-folder.ts";

/** Events of the checks before a tool call. */
export interface ApprovalEvents {
  /**
   * A check denied a tool call without a question to a person. `by` names the part that denied the call: `permissions`, a
   * hook, an extension, a guardrail, a check, or the allowed tools of the run, task, turn or child (`whitelist`).
   */
  permission_deny: {
    readonly callId: string;
    readonly toolName: string;
    readonly by: string;
    readonly reason: string;
  };
  /** A person is asked. */
  approval_request: ApprovalRequest;
  /** A person answered. */
  approval_decision: { readonly approvalId: string; readonly decision: ApprovalDecision };
}

/** Events about budgets (B1 to B6). The cost of each model call is in its `message_end`. */
export interface BudgetEvents {
  /** B5: the amount used of a budget exceeded its soft threshold. */
  budget_warning: Exhaustion;
  /** B5: a budget is exhausted. `model` is the model of the call that was refused. */
  budget_exhausted: Exhaustion & { readonly model?: { readonly provider: string; readonly modelId: string } };
  /** B1: a provider billed more than the reserved upper bound. The run stops. */
  budget_overrun: Overrun;
  /** B3: an attempt ended without reported usage and was charged with its full reservation. */
  budget_lost: {
    readonly reservationId: string;
    readonly attempt: number;
    readonly tokens: number;
    readonly costUsd: number | null;
  };
  /**
   * B3: the usage of an unreported call became known, from a late answer or from a caller. `charged` is the amount that had
   * been charged for the call, and `total` is what the run has used after the correction. `status` is the status of the run
   * if it had ended; the run stays ended.
   */
  usage_corrected: {
    readonly reservationId: string;
    readonly usage: Usage;
    readonly model: { readonly provider: string; readonly modelId: string } | null;
    readonly charged: { readonly tokens: number; readonly costUsd: number | null };
    readonly total: RunSpend;
    readonly status: RunStatus | null;
    readonly by: string;
  };
  /**
   * A call of `ctx.metered` ended. `usage` is `null` if the provider billed nothing. For a call whose usage is unknown, the
   * log also has `budget_lost`.
   */
  metered_call: {
    readonly model: { readonly provider: string; readonly modelId: string };
    readonly usage: Usage | null;
    readonly durationMs: number;
    readonly status: "ok" | "refused" | "error";
    /** The output limit that the program stated, or `null`, and the limit with which the request was sent. */
    readonly limit?: { readonly asked: number | null; readonly sent: number };
    /** B1: the amount that was reserved for the call. `costUsd` is `null` if the model has no known price. */
    readonly reserved?: { readonly tokens: number; readonly costUsd: number | null };
    /** B3: the amount that the call is charged with. Present if the call ended without reported usage and is charged. */
    readonly charged?: { readonly tokens: number; readonly costUsd: number | null };
  };
  /**
   * A program sent a request to the gateway that was not charged, because the gateway refused it or it only counted tokens.
   * For a request that a budget or a cap refused, the log has `budget_exhausted` instead.
   */
  gateway_request: {
    /** The endpoint. `null` if the gateway has no endpoint at the path. */
    readonly endpoint: string | null;
    /** Status of the answer, such as 403. */
    readonly status: number;
    readonly model: string | null;
    /** Why the request was refused. Absent if it was not refused. */
    readonly reason?: string;
    /** Number of earlier requests for which no event was written, because there were too many in a short time. */
    readonly skipped?: number;
  };
  /** A caller raised the budget of a task. */
  budget_top_up: { readonly taskId: TaskId; readonly add: Partial<TopUp>; readonly by: string };
}

/** Who added a message in the name of the user: a caller, or which code of the agent. */
export type UserMessageSource = "steering" | "follow_up" | "prepare_step" | "stop_hook" | "repair";

/** Events while an architecture executes an invocation. Streamed text is sent as deltas, not as events (E2). */
export interface EngineEvents {
  /** An invocation started. */
  agent_start: {
    readonly input: JsonValue;
    readonly architecture: string;
    readonly instructionsHash?: string;
  };
  /** The invocation failed for good. Not emitted for a cancel (trap O8). */
  agent_error: { readonly failure: Failure; readonly kind?: ErrorKind };
  /**
   * A turn started. `turn` is its number. `modelRole` is the role that `prepareStep` chose for the turn, whose model then
   * writes the agent's answer. Absent for `main`.
   */
  turn_start: { readonly turn: number; readonly modelRole?: string };
  /** A turn ended. `toolCalls` is the number of its tool calls. */
  turn_end: { readonly turn: number; readonly stopReason: StopReason; readonly toolCalls: number };
  /** A message was added to the conversation in the name of the user. The input of the run is not such a message. */
  user_message: { readonly message: UserMessage; readonly source: UserMessageSource };
  /** A model starts to write a message. The deltas of the message refer to the `seq` of this event. */
  message_start: {
    readonly role: ChatMessage["role"];
    readonly attempt: number;
    /** The model that the request is meant for. Middleware may call another model. */
    readonly model?: { readonly provider: string; readonly modelId: string };
    /**
     * Role whose model is called. Absent for `main`. Text of another role, such as a summary, is not part of the agent's
     * answer, unless `turn_start` gave the turn to that role.
     */
    readonly modelRole?: string;
    /** Present if a program reports that it writes a message. The program's model calls are in `metered_call`. */
    readonly source?: EventSource;
  };
  /** A message is complete. */
  message_end: {
    readonly message: ChatMessage;
    /** As in `message_start`. */
    readonly source?: EventSource;
    readonly model?: { readonly provider: string; readonly modelId: string };
    /** As in `message_start`. */
    readonly modelRole?: string;
    readonly stopReason?: StopReason;
    readonly usage?: Usage;
    /** Duration of the successful attempt, in milliseconds. */
    readonly durationMs?: number;
  };
  /** A tool call started. */
  tool_execution_start: {
    readonly callId: string;
    readonly toolName: string;
    readonly input: JsonValue;
    /** Present if a program reports a call that it makes with its own tool. */
    readonly source?: EventSource;
    /** What the program tells about its call. */
    readonly foreign?: ForeignCallView;
  };
  /** A tool call has a result. */
  tool_execution_end: {
    readonly callId: string;
    readonly toolName: string;
    readonly result: ToolResult;
    readonly durationMs: number;
    /** Outcome of the call. `denied` means that the call was not executed. */
    readonly status?: "ok" | "error" | "denied";
    readonly metadata?: JsonObject;
    /** As in `tool_execution_start`. */
    readonly source?: EventSource;
    /**
     * What the program has reported about its call since the start of the call. It contains only the fields that have
     * changed.
     */
    readonly foreign?: ForeignCallView;
  };
}

/** Events of flows and graphs. */
export interface FlowEvents {
  /** A flow started. */
  flow_start: { readonly flow: string };
  /** A step of a flow started. */
  flow_step_start: { readonly flow: string; readonly step: string };
  /** A step of a flow ended. */
  flow_step_end: { readonly flow: string; readonly step: string; readonly status: RunStatus };
  /** A flow ended. */
  flow_end: { readonly flow: string; readonly status: RunStatus };
}

/** Events of the folders in which tasks work (`Isolation`). */
export interface FolderEvents {
  /** D3, D7: the task works in its own folder, which was created for it. */
  worktree_open: {
    readonly path: string;
    readonly branch: string;
    /**
     * The commit from which the branch started, and the branch of the caller at that time. `null` if the caller was on no
     * branch.
     */
    readonly base: string;
    readonly from: string | null;
    /** Changes of the caller that are not in the folder, because they were not committed. */
    readonly uncommitted: SomePaths;
    /** Ignored files and folders of the caller that are not in the folder. */
    readonly ignored: SomePaths;
    /** Submodules, which are empty in the folder. */
    readonly submodules: SomePaths;
    /** Ignored files that were copied on purpose. */
    readonly copied: readonly string[];
  };
  /** The task has ended its work in its folder. */
  worktree_finish: FolderWork;
  /** D9: a merge that the task requested has ended. */
  worktree_merge: FolderMerge & { readonly status: FolderMergeStatus; readonly reason?: string };
  /** D5: the folder of a task was removed. `commit` is the commit that contains the work of the task. */
  worktree_remove: { readonly path: string; readonly branch: string; readonly commit: string };
}

/** Events of guardrails. */
export interface GuardrailEvents {
  /** A guardrail decided something other than `allow`. */
  guardrail_decision: {
    readonly guardrail: string;
    readonly stage: GuardrailStage;
    readonly decision: Exclude<GuardrailDecision["decision"], "allow">;
    readonly reason: string;
    readonly callId?: string;
  };
  /** A guardrail threw an error. The error itself does not stop the run (S4). */
  guardrail_error: { readonly guardrail: string; readonly stage: GuardrailStage; readonly failure: Failure };
}

/** Events of a run as a whole. */
export interface RunEvents {
  /** The run was created. This is the first event of every run, written in the commit that creates it. */
  run_start: {
    readonly agentId: AgentId;
    readonly sessionId: SessionId;
    readonly input: JsonValue;
    readonly supervision: SupervisionJson;
    readonly metadata: JsonObject;
    /** The user who submitted the run, or the agent whose message started it. Absent if unknown. */
    readonly by?: string;
    /** B8: the total amount that limited top-ups may add to the run. Absent if they may add nothing. */
    readonly topUp?: Partial<TopUp>;
    /** What the submission changes of the agent for this run. Absent if it changes nothing. */
    readonly changes?: StoredChanges;
  };
  /**
   * L18: a worker that hosts the workflow has accepted the input of a run that was started by name. From here on the budgets
   * of the workflow apply.
   */
  run_adopt: {
    readonly supervision: SupervisionJson;
    /** J9: version of the workflow. Absent if it declares none. */
    readonly version?: string;
    /** B8: the total amount that limited top-ups may add to the run. Absent if they may add nothing. */
    readonly topUp?: Partial<TopUp>;
  };
  /**
   * A new owner took over the run and replays it. `recoveries` is the known number of workers in a row whose processes died
   * while they executed the run, before the run made progress. It is absent if the last owner released the run. `lost` is the
   * last owner. It is absent if the run only waited, was paused or had not started when the owner died (L7). `owner` is the
   * name of the new owner. It is absent in the logs of earlier versions.
   */
  run_recover: {
    readonly epoch: number;
    readonly owner?: string;
    readonly recoveries?: number;
    readonly lost?: LostOwner;
  };
  /**
   * L21: a program of the run leaves something on this machine that its later attempts need. From here on, only workers of
   * the machine claim the run.
   */
  run_bind: { readonly host: string; readonly program: string };
  /** A caller paused the run. Or the runtime paused it, because its processes died again and again while they executed it. */
  run_pause: {
    /** The caller. For a crash loop, the name of the worker. */
    readonly by: string;
    /** L7: what is known about the processes that died. Absent if a caller paused the run. */
    readonly crashLoop?: CrashLoop;
  };
  /** A caller resumed the run. */
  run_resume: { readonly by: string };
  /** A caller cancelled the run. */
  run_cancel: { readonly reason: string; readonly by: string };
  /** C1: a caller cancelled the task of this event, with its descendants. */
  task_cancel: { readonly reason: string; readonly by: string };
  /** A caller sent an input to the task of this event: steering for its next turn, or a follow-up for after its last turn. */
  run_steer: {
    readonly kind: "steer" | "follow_up";
    readonly input: JsonValue;
    readonly by: string;
    /** Id of the input. It is needed to withdraw the input. Absent in events of earlier builds. */
    readonly inputId?: string;
    /** S5: the id of the run that the input would have started. Absent if the input was not submitted. */
    readonly submittedAs?: RunId;
    /** The metadata of the submission. Absent if the input was not submitted, or has no metadata. */
    readonly metadata?: JsonObject;
  };
  /**
   * A caller withdrew an input that the task of this event had not read. With this event the input is removed from the queue.
   */
  input_withdraw: { readonly kind: "steer" | "follow_up"; readonly inputId: string; readonly by: string };
  /**
   * S5: the run completed without reading this input. The input starts the run `runId`, or goes as input to the run that is
   * in progress in the session at that time.
   */
  run_carry_over: { readonly kind: "steer" | "follow_up"; readonly runId: RunId };
  /** The task of this event, a child, completed without reading this input. */
  input_unread: { readonly kind: "steer" | "follow_up"; readonly input: JsonValue };
  /**
   * The commit of this event submits the run `runId`. `key` is the key of its `NextRun`, or `start` with the id of the
   * workflow that `ctx.start` or `ctx.send` starts.
   */
  run_scheduled: { readonly key: string; readonly runId: RunId };
  /** The run was created as a fork. All events before this one are copies of events of the original run. */
  run_fork: {
    readonly origin: RunId;
    /** The value `at` of the caller. The event before this one is the last shared event; its `seq` is at most `at`. */
    readonly at: number;
    /** Session of the fork: a copy of the original run's session at the last shared event. */
    readonly sessionId: SessionId;
    /** Usage of the calls that the fork shares with the original run. The fork's own spend starts at 0. */
    readonly inherited: Usage;
    readonly by: string;
    /** The user message that follows the shared events. Absent if the fork adds none. */
    readonly input?: JsonValue;
    /** Present if `input` replaces the input with which the run began. */
    readonly replacesInput?: true;
    /** The main model of the changed task from here on. Absent if the fork keeps the model. */
    readonly model?: { readonly provider: string; readonly modelId: string };
    /** The instructions of the changed task from here on. Absent if the fork keeps them. */
    readonly instructions?: string;
    /** Names of the tools that the changed task keeps. Absent if it keeps all tools. */
    readonly tools?: readonly string[];
    /** The results of tool calls that a person has edited. The model sees them instead of the recorded ones. */
    readonly toolResults?: readonly EditedToolResult[];
    /** The limits that the caller set for the fork. Absent if the caller set no limits. */
    readonly budget?: Partial<ExecutionBudget>;
    /** The task that the fork changes. Absent for the root. */
    readonly changedTask?: TaskId;
  };
  /** The run ended. The last event, unless the run is resumed. */
  run_end: {
    readonly status: RunStatus;
    readonly usage: Usage;
    readonly costUsd: number | null;
    readonly turns: number;
    /** B3: charge for calls without reported usage. Included in `costUsd`, not in `usage`. */
    readonly lost?: UnreportedSpend;
  };
}

/** Events of spawning and of seats. */
export interface SpawnEvents {
  /** A task was spawned. */
  spawn_start: {
    readonly childTaskId: TaskId;
    readonly agentId: AgentId;
    readonly priority: Priority;
    /** Present if the task handed over the conversation to the child (`SpawnOptions.handsOver`). */
    readonly handsOver?: true;
  };
  /**
   * A spawned task waits for a seat. `victim` is the task that must pause and give up its seat (H2). `null` means that the
   * task waits for any seat.
   */
  spawn_wait: {
    readonly childTaskId: TaskId;
    readonly agentId: AgentId;
    readonly priority: Priority;
    readonly victim: TaskId | null;
    /** As in `spawn_start`. */
    readonly handsOver?: true;
  };
  /** A spawn was refused. `holders` lists the tasks with seats (H4). */
  spawn_refuse: {
    readonly agentId: AgentId;
    readonly priority: Priority;
    readonly reason: RefusalReason;
    readonly holders: readonly SeatHolder[];
  };
  /** A task took a seat. */
  seat_grant: { readonly taskId: TaskId };
  /** A task must pause and gives its seat to the task `yieldsTo` (H2). */
  seat_yield: { readonly taskId: TaskId; readonly yieldsTo: TaskId };
  /** A task paused and holds no seat. */
  seat_pause: { readonly taskId: TaskId };
  /** A paused task got a seat again (H5). */
  seat_recall: { readonly taskId: TaskId };
  /** A task that was about to pause keeps its seat, because another task no longer needs it. */
  seat_keep: { readonly taskId: TaskId };
  /** A caller changed the priority of a task. */
  task_reprioritize: {
    readonly taskId: TaskId;
    readonly from: Priority;
    readonly to: Priority;
    readonly by: string;
  };
  /** A task passed work to a sub-agent. `task` is the text that the sub-agent receives. */
  handoff: { readonly target: AgentId; readonly childTaskId: TaskId; readonly task: string };
}

/** Events of one task. Each is emitted once, however often the task is replayed (trap R13). */
export interface TaskEvents {
  /** The task's code starts. */
  task_start: { readonly priority: Priority; readonly budget: ExecutionBudget };
  /**
   * The task has nothing to do but wait. Not emitted for a wait that ends at once. `waitsFor` lists what it waits for: names
   * that a mailbox message can resolve, and names such as `join t1` and `budget` that only the runtime resolves. `until` is
   * the earliest timeout, in epoch milliseconds.
   */
  task_suspend: { readonly waitsFor: readonly string[]; readonly until: number | null };
  /**
   * A waiting task continues. `by` is the name for which it waited, or `time`, or `cancel`, or `seat` if it also had to wait
   * for a seat.
   */
  task_wake: { readonly by: string };
  /** A signal arrived from outside, whether or not the task waits for it yet. */
  task_signal: { readonly name: string; readonly by: string };
  /**
   * J5: a resumed run waits again for a promise whose error or refused value had ended the run. `id` is the id of the
   * promise. P7: the commit of this event removes the mail `mailId`, which had settled the promise.
   */
  promise_reopen: { readonly id: string; readonly mailId: string };
  /** The task published a value with `ctx.publish`. `RunHandle.read` returns the last one of a name. */
  value_published: { readonly name: string; readonly value: JsonValue };
  /**
   * L19: a call of an object changed the state of its key with `ctx.setState`. The commit of this event stores the state.
   * `state` is absent if the call has removed it.
   */
  state_changed: { readonly object: string; readonly key: string; readonly state?: JsonValue };
  /** An update arrived from outside, whether or not the task waits for it yet. `id` is the id that its sender gave. */
  update_start: { readonly id: string; readonly name: string; readonly by: string };
  /** The task replied to an update. Each id has at most one reply. */
  update_end: { readonly id: string; readonly name: string; readonly reply: UpdateReply };
  /** The task's code crashed and starts again after `delayMs`. */
  task_retry: { readonly attempt: number; readonly delayMs: number; readonly failure: Failure };
  /** The task ended. */
  task_end: {
    /** How the task ended. The `run_end` of a run has the status of the last `task_end` of its root. */
    readonly status: RunStatus;
    readonly output?: JsonValue;
    readonly failure?: Failure;
    readonly interruption?: Interruption;
    /** Why the model stopped in the call that gave the output. Absent if the task made no model call. */
    readonly finishReason?: FinishReason;
    readonly metadata?: JsonObject;
    /** Usage of the task's own model calls that were answered, without its children. */
    readonly usage?: Usage;
    /** Present if the task had ended before and was resumed or topped up. */
    readonly again?: true;
  };
  /** J8: the task continues with an empty journal. `journal` is the number of the new journal; the first has number 0. */
  task_continue_as_new: { readonly journal: number };
  /**
   * A step of `ctx.step` is recorded. `durationMs` is the time that its body took in the process that recorded it. Model
   * calls, tool calls and waits have other events. Not emitted for a step that a replay reads from the journal.
   */
  step_end: {
    readonly name: string;
    readonly durationMs: number;
    /** Present if the body threw. */
    readonly status?: "error";
  };
  /** J5: an attempt of a step failed. The next attempt starts after `delayMs`. */
  step_retry: {
    readonly name: string;
    /** Number of the failed attempt, from 1. */
    readonly attempt: number;
    readonly delayMs: number;
    readonly failure: Failure;
  };
  /** An attempt of `ctx.attempt` starts. `number` counts from 1. */
  attempt_start: { readonly name: string; readonly number: number };
  /** The task ends without success and undoes its work with compensations. `names` has the order in which they run. */
  compensation_start: {
    readonly names: readonly string[];
    readonly status: "failed" | "cancelled" | "deadline_exceeded";
    readonly failure: Failure;
  };
  /** The compensations have ended. `failed` lists the compensations that did not succeed. */
  compensation_end: { readonly failed: readonly { readonly name: string; readonly failure: Failure }[] };
  /** J8: the journal of the task has become long, which makes a replay slow. */
  journal_warning: { readonly steps: number };
  /** The task received an inbox message. */
  mail_receive: { readonly messageId: string; readonly from: AgentId | null };
  /** An inbox message became a dead letter after `deliveries` failed deliveries. */
  mail_dead_letter: { readonly messageId: string; readonly deliveries: number };
}

/** Events of an invocation around its turns (seed 004), and errors of hooks and extensions (S4). */
export interface AgentEvents {
  /** An input arrived. `input` is the raw input, before extensions may transform it. */
  input: { readonly input: JsonValue; readonly channel?: string };
  /** The system prompt is built. The event contains its hash; the text itself is stored once. */
  before_agent_start: { readonly instructionsHash: string; readonly fromCache: boolean };
  /** The history is loaded and compacted. `messages` is the number of messages. */
  context: { readonly sessionId: SessionId; readonly leafId: string | null; readonly messages: number };
  /**
   * An invocation has ended. `turns` and `usage` count its task and all descendants so far, as the runtime has counted them.
   * The last `agent_end` of the root has the numbers of the run's result, unless a child runs longer.
   */
  agent_end: {
    readonly status: RunStatus;
    readonly output: string;
    readonly turns: number;
    readonly usage: Usage;
    readonly interruptionReason: string | null;
  };
  /**
   * The session entries of the invocation are visible. Written in the same commit as `agent_end`, after that event (trap O1).
   */
  save_point: { readonly sessionId: SessionId; readonly leafId: string | null };
  /** The session is idle: no input waits, and no compaction follows. */
  settled: { readonly sessionId: SessionId };
  /** The commit that ends this run also submits the run `runId`, which compacts the session. */
  compaction_scheduled: { readonly sessionId: SessionId; readonly runId: RunId };
  /** An extension, a tool or a full context window requested a compaction of the session after the invocation. */
  compaction_requested: { readonly sessionId: SessionId; readonly instructions?: string };
  /** The session was not compacted. `failure` says why there is no summary. */
  compaction_skipped: {
    readonly sessionId: SessionId;
    readonly reason: CompactionSkip;
    readonly failure?: Failure;
  };
  /** A compaction of the session starts. `manual` says whether a person requested it. */
  session_before_compact: {
    readonly sessionId: SessionId;
    readonly contextTokens: number;
    readonly manual: boolean;
  };
  /** A compaction of the session ended. `entryId` is the id of the `compaction` entry. */
  session_compact: {
    readonly sessionId: SessionId;
    readonly entryId: string;
    readonly tokensBefore: number;
    readonly tokensAfter: number;
  };
  /** A model failed, and the request is sent to the next candidate model. */
  model_fallback: {
    readonly from: { readonly provider: string; readonly modelId: string };
    readonly to: { readonly provider: string; readonly modelId: string };
    readonly kind: ErrorKind;
    readonly message: string;
  };
  /** A failed call is repeated after `delayMs`. */
  retry_start: {
    readonly attempt: number;
    readonly maxAttempts: number;
    readonly delayMs: number;
    readonly kind: ErrorKind;
    readonly message: string;
  };
  /** A repeated call ended. */
  retry_end: { readonly attempt: number; readonly success: boolean };
  /** Memory was read. The event contains the numbers of episodes and facts found. */
  memory_recall: { readonly episodes: number; readonly facts: number };
  /** Memory was written. For a memory file, the event contains the name of the file and the change as a patch. */
  memory_write: {
    readonly kind: "block" | "episode" | "fact" | "file";
    readonly file?: string;
    readonly diff?: string;
  };
  /** A hook threw an error. The run continues (S4). */
  hook_error: { readonly hook: string; readonly failure: Failure };
  /** An extension threw an error. The run continues (S4). */
  extension_error: { readonly extension: string; readonly event: string; readonly failure: Failure };
  /** An extension shows a message to a person. */
  extension_notice: {
    readonly extension: string;
    readonly message: string;
    readonly level: "info" | "warning" | "error";
  };
}

/** Events that architectures define, for example `plan.created`, `debate.converged` or `swarm.handoff`. */
export interface ArchitectureEvents {
  /** An event of an architecture, with its name and data. */
  architecture_event: { readonly architecture: string; readonly name: string; readonly data: JsonObject };
}
