import type { ServerContext } from "@modelcontextprotocol/server";
import { Fault, type Delta, type Event, type JsonValue } from "../../kernel/index.ts";

/**
 * Sends the progress of a run to the MCP host: as progress notifications if the host asked for them, otherwise as
 * log messages.
 */
export class HostProgress {
  readonly #context: ServerContext;
  readonly #onWarning: (warning: Fault) => void;
  #steps = 0;
  #sent: Promise<void> = Promise.resolve();

  constructor(context: ServerContext, onWarning: (warning: Fault) => void) {
    this.#context = context;
    this.#onWarning = onWarning;
  }

  /** Resolves when everything so far has been sent. */
  get sent(): Promise<void> {
    return this.#sent;
  }

  /** Sends the tool progress or text that the event or delta contains. */
  show(event: Event | Delta): void {
    if (event.type === "tool_execution_update") this.#enqueue(event.update);
    else if (event.type === "message_update" && event.kind === "text") this.#enqueue(event.text);
  }

  #enqueue(update: JsonValue): void {
    this.#sent = this.#sent
      .then(() => this.#send(update))
      // If the host is gone, its progress is dropped and the run continues.
      .catch((error: unknown) => this.#onWarning(Fault.from(error)));
  }

  #send(update: JsonValue): Promise<void> {
    const { notify, log, _meta } = this.#context.mcpReq;
    const progressToken = _meta?.progressToken;
    if (progressToken === undefined) return log("info", update);
    return notify({ method: "notifications/progress", params: { progressToken, ...this.#measured(update) } });
  }

  /**
   * Returns the progress values of an update. Values that the update contains are used; otherwise a counter increases
   * with each update.
   */
  #measured(update: JsonValue): { progress: number; total?: number; message?: string } {
    if (
      typeof update === "object" &&
      update !== null &&
      "progress" in update &&
      typeof update["progress"] === "number"
    ) {
      const { progress, total, message } = update as {
        progress: number;
        total?: JsonValue;
        message?: JsonValue;
      };
      this.#steps = Math.max(this.#steps, progress);
      return {
        progress,
        ...(typeof total === "number" && { total }),
        ...(typeof message === "string" && { message }),
      };
    }
    this.#steps++;
    return { progress: this.#steps, message: typeof update === "string" ? update : JSON.stringify(update) };
  }
}
