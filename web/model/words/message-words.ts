import type { Event, TaskId } from "../../../src/kernel/index.ts";
import type { MessageEvent } from "../../../src/surfaces/view/message-events.ts";
import { oneLine, personName } from "../../base/format.ts";
import { limitOf } from "../../../src/surfaces/view/status-words.ts";
import { endWords } from "./event-words.ts";
import { inputText } from "./input-text.ts";

interface MessageWords {
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

/** Describes who sent what to whom. `agentOf` returns the name of a task's agent. */
export function messageWords(event: MessageEvent, agentOf: (taskId: TaskId | null) => string): MessageWords {
  const { agentId } = event;
  switch (event.type) {
    case "handoff":
      return { from: agentId, to: event.data.target, text: oneLine(event.data.task) };
    case "run_steer":
      return { from: personName(event.data.by), to: agentId, text: oneLine(inputText(event.data.input)) };
    case "task_signal":
      return { from: personName(event.data.by), to: agentId, text: `signal ${event.data.name}` };
    case "mail_receive":
      return { from: event.data.from ?? "a caller", to: agentId, text: `message ${event.data.messageId}` };
    case "task_end":
      return {
        from: agentId,
        to: agentOf(event.parentId),
        text: reportWords(event.data),
      };
  }
}

/**
 * Returns the result that a report gave to its manager. If the report did not complete, returns the text that it
 * had written.
 */
function reportWords({ status, output, failure }: Event<"task_end">["data"]): string {
  const text = oneLine(inputText(output ?? null));
  if (status === "completed") return text;
  const end = endWords(status, failure && limitOf(failure));
  return text === "" ? end : `${end}; it had written: ${text}`;
}
