import {
  asksAboutCall,
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
import { counted, dollars, duration, short, shortResult, likelyWords } from "./format.ts";
import { hiredWords } from "../../view/hired-words.ts";
import { foreignCallLines } from "../../view/foreign-call-words.ts";
import { mergeLines, mergeOf } from "../../view/merge-words.ts";
import { policyWords } from "./policy-words.ts";
import { type Terminal, printable, shownText } from "./terminal.ts";

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const frameMs = 100;

/**
 * Shows the current activity of a run on a terminal, with its duration. Shows nothing if the output is not a
 * terminal.
 */
export class Spinner {
  readonly #terminal: Pick<Terminal, "status">;
  #timer: NodeJS.Timeout | undefined;
  #label = "";
  #since = 0;
  #frame = 0;

  constructor(terminal: Pick<Terminal, "status">) {
    this.#terminal = terminal;
  }

  /** Starts to show an activity. Its duration is counted from this call. */
  start(label: string): void {
    this.#label = label;
    this.#since = Date.now();
    if (this.#terminal.status === undefined) return;
    this.#timer ??= setInterval(() => this.#draw(), frameMs).unref();
    this.#draw();
  }

  /** Removes what is shown. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#terminal.status?.("");
  }

  #draw(): void {
    const frame = frames[this.#frame++ % frames.length] ?? "";
    this.#terminal.status?.(`${frame} ${this.#label} ${duration(Date.now() - this.#since)}`);
  }
}

/** Displays the events of a run. */
export interface RunWatcher {
  see(event: Event | Delta): Promise<void>;
  end(result: RunResult<JsonValue>): Promise<void>;
  /** Whether the call that needs approval was the last output, with all its arguments. */
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
 * Prints the answer to stdout and the progress to stderr. If a person watches, the answer is printed while the
 * model writes it.
 */
export class TextWatcher implements RunWatcher {
  readonly #terminal: Terminal;
  /** The part of the current answer that was already printed. */
  #shown = "";
  #lastText = "";
  #lastLine = "";
  readonly #spinner: Spinner;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#spinner = new Spinner(terminal);
  }

  async see(event: Event | Delta): Promise<void> {
    await this.#show(event);
    const activity = activityOf(event);
    if (activity === null) this.#spinner.stop();
    else if (activity !== undefined) this.#spinner.start(activity);
  }

  async #show(event: Event | Delta): Promise<void> {
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
    this.#spinner.stop();
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
    const unreported = lost.tokens === 0 ? "" : ` · up to ${counted(lost.tokens)} unreported`;
    const cost = `${dollars(costUsd)}${likelyWords({ costUsd, unreported: lost })}`;
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

/**
 * Returns the run's activity after an event. `null` if the run waits for a person or has ended, `undefined` if the
 * activity does not change.
 */
function activityOf(event: Event | Delta): string | null | undefined {
  switch (event.type) {
    case "message_start":
      return event.data.model === undefined ? "model" : printable(event.data.model.modelId);
    case "tool_execution_start":
      return printable(event.data.toolName);
    case "retry_start":
      return "waiting to retry";
    case "approval_request":
    case "message_end":
    case "run_end":
      return null;
    default:
      return undefined;
  }
}

/** Returns advice for faults that a command-line option can solve. */
function adviceOn({ code, details }: Failure): string | undefined {
  if (code !== "unknown_price") return undefined;
  const { provider, modelId } = details ?? {};
  const isNamed = typeof provider === "string" && typeof modelId === "string";
  const model = isNamed ? `${provider}/${modelId}` : "the model";
  return `${model} has no known price, so a budget in dollars (--max-budget-usd, or maxCostUsd in settings.json or of the agent) cannot be enforced; limit the run with --max-tokens or --max-turns and remove it, or set "unknownPrice": "ignore" in settings.json`;
}

/**
 * Describes the call about which a person must decide: the tool and its arguments, and also the arguments with
 * which the call is executed if they differ.
 */
export function requestLines({
  toolName,
  input,
  parsedInput,
  kind,
  foreign,
}: ApprovalRequest): readonly string[] {
  if (kind === "top_up") return ["  The task waits for a top-up."];
  const merge = kind === "merge" ? mergeOf(input) : null;
  if (merge !== null) return mergeLines(merge).map((line) => `    ${printable(line)}`);
  const call = callLine("", toolName, JSON.stringify(input));
  if (!asksAboutCall({ kind })) return [`${call} (a question of this tool)`];
  if (foreign !== undefined)
    return [call, ...foreignCallLines(foreign).map((line) => `    ${printable(line)}`)];
  return parsedInput === undefined
    ? [call]
    : [call, `    runs with ${printable(JSON.stringify(parsedInput))}`];
}

function callLine(who: string, toolName: string, input: string): string {
  return `  ${who}${printable(toolName)} ${printable(input)}`;
}

function progressLine(event: Event): string | undefined {
  const who = event.taskId === root ? "" : `${printable(event.agentId)}: `;
  switch (event.type) {
    case "tool_execution_start":
      return callLine(who, event.data.toolName, short(event.data.input));
    case "tool_execution_end":
      return `  ${who}${callMark(event)} ${printable(event.data.toolName)}: ${shortResult(event.data.result)}`;
    case "spawn_start":
      return `  ${who}hires ${printable(event.data.agentId)}`;
    case "retry_start":
      return `  ${who}the model failed (${event.data.kind}); attempt ${event.data.attempt} of ${event.data.maxAttempts} in ${(event.data.delayMs / 1000).toFixed(1)} s`;
    case "budget_warning":
      return `  ${who}${event.data.used} of ${event.data.limit} ${event.data.dimension} are used`;
    case "run_recover":
      return `  is taken over where it stopped; recorded answers are not requested again`;
    default: {
      const words = hiredWords(event) ?? policyWords(event);
      return words === undefined ? undefined : `  ${who}${words}`;
    }
  }
}

function callMark({ data: { status, result } }: Event<"tool_execution_end">): string {
  if (status === "denied") return "denied";
  return result.isError ? "!" : "=";
}
