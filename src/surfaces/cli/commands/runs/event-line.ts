import { messageText, rootTaskId, totalTokens, type Event } from "../../../../kernel/index.ts";
import { crashLoopHeadline } from "../../../view/crash-loop-words.ts";
import { folderWords } from "../../../view/folder-words.ts";
import { hiredWords } from "../../../view/hired-words.ts";
import { counted, dollars, short, shortResult, shortText } from "../../terminal/format.ts";
import { policyWords } from "../../terminal/policy-words.ts";
import { printable } from "../../terminal/terminal.ts";

/**
 * Describes an event in one line: its time, its agent and what happened. `undefined` for events that are important
 * only for programs.
 */
export function eventLine(event: Event): string | undefined {
  const words = eventWords(event);
  if (words === undefined) return undefined;
  const time = new Date(event.at).toISOString().slice(11, 19);
  const agent = event.agentId.split("/", 1)[0] ?? event.agentId;
  const task = event.taskId === rootTaskId ? "" : ` ${event.taskId}`;
  return `${time}  ${printable(agent)}${task}  ${words}`;
}

function eventWords(event: Event): string | undefined {
  switch (event.type) {
    case "run_start":
      return `starts: ${shortText(event.data.input)}`;
    case "run_adopt":
      return "is adopted by a worker, which accepts its input";
    case "run_recover":
      return "is taken over by another process";
    case "run_pause":
      return event.data.crashLoop === undefined
        ? `is paused by ${printable(event.data.by)}`
        : `is paused as a crash loop: ${crashLoopHeadline(event.data.crashLoop)}`;
    case "run_resume":
      return `is resumed by ${printable(event.data.by)}`;
    case "run_cancel":
    case "task_cancel":
      return `is cancelled by ${printable(event.data.by)}: ${printable(event.data.reason)}`;
    case "run_steer":
      return `receives input from ${printable(event.data.by)}: ${shortText(event.data.input)}`;
    case "input_withdraw":
      return `no longer receives an input that ${printable(event.data.by)} took back`;
    case "input_unread":
      return `ended before it read: ${shortText(event.data.input)}`;
    case "message_end":
      return messageWords(event);
    case "tool_execution_start":
      return `calls ${printable(event.data.toolName)} ${printable(short(event.data.input))}`;
    case "tool_execution_end":
      return `${printable(event.data.toolName)} ${callOutcome(event)}: ${shortResult(event.data.result)}`;
    case "approval_request":
      return `asks for approval ${printable(event.data.approvalId)}: ${printable(event.data.toolName)} ${printable(short(event.data.input))}`;
    case "approval_decision":
      return `approval ${printable(event.data.approvalId)}: ${event.data.decision.decision}`;
    case "spawn_start":
      return `hires ${printable(event.data.agentId)} as ${event.data.childTaskId}`;
    case "spawn_wait":
      return `waits for a seat for ${printable(event.data.agentId)}`;
    default:
      return troubleWords(event);
  }
}

function troubleWords(event: Event): string | undefined {
  switch (event.type) {
    case "retry_start":
      return `retries in ${(event.data.delayMs / 1000).toFixed(1)} s: ${printable(event.data.message)}`;
    case "agent_error":
      return `failed (${event.data.failure.code}): ${printable(event.data.failure.message)}`;
    case "compensation_start":
      return `undoes its work (${event.data.status}): ${printable(event.data.names.join(", "))}`;
    case "compensation_end":
      return event.data.failed.length === 0
        ? "has undone its work"
        : `could not undo ${printable(event.data.failed.map(({ name, failure }) => `${name} (${failure.message})`).join(", "))}`;
    case "budget_warning":
      return `has used ${event.data.used} of ${event.data.limit} ${event.data.dimension}`;
    case "budget_exhausted":
      return `has used up its budget of ${event.data.limit} ${event.data.dimension}`;
    case "gateway_request":
      return gatewayWords(event.data);
    case "attempt_start":
      return event.data.number === 1
        ? undefined
        : `starts ${printable(event.data.name)} again (attempt ${event.data.number})`;
    case "metered_call": {
      const { model, usage, status } = event.data;
      const cost =
        usage === null ? "costs nothing" : `${counted(totalTokens(usage))} tokens, ${dollars(usage.costUsd)}`;
      return `calls ${printable(model.modelId)} (${status}): ${cost}`;
    }
    case "budget_lost":
      return `a call ended without reported usage: ${counted(event.data.tokens)} tokens are charged`;
    case "usage_corrected": {
      const { usage, charged } = event.data;
      return `a call without an answer cost ${dollars(usage.costUsd)} and not ${dollars(charged.costUsd)}: ${counted(totalTokens(usage))} tokens are charged`;
    }
    case "task_end":
      return event.taskId === rootTaskId
        ? undefined
        : `ends (${event.data.status}): ${shortText(event.data.output ?? null)}`;
    case "run_end": {
      const { status, turns, usage, costUsd } = event.data;
      return `ends (${status}): ${turns} turns, ${counted(totalTokens(usage))} tokens, ${dollars(costUsd)}`;
    }
    default:
      return folderWords(event) ?? hiredWords(event) ?? policyWords(event);
  }
}

function gatewayWords({ endpoint, status, model, reason }: Event<"gateway_request">["data"]): string {
  const about = [endpoint ?? "an unknown path", ...(model === null ? [] : [model])].join(" with ");
  return reason === undefined
    ? `counts tokens at ${printable(about)} (${status})`
    : `is refused at ${printable(about)} (${status}): ${printable(reason)}`;
}

function callOutcome({ data: { status, result } }: Event<"tool_execution_end">): string {
  if (status === "denied") return "was denied";
  return result.isError ? "failed" : "returned";
}

function messageWords({ data: { message, usage } }: Event<"message_end">): string | undefined {
  if (message.role !== "assistant") return undefined;
  const text = messageText(message);
  const tokens = usage === undefined ? "" : ` [${counted(totalTokens(usage))} tokens]`;
  return text.trim() === "" ? undefined : `says: ${shortText(text)}${tokens}`;
}
