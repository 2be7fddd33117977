import type { TaskId } from "../../../src/kernel/index.ts";
import type { MessageEvent } from "../../../src/surfaces/view/message-events.ts";
import { oneLine } from "../../base/format.ts";
import { inputText } from "./input-text.ts";

interface MessageWords {
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

/** Who sent what to whom. `agentOf` names the agent of a task. */
export function messageWords(event: MessageEvent, agentOf: (taskId: TaskId | null) => string): MessageWords {
  const { agentId } = event;
  switch (event.type) {
    case "handoff":
      return { from: agentId, to: event.data.target, text: oneLine(event.data.task) };
    case "run_steer":
      return { from: event.data.by, to: agentId, text: oneLine(inputText(event.data.input)) };
    case "task_signal":
      return { from: event.data.by, to: agentId, text: `signal ${event.data.name}` };
    case "mail_receive":
      return { from: event.data.from ?? "a caller", to: agentId, text: `message ${event.data.messageId}` };
    case "task_end":
      return {
        from: agentId,
        to: agentOf(event.parentId),
        text: oneLine(inputText(event.data.output ?? null)),
      };
  }
}
