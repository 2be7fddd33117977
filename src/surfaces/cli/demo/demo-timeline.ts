import { Priority, type AgentId, type Event, type TaskId } from "../../../kernel/index.ts";
import { printable } from "../terminal.ts";
import type { Paint } from "../paint.ts";

/** Tells a run as a person would, a line for each thing that matters. */
export class DemoTimeline {
  readonly #paint: Paint;
  readonly #names = new Map<TaskId, AgentId>();
  #startedAt: number | undefined;
  #lastSeq = -1;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  /** The line for an event, or `undefined` if it is not shown or was shown before: a process that resumes a run reads its log from the beginning. */
  line(event: Event): string | undefined {
    if (event.seq <= this.#lastSeq) return undefined;
    this.#lastSeq = event.seq;
    this.#startedAt ??= event.at;
    this.#names.set(event.taskId, event.agentId);
    const said = this.#words(event);
    if (said === undefined) return undefined;
    const seconds = ((event.at - this.#startedAt) / 1000).toFixed(1).padStart(5);
    const who = printable(event.agentId).padEnd(9);
    return `${this.#paint.dim(`${seconds}s`)}  ${this.#paint.bold(who)} ${said}`;
  }

  #words(event: Event): string | undefined {
    const { green, yellow, red, dim } = this.#paint;
    switch (event.type) {
      case "run_recover":
        return green("is resumed by another process from the file");
      case "spawn_start":
        this.#names.set(event.data.childTaskId, event.data.agentId);
        return `hires ${event.data.agentId} (${rank(event.data.priority)})`;
      case "spawn_wait":
        this.#names.set(event.data.childTaskId, event.data.agentId);
        return yellow(
          `wants ${event.data.agentId} (${rank(event.data.priority)}), but every seat is taken: ${event.data.victim === null ? "it waits for one" : `${this.#nameOf(event.data.victim)} must yield`}`,
        );
      case "seat_pause":
        return yellow("has finished its call and yields its seat");
      case "seat_grant":
        return "has a seat";
      case "seat_recall":
        return green("is recalled and resumes from its journal");
      case "tool_execution_start":
        return event.data.toolName.startsWith("handoff_")
          ? undefined
          : dim(`${event.data.toolName} ${printable(JSON.stringify(event.data.input))}`);
      case "budget_lost":
        return red(
          `a call was in flight when the process died: ${event.data.tokens} tokens are charged as unreported`,
        );
      case "task_end": {
        const { output } = event.data;
        const text = typeof output === "string" ? (output.split("\n")[0] ?? "") : "";
        return event.parentId === null ? undefined : `answers: ${printable(text)}`;
      }
      default:
        return undefined;
    }
  }

  #nameOf(taskId: TaskId): string {
    return this.#names.get(taskId) ?? taskId;
  }
}

function rank(priority: Priority): string {
  return Object.entries(Priority).find(([, value]) => value === priority)?.[0] ?? String(priority);
}
