import { messageText, type Event } from "../../src/kernel/index.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import { counted, oneLine, took, usd } from "../parts/format.ts";
import { argumentOf } from "../parts/tool-call.tsx";
import { agentOf } from "./task-words.ts";
import { inputText } from "./thread.ts";

export type EventTone = "plain" | "wait" | "bad" | "hold" | "live";

/** What happened, in words. */
export function eventWords(event: Event, view: RunView): string {
  switch (event.type) {
    case "run_start":
      return oneLine(inputText(event.data.input));
    case "run_end":
    case "task_end":
    case "agent_end":
      return `ended: ${event.data.status.replaceAll("_", " ")}`;
    case "run_recover":
      return event.data.recoveries === undefined
        ? `another worker continues, epoch ${event.data.epoch}`
        : `a worker died, another one continues, epoch ${event.data.epoch}`;
    case "run_steer":
      return `${event.data.by}: ${oneLine(inputText(event.data.input))}`;
    case "run_fork":
      return `fork of ${event.data.origin} at event ${event.data.at}`;
    case "message_start":
      return `calls ${event.data.model?.modelId ?? "a model"}`;
    case "message_end": {
      const { usage, message } = event.data;
      const cost = usage === undefined ? "" : `, ${usd(usage.costUsd)}`;
      return `${oneLine(messageText(message)) || "answers with calls"}${cost}`;
    }
    case "tool_execution_start":
      return `${event.data.toolName} ${argumentOf(event.data.input)}`;
    case "tool_execution_end":
      return `${event.data.toolName} took ${took(event.data.durationMs)}`;
    case "user_message":
      return oneLine(messageText(event.data.message));
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
      return `gives ${event.data.target} a task: ${oneLine(event.data.task)}`;
    case "seat_yield":
      return `${agentOf(event.data.taskId, view)} gives its seat to ${agentOf(event.data.yieldsTo, view)}`;
    case "seat_pause":
      return `${agentOf(event.data.taskId, view)} paused`;
    case "seat_grant":
      return `${agentOf(event.data.taskId, view)} takes a seat`;
    case "seat_recall":
      return `${agentOf(event.data.taskId, view)} continues from its journal`;
    case "seat_keep":
      return `${agentOf(event.data.taskId, view)} keeps its seat`;
    case "approval_request":
      return `asks: ${event.data.toolName} ${argumentOf(event.data.input)}`;
    case "approval_decision":
      return `${event.data.decision.by ?? "a person"} ${event.data.decision.decision}`;
    case "budget_lost":
      return `${usd(event.data.costUsd)} lost in the crash, charged at its bound`;
    case "budget_top_up":
      return `${event.data.by} added ${event.data.add.maxCostUsd === undefined ? "to the allowance" : usd(event.data.add.maxCostUsd)}`;
    case "budget_warning":
    case "budget_exhausted":
      return `${event.data.dimension}: ${event.data.used} of ${event.data.limit}`;
    case "task_suspend":
      return `waits for ${event.data.waitsFor.map((name) => waitName(name, view)).join(", ")}`;
    case "task_wake":
      return `continues: ${event.data.by}`;
    case "turn_start":
      return `turn ${event.data.turn}`;
    case "turn_end":
      return `turn ${event.data.turn}, ${counted(event.data.toolCalls, "tool call")}`;
    default:
      return oneLine(event.data).slice(0, 200);
  }
}

function waitName(name: string, view: RunView): string {
  return name.startsWith("join ") ? agentOf(name.slice(5) as never, view) : name;
}

export function eventTone({ type }: Event): EventTone {
  if (/recover|lost|error|exhausted|overrun|deny|refuse|dead_letter|retry/u.test(type)) return "bad";
  if (/^seat_|spawn_wait|pause|fork|steer/u.test(type)) return "hold";
  if (/^approval_|budget_warning/u.test(type)) return "wait";
  return type === "message_end" || type === "run_start" || type === "run_end" ? "live" : "plain";
}
