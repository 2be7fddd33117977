import { readProperty, type ApprovalDecision, type ApprovalRequest } from "../../../kernel/index.ts";
import { printable, type Terminal } from "./terminal.ts";
import { requestLines } from "./run-watcher.ts";

const explanation = [
  "    y  allows this call",
  "    n  denies it; the model receives the refusal and continues",
  "    a  allows it, and later calls of this tool without asking again",
  "    ?  shows this explanation",
  "    Ctrl-C cancels; Ctrl-D leaves the request open for reeve approve.",
];

/** Whether a person can decide about a request. The result of a client-side tool is sent by a program. */
export function isForPerson({ kind }: ApprovalRequest): boolean {
  return kind !== "client_tool";
}

/** Whether a plain approval is not sufficient, because the request asks for a choice or a text. */
export function needsAnswer({ kind }: ApprovalRequest): boolean {
  return kind === "select" || kind === "input";
}

/**
 * Asks a person repeatedly until the answer is a valid decision. Only `n` denies; after an empty or unknown answer
 * the question is repeated. Resolves to `undefined` if there is no terminal, if the person leaves without an
 * answer, or if a program must answer. `isShown` means that the call is already on the screen; `signal` withdraws
 * the question.
 */
export async function askDecision(
  request: ApprovalRequest,
  terminal: Pick<Terminal, "ask" | "say">,
  { isShown = false, signal }: { readonly isShown?: boolean; readonly signal?: AbortSignal } = {},
): Promise<ApprovalDecision | undefined> {
  if (!isForPerson(request)) {
    const call = `run.toolResult(${JSON.stringify(request.callId)}, value)`;
    terminal.say(`  ${printable(request.toolName)} waits for a program that sends ${printable(call)}`);
    return undefined;
  }
  if (needsAnswer(request)) return askAnswer(request, terminal, signal);
  const { kind } = request;
  let shown = isShown ? "" : `${requestLines(request).join("\n")}\n`;
  for (;;) {
    const isCall = kind !== "confirm" && kind !== "top_up" && kind !== "merge";
    const question = isCall ? ". Allow it? [y/n/a/?]" : " [y/n]";
    const answer = await terminal.ask(`${shown}  ${printable(askedText(request))}${question} `, signal);
    if (answer === undefined || answer === null) return undefined;
    shown = "";
    switch (answer.trim().toLowerCase()) {
      case "y":
      case "yes":
        return { decision: "approved" };
      case "a":
      case "always":
        return { decision: "approved", remember: true };
      case "n":
      case "no":
        return { decision: "denied", reason: "by the person" };
      case "?":
        for (const line of explanation) terminal.say(line);
        break;
      default:
        terminal.say("    Answer y, n or a; ? explains them.");
    }
  }
}

/** Returns the text of the question: for a top-up its amount, otherwise the reason. */
function askedText({ kind, input, reason }: ApprovalRequest): string {
  const message = kind === "top_up" ? readProperty(input, "message") : undefined;
  return typeof message === "string" ? message : reason;
}

/**
 * Asks for the answer to a `select` or `input` request of an extension. If the answer is not one of the choices,
 * the question is repeated. Resolves to `undefined` if there is no terminal or the person leaves without an answer.
 */
async function askAnswer(
  { kind, input, reason }: ApprovalRequest,
  terminal: Pick<Terminal, "ask" | "say">,
  signal: AbortSignal | undefined,
): Promise<ApprovalDecision | undefined> {
  const choices = kind === "select" ? readProperty(input, "choices") : undefined;
  const texts = Array.isArray(choices) ? choices.map(String) : undefined;
  const listed = texts === undefined ? "" : ` [${texts.map(printable).join(" / ")}]`;
  for (;;) {
    const answer = await terminal.ask(`  ${printable(reason)}${listed} `, signal);
    if (answer === undefined || answer === null) return undefined;
    const text = answer.trim();
    // A choice with hidden characters is answered as it is shown.
    const chosen =
      texts === undefined ? text : texts.find((each) => each === text || printable(each) === text);
    if (chosen !== undefined) return { decision: "approved", input: chosen };
    terminal.say("    Answer with one of the choices. Ctrl-D leaves the question open.");
  }
}
