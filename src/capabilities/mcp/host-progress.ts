import type { ServerContext } from "@modelcontextprotocol/server";
import { Fault, type Delta, type Event, type JsonValue } from "../../kernel/index.ts";

/** What a run shows while it is at work, as a host's progress; to a host that did not ask for progress, as log lines. */
export class HostProgress {
  readonly #context: ServerContext;
  readonly #onWarning: (warning: Fault) => void;
  #steps = 0;
  #told: Promise<void> = Promise.resolve();

  constructor(context: ServerContext, onWarning: (warning: Fault) => void) {
    this.#context = context;
    this.#onWarning = onWarning;
  }

  /** Settled when everything so far has been sent. */
  get told(): Promise<void> {
    return this.#told;
  }

  show(event: Event | Delta): void {
    if (event.type === "tool_execution_update") this.#tell(event.update);
    else if (event.type === "message_update" && event.kind === "text") this.#tell(event.text);
  }

  #tell(update: JsonValue): void {
    this.#told = this.#told
      .then(() => this.#send(update))
      // A host that is gone is not told; the run goes on.
      .catch((error: unknown) => this.#onWarning(Fault.from(error)));
  }

  #send(update: JsonValue): Promise<void> {
    const { notify, log, _meta } = this.#context.mcpReq;
    const progressToken = _meta?.progressToken;
    if (progressToken === undefined) return log("info", update);
    return notify({ method: "notifications/progress", params: { progressToken, ...this.#measured(update) } });
  }

  /** Progress only goes up; what says itself how far it is is believed. */
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
