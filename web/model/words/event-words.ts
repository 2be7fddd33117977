import { argumentOf } from "../../../src/surfaces/view/excerpt.ts";
import { folderWords } from "../../../src/surfaces/view/folder-words.ts";
import { hiredWords } from "../../../src/surfaces/view/hired-words.ts";
import {
  formatPriority,
  messageText,
  visibleLine,
  type ApprovalDecision,
  type Event,
  type RunStatus,
  type TaskId,
} from "../../../src/kernel/index.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import { addedWords } from "../../../src/surfaces/view/top-up-offer.ts";
import { endWordAt, limitOf } from "../../../src/surfaces/view/status-words.ts";
import { counted, grouped, oneLine, personName, took, usd } from "../../base/format.ts";
import { cancelSentence, cancelWords } from "../../../src/surfaces/view/cancel-words.ts";
import { amount, plainMessage } from "./failure-words.ts";
import { agentOf, callWords, waitWord } from "../../../src/surfaces/view/task-words.ts";
import { forkChangeWords } from "./fork-words.ts";
import { inputText } from "./input-text.ts";

/** Number of characters of a text that the line of an event can show. */
const mostShown = 2_000;

function line(text: string): string {
  return oneLine(text, mostShown);
}

export type EventTone = "plain" | "wait" | "bad" | "hold" | "live";

/**
 * Describes what the agent of an event did, as text after its name. In names given by others, hidden characters are
 * made visible.
 */
export function eventWords(event: Event, view: RunView): string {
  return visibleLine(wordsOf(event, view));
}

function wordsOf(event: Event, view: RunView): string {
  switch (event.type) {
    case "run_start":
      return line(inputText(event.data.input));
    case "task_end":
      return taskEndWords(event, view);
    case "run_end":
    case "agent_end":
      return endWords(event.data.status, view.tasks.get(event.taskId)?.stoppedAt);
    case "run_cancel":
      return cancelSentence(event.data);
    case "task_cancel":
      return cancelSentence(event.data, "this agent and its reports");
    case "input_unread":
      return `ended before it read: ${line(inputText(event.data.input))}`;
    case "input_withdraw":
      return `${personName(event.data.by)} took back an input before it was read`;
    case "run_adopt":
      return "a worker has accepted the input";
    case "run_recover":
      return recoverWords(event.data);
    case "run_steer":
      return `${personName(event.data.by)}: ${line(inputText(event.data.input))}`;
    case "run_fork":
      return `fork of ${event.data.origin} after event ${grouped(event.seq - 1)}${forkChangeWords(event.data)}`;
    case "message_start":
      return `calls ${event.data.model?.modelId ?? "a model"}`;
    case "message_end": {
      const { usage, message } = event.data;
      // A long answer is cut, its price is not.
      const cost = usage === undefined ? "" : `${usd(usage.costUsd)} · `;
      return `${cost}${line(messageText(message)) || "answers with calls"}`;
    }
    case "tool_execution_start":
      return `${callWords(event.data.toolName, view)} ${argumentOf(event.data.input)}`.trimEnd();
    case "tool_execution_end":
      return `${callWords(event.data.toolName, view)}: ${callEndWords(event.data)}`;
    case "user_message":
      return line(messageText(event.data.message));
    default:
      return moreWords(event, view);
  }
}

function moreWords(event: Event, view: RunView): string {
  switch (event.type) {
    case "spawn_start":
    case "spawn_wait":
      return event.type === "spawn_start"
        ? `hires ${event.data.agentId}`
        : `hires ${event.data.agentId}, which waits for a seat`;
    case "handoff":
      return `gives ${event.data.target} a task: ${line(event.data.task)}`;
    case "seat_yield":
      return `${other(event, view)}gives its seat to ${agentOf(event.data.yieldsTo, view)}`;
    case "seat_pause":
      return `${other(event, view)}pauses`;
    case "seat_grant":
      return `${other(event, view)}takes a seat`;
    case "seat_recall":
      return `${other(event, view)}continues from its journal`;
    case "seat_keep":
      return `${other(event, view)}keeps its seat`;
    case "approval_request":
      return `asks: ${event.data.toolName} ${argumentOf(event.data.input)}`.trimEnd();
    case "approval_decision":
      return decidedWords(event.data.decision);
    case "budget_lost":
      return `${usd(event.data.costUsd)} ${lossWords(event, view)}, charged in full`;
    case "usage_corrected":
      return `a call without an answer cost ${usd(event.data.usage.costUsd)}, not ${usd(event.data.charged.costUsd)}`;
    case "budget_top_up":
      return `${personName(event.data.by)} added ${addedWords(event.data.add)}`;
    case "budget_warning":
    case "budget_exhausted":
      return `has used ${amount(event.data.dimension, event.data.used)} of ${amount(event.data.dimension, event.data.limit)}`;
    case "task_reprioritize":
      return priorityWords(event.data, view);
    case "task_suspend":
      return `waits for ${event.data.waitsFor.map((name) => waitWord(name, view)).join(", ") || "a moment"}`;
    case "task_wake":
      return `continues after ${wakeWord(event.data.by, view)}`;
    case "turn_start":
      return `turn ${event.data.turn}`;
    case "turn_end":
      return `turn ${event.data.turn}, ${counted(event.data.toolCalls, "tool call")}`;
    default:
      return folderWords(event) ?? hiredWords(event) ?? rareWords(event);
  }
}

function rareWords(event: Event): string {
  switch (event.type) {
    case "input":
      return `receives ${line(inputText(event.data.input))}`;
    case "task_start":
    case "agent_start":
    case "before_agent_start":
      return "starts";
    case "context":
      return `reads ${counted(event.data.messages, "message")} of its session`;
    case "save_point":
      return "saved its session";
    case "settled":
      return "has no run left in its session";
    case "task_signal":
      return `receives the signal ${event.data.name} from ${inSentence(event.data.by)}`;
    case "promise_reopen":
      return "waits again for a promise, which may be settled again";
    case "value_published":
      return `${event.data.name}: ${line(inputText(event.data.value))}`;
    case "state_changed":
      return event.data.state === undefined
        ? `clears the state of ${event.data.object} ${event.data.key}`
        : `state of ${event.data.object} ${event.data.key}: ${line(inputText(event.data.state))}`;
    case "update_start":
      return `receives the update ${event.data.name} from ${inSentence(event.data.by)}`;
    case "update_end":
      return `answers the update ${event.data.name}: ${event.data.reply.status}`;
    case "step_end":
      return `${event.data.name}: ${took(event.data.durationMs)}`;
    case "compensation_start":
      return `undoes its work: ${event.data.names.join(", ")}`;
    case "compensation_end": {
      const { failed } = event.data;
      return failed.length === 0
        ? "has undone its work"
        : `could not undo ${failed.map(({ name }) => name).join(", ")}`;
    }
    case "step_retry":
      return `${event.data.name} failed (${line(plainMessage(event.data.failure.message))}), attempt ${event.data.attempt + 1} follows after ${took(event.data.delayMs)}`;
    case "retry_start":
      return `calls the model again after an error: ${line(plainMessage(event.data.message))}`;
    case "retry_end":
      return `attempt ${event.data.attempt + 1} ${event.data.success ? "got an answer" : "failed too"}`;
    case "model_fallback":
      return `calls ${event.data.to.modelId}, because ${event.data.from.modelId} failed: ${line(plainMessage(event.data.message))}`;
    case "attempt_start":
      return `${event.data.name} starts${event.data.number === 1 ? "" : ` again, attempt ${event.data.number}`}`;
    case "metered_call":
      return meteredWords(event.data);
    case "gateway_request":
      return gatewayWords(event.data);
    case "session_compact":
      return `summarised its session: ${grouped(event.data.tokensBefore)} to ${grouped(event.data.tokensAfter)} tokens`;
    default:
      return orderWords(event);
  }
}

/** Describes the actions of people, other agents and rules on a run. */
function orderWords(event: Event): string {
  switch (event.type) {
    case "run_pause":
      return event.data.crashLoop === undefined
        ? `${personName(event.data.by)} paused the run`
        : "is paused, because it ends the processes that execute it";
    case "run_resume":
      return `${personName(event.data.by)} resumed the run`;
    case "spawn_refuse":
      return `gets no seat for ${event.data.agentId}: ${event.data.reason.replaceAll("_", " ")}`;
    case "permission_deny":
      return `may not run ${event.data.toolName}, says ${event.data.by}: ${line(event.data.reason)}`;
    case "guardrail_decision":
      return `the guardrail ${event.data.guardrail} says ${event.data.decision}: ${line(event.data.reason)}`;
    case "mail_receive":
      return `receives a message from ${event.data.from ?? "a caller"}`;
    case "mail_dead_letter":
      return `a message was not delivered after ${counted(event.data.deliveries, "try", "tries")}`;
    default: {
      // A type without words of its own: its name, and the error if it has one.
      const name = event.type.replaceAll("_", " ");
      return "failure" in event.data && event.data.failure !== undefined
        ? `${name}: ${line(plainMessage(event.data.failure.message))}`
        : name;
    }
  }
}

/** A person inside of a sentence. */
function inSentence(by: string): string {
  return personName(by).replace(/^You$/u, "you");
}

/** A call that a program made itself. */
export function meteredWords({ model, usage, status }: Event<"metered_call">["data"]): string {
  if (usage !== null) return `called ${model.modelId} for ${usd(usage.costUsd)}`;
  return status === "refused" ? `${model.modelId} refused a call` : `a call of ${model.modelId} failed`;
}

/** Describes a request of a program for which the program paid nothing. */
export function gatewayWords({ status, model, reason }: Event<"gateway_request">["data"]): string {
  const about = model === null ? "a request" : `a request for ${model}`;
  return reason === undefined
    ? `counted the tokens of ${about}`
    : `${status}, ${about} was refused: ${reason}`;
}

/** Describes who took over a run, and from whom: `worker-a died, worker-b continues, epoch 2`. */
function recoverWords({ epoch, owner, recoveries, lost }: Event<"run_recover">["data"]): string {
  if (recoveries === undefined) return `${owner ?? "another worker"} continues, epoch ${epoch}`;
  return `${lost?.workerId ?? "a worker"} died, ${owner ?? "another one"} continues, epoch ${epoch}`;
}

function decidedWords(decision: ApprovalDecision): string {
  const isEdited = decision.decision === "approved" && decision.input !== undefined;
  return `${personName(decision.by)} ${isEdited ? "changed the arguments and approved" : decision.decision}`;
}

/** Describes who changed the priority of which agent: `You changed the priority of scout from LOW to HIGH`. */
export function priorityWords(
  { taskId, from, to, by }: Event<"task_reprioritize">["data"],
  view: RunView,
): string {
  const change = `from ${formatPriority(from)} to ${formatPriority(to)}`;
  return `${personName(by)} changed the priority of ${agentOf(taskId, view)} ${change}`;
}

/** Describes why a call got no answer: a crash, another worker that took over the run, or an order that stopped it. */
function lossWords({ seq }: Event<"budget_lost">, { recoveries }: RunView): string {
  const recovery = recoveries.findLast((each) => each.seq < seq && seq <= each.seq + each.lost);
  if (recovery === undefined) return "for a call that was stopped before it answered";
  return recovery.isCrash
    ? "for a call that got no answer because of the crash"
    : "for a call that was cut when another worker took over";
}

const ends: Readonly<Partial<Record<RunStatus, string>>> = {
  completed: "is done",
  failed: "failed",
  cancelled: "was cancelled",
  paused: "is paused",
};

/** Describes how a task ended, as text after the name of its agent. `limit` is the limit that stopped it. */
export function endWords(status: RunStatus, limit: string | null = null): string {
  return ends[status] ?? endWordAt(status, limit).toLowerCase();
}

/** Describes the end of a task. If it was cancelled, the text says by whom and why. */
function taskEndWords({ taskId, data: { status, failure } }: Event<"task_end">, view: RunView): string {
  const task = view.tasks.get(taskId);
  const words = status !== "cancelled" || task === undefined ? null : cancelWords(task, view);
  return words === null ? endWords(status, failure && limitOf(failure)) : `was ${words}`;
}

/** Describes how a tool call ended, and how long it took. A denied call was not executed. */
function callEndWords({ status, result, durationMs }: Event<"tool_execution_end">["data"]): string {
  if (status === "denied") return "denied";
  return result.isError ? `failed after ${took(durationMs)}` : took(durationMs);
}

/** Returns the name of the agent that an event is about, if this is not the agent of the event. */
function other(event: Event & { readonly data: { readonly taskId: TaskId } }, view: RunView): string {
  return event.taskId === event.data.taskId ? "" : `${agentOf(event.data.taskId, view)} `;
}

function wakeWord(by: string, view: RunView): string {
  switch (by) {
    case "time":
      return "its time came";
    case "cancel":
      return "it was cancelled";
    case "seat":
      return "it got a seat";
    default:
      return waitWord(by, view);
  }
}

export function eventTone({ type }: Event): EventTone {
  if (/recover|lost|error|exhausted|overrun|deny|refuse|dead_letter|retry/u.test(type)) return "bad";
  if (/^seat_|spawn_wait|pause|fork|steer/u.test(type)) return "hold";
  if (/^approval_|budget_warning/u.test(type)) return "wait";
  return type === "message_end" || type === "run_start" || type === "run_end" ? "live" : "plain";
}
