import {
  assertJson,
  assistantMessage,
  type AssistantPart,
  type EventSource,
  type ForeignReport,
} from "../../kernel/index.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/** Length of a message, in UTF-16 code units, above which the next piece begins a new message. */
const longestMessage = 262_144;

/** Writes a program's reports to the log, marked with its source: its messages, with their pieces, and its calls. */
export class ProgramLog {
  readonly #runner: TaskRunner;
  readonly #source: EventSource;
  /** The message that the program is writing. `seq` is the sequence number of the event that started it. */
  #message: { readonly seq: number; text: string; reasoning: string } | undefined;

  constructor(runner: TaskRunner, source: EventSource) {
    this.#runner = runner;
    this.#source = source;
  }

  tell(report: ForeignReport): void {
    switch (report.type) {
      case "text":
      case "reasoning":
        return this.#write(report.type, report.text);
      case "message_end":
        return this.endMessage();
      case "call_start": {
        const { callId, toolName, input, view } = report;
        const data = { callId, toolName, input, source: this.#source, ...(view && { foreign: view }) };
        this.#check(data, `the call of ${toolName}`);
        this.endMessage();
        this.#runner.journal.emit({ type: "tool_execution_start", data: structuredClone(data) });
        return;
      }
      case "call_update": {
        const { callId, update } = report;
        const { log, taskId } = this.#runner;
        this.#check(update, `the progress of call ${callId}`);
        log.putDelta({ runId: log.lease.runId, taskId, type: "tool_execution_update", callId, update });
        return;
      }
      case "call_end": {
        const { callId, toolName, result, durationMs, status, view } = report;
        const told = { callId, toolName, result, durationMs, status, source: this.#source };
        const data = { ...told, ...(view && { foreign: view }) };
        this.#check(data, `the result of ${toolName}`);
        this.endMessage();
        this.#runner.journal.emit({ type: "tool_execution_end", data: structuredClone(data) });
      }
    }
  }

  /** Records the message that the program is writing as complete. */
  endMessage(): void {
    const message = this.#message;
    if (message === undefined) return;
    this.#message = undefined;
    const { text, reasoning } = message;
    const content: AssistantPart[] = [];
    if (reasoning !== "") content.push({ type: "reasoning", text: reasoning });
    if (text !== "") content.push({ type: "text", text });
    const data = { message: assistantMessage(content), source: this.#source };
    this.#runner.journal.emit({ type: "message_end", data });
  }

  #write(kind: "text" | "reasoning", text: string): void {
    if (text === "") return;
    const { log, taskId } = this.#runner;
    if (this.#message !== undefined && this.#message[kind].length >= longestMessage) this.endMessage();
    this.#message ??= { seq: this.#startMessage(), text: "", reasoning: "" };
    const { seq } = this.#message;
    const offset = this.#message[kind].length;
    this.#message[kind] += text;
    const { runId } = log.lease;
    log.putDelta({ runId, taskId, messageSeq: seq, attempt: 1, type: "message_update", kind, offset, text });
  }

  #startMessage(): number {
    const data = { role: "assistant", attempt: 1, source: this.#source } as const;
    return this.#runner.journal.emit({ type: "message_start", data });
  }

  #check(value: unknown, where: string): void {
    assertJson(value, where);
    this.#runner.worker.sizes.assert(value, where);
  }
}
