import {
  rootTaskId as root,
  jsonText,
  messageText,
  type ApprovalRequest,
  type Delta,
  type Event,
  type Failure,
  type JsonValue,
  type RunResult,
} from "../../../kernel/index.ts";
import { printable, type Terminal } from "../terminal.ts";

/** Displays the events of a run. */
export interface RunWatcher {
  see(event: Event | Delta): Promise<void>;
  end(result: RunResult<JsonValue>): Promise<void>;
  /** Whether the call that needs approval was the last thing shown, with all its arguments. */
  hasShown(request: ApprovalRequest): boolean;
}

/** Prints a JSON object per event, and the result as the last line. */
export class JsonWatcher implements RunWatcher {
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  async see(event: Event | Delta): Promise<void> {
    await this.#terminal.out(JSON.stringify(event));
  }

  async end(result: RunResult<JsonValue>): Promise<void> {
    await this.#terminal.out(JSON.stringify({ type: "result", ...result }));
  }

  hasShown(): boolean {
    return false;
  }
}

/**
 * Prints the answer to stdout and the progress to stderr. If a person watches, the answer is printed as it is written.
 */
export class TextWatcher implements RunWatcher {
  readonly #terminal: Terminal;
  /** The part of the current answer that is already on the screen. */
  #shown = "";
  #lastText = "";
  #lastLine = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  async see(event: Event | Delta): Promise<void> {
    if (event.type === "message_update") this.#write(event);
    else if (event.type === "message_reset") this.#breakOff();
    else if (event.type === "message_end") this.#finish(event);
    else if ("seq" in event) {
      const line = progressLine(event);
      if (line === undefined) return;
      this.#breakOff();
      this.#terminal.say(line);
      this.#lastLine = line;
    }
  }

  hasShown(request: ApprovalRequest): boolean {
    return requestLines(request).join("\n") === this.#lastLine;
  }

  async end({
    output,
    status,
    turns,
    usage,
    costUsd,
    unreported: lost,
    runId,
    error: failure,
    interruptionReason,
  }: RunResult<JsonValue>): Promise<void> {
    const onScreen = this.#shown === "" ? this.#lastText : this.#shown;
    this.#breakOff();
    const text = jsonText(output);
    const { isWatched } = this.#terminal;
    if (text !== "" && !(isWatched && text === onScreen))
      await this.#terminal.out(isWatched ? shownText(text) : text);
    const why = failure === null ? interruptionReason : (adviceOn(failure) ?? failure.message);
    if (status !== "completed" && why !== null) this.#terminal.say(`reeve: ${status}: ${printable(why)}`);
    const tokens = `${counted(usage.inputTokens + usage.outputTokens)} tokens`;
    // B3: tokens of calls that ended without reported usage.
    const unreported = lost.tokens === 0 ? "" : ` · up to ${counted(lost.tokens)} charged as lost`;
    const cost = costUsd === null ? "price unknown" : dollars(costUsd);
    this.#terminal.say(
      `${status} · ${turns} ${turns === 1 ? "turn" : "turns"} · ${tokens}${unreported} · ${cost} · ${runId}`,
    );
  }

  #write({ taskId, kind, text }: Extract<Delta, { type: "message_update" }>): void {
    if (!this.#terminal.isWatched || taskId !== root || kind !== "text") return;
    this.#shown += text;
    this.#terminal.put(shownText(text));
  }

  #finish({ taskId, data: { message } }: Event<"message_end">): void {
    if (taskId !== root) return;
    this.#lastText = this.#shown === "" ? "" : messageText(message);
    this.#breakOff();
  }

  #breakOff(): void {
    if (this.#shown !== "") this.#terminal.put("\n");
    this.#shown = "";
  }
}

/** Advice for faults that can be solved with a command-line option. */
function adviceOn({ code, details }: Failure): string | undefined {
  if (code !== "unknown_price") return undefined;
  const { provider, modelId } = details ?? {};
  const isNamed = typeof provider === "string" && typeof modelId === "string";
  const model = isNamed ? `${provider}/${modelId}` : "the model";
  return `${model} has no known price, so --max-budget-usd cannot be enforced; limit the run with --max-tokens or --max-turns instead`;
}

function counted(tokens: number): string {
  return tokens.toLocaleString("en");
}

/** The call that a person is asked about: the tool and its arguments, also as they are executed if that differs. */
export function requestLines({ toolName, input, parsedInput, kind }: ApprovalRequest): readonly string[] {
  const call = callLine("", toolName, JSON.stringify(input));
  if (kind !== "tool_call") return [`${call} (a question of this tool)`];
  return parsedInput === undefined
    ? [call]
    : [call, `    runs with ${printable(JSON.stringify(parsedInput))}`];
}

function callLine(who: string, toolName: string, input: string): string {
  return `  ${who}${printable(toolName)} ${printable(input)}`;
}

/** Formats dollars with four decimals, or with two significant digits for smaller amounts. */
function dollars(costUsd: number): string {
  const places = costUsd > 0 && costUsd < 0.01 ? 2 - Math.floor(Math.log10(costUsd)) : 4;
  return `$${costUsd.toFixed(Math.max(4, Math.min(places, 9)))}`;
}

/** Keeps the line breaks of a model's text and removes other control characters. */
function shownText(text: string): string {
  return text
    .split(/(\n|\t)/u)
    .map((piece) => (piece === "\n" || piece === "\t" ? piece : printable(piece)))
    .join("");
}

function progressLine(event: Event): string | undefined {
  const who = event.taskId === root ? "" : `${printable(event.agentId)}: `;
  switch (event.type) {
    case "tool_execution_start":
      return callLine(who, event.data.toolName, short(event.data.input));
    case "tool_execution_end":
      return event.data.result.isError
        ? `  ${who}! ${printable(event.data.toolName)}: ${printable(short(event.data.result.output))}`
        : undefined;
    case "spawn_start":
      return `  ${who}hires ${printable(event.data.agentId)}`;
    case "retry_start":
      return `  ${who}the model failed (${event.data.kind}); attempt ${event.data.attempt} of ${event.data.maxAttempts} in ${(event.data.delayMs / 1000).toFixed(1)} s`;
    case "budget_warning":
      return `  ${who}${event.data.used} of ${event.data.limit} ${event.data.dimension} are used`;
    case "run_recover":
      return `  resumes from where it stopped; recorded answers are not requested again`;
    default:
      return undefined;
  }
}

function short(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
