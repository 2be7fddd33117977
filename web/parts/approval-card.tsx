import type { JsonValue } from "../../src/kernel/index.ts";
import type { ApprovalDecision } from "../../src/kernel/index.ts";
import type { QuestionView } from "../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { errorText, get, post, RequestError, type Body } from "../api/client.ts";
import { refreshSoon } from "../api/runs-feed.ts";
import { useKeys } from "../app/keys.ts";
import { now } from "../app/now.ts";
import { oneLine, personName, plain, span, timeOfDay } from "./format.ts";
import { decisionWords } from "./decision-words.ts";
import { Glyph } from "./glyph.tsx";

/** A question as the card shows it, from the log of a run or from the inbox. */
interface Question {
  readonly runId: string;
  readonly agentId: string;
  readonly askedAt: number;
  readonly request: Pick<
    QuestionView["request"],
    "approvalId" | "kind" | "toolName" | "callId" | "input" | "parsedInput" | "reason"
  >;
  readonly decision: ApprovalDecision | null;
  readonly decidedAt: number | null;
}

interface CardProps {
  readonly question: Question;
  /** Whether the keys A, E, D and S answer this card. */
  readonly hasKeys?: boolean;
}

type Answer = Omit<Body<"POST", "/api/runs/{runId}/decide">, "approvalId">;

/** Asks a person. Afterwards it is one line: who decided, and when. */
export function ApprovalCard({ question, hasKeys = false }: CardProps): JSX.Element {
  const { decision, decidedAt } = question;
  const [sent, setSent] = useState<{ readonly words: string; readonly at: number } | null>(null);
  if (decision !== null)
    return (
      <p class="decided">
        <Glyph look={decision.decision === "approved" ? "completed" : "cancelled"} />
        {decisionWords(decision, question.request)}
        {decidedAt !== null && <span class="label">at {timeOfDay(decidedAt)}</span>}
      </p>
    );
  if (sent !== null)
    return (
      <p class="decided" role="status">
        <Glyph look={sent.words === sentWords.approved ? "completed" : "cancelled"} />
        {sent.words}
        <span class="label">at {timeOfDay(sent.at)}</span>
      </p>
    );
  return (
    <OpenCard question={question} hasKeys={hasKeys} onSent={(words) => setSent({ words, at: Date.now() })} />
  );
}

interface OpenProps extends CardProps {
  readonly hasKeys: boolean;
  readonly onSent: (words: string) => void;
}

function OpenCard({ question, hasKeys, onSent }: OpenProps): JSX.Element {
  const { runId, agentId, askedAt, request } = question;
  const [edited, setEdited] = useState<string | null>(null);
  const [denial, setDenial] = useState<string | null>(null);
  const [remember, setRemember] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const root = useRef<HTMLElement>(null);
  const isCall = request.kind === "tool_call";
  const answer = async (value: Answer): Promise<void> => {
    setProblem(null);
    try {
      await send(question, value);
      onSent(sentWords[value.decision]);
    } catch (error) {
      const lost = await lostRace(error, question);
      if (lost === null) setProblem(errorText(error));
      else onSent(lost);
    }
    refreshSoon();
  };
  const approve = (): void => {
    const input = edited === null ? undefined : parsed(edited, isCall);
    if (edited !== null && input === undefined) return setProblem("The arguments are not valid JSON.");
    void answer({
      decision: "approved",
      ...(input !== undefined && { input }),
      ...(remember && { remember }),
    });
  };
  const edit = (): void => setEdited(edited ?? (isCall ? plain(request.parsedInput ?? request.input) : ""));
  const keys = {
    a: approve,
    e: edit,
    d: () => setDenial(denial ?? ""),
    s: () => void answer({ decision: "skipped" }),
  };
  useKeys(hasKeys ? keys : {});
  return (
    <section
      class="approval"
      ref={root}
      aria-label={`${agentId} waits for you`}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || (edited === null && denial === null)) return;
        setEdited(null);
        setDenial(null);
      }}
    >
      <header>
        <Glyph look={isCall ? "waits" : "question"} />
        {isCall ? "Waits for you" : "A question"}
        <span class="label">{span(now.value - askedAt)}</span>
      </header>
      <div class="body">
        <h3>{sentence(agentId, request)}</h3>
        {edited === null ? (
          <Content
            request={request}
            onChoose={(choice) => void answer({ decision: "approved", input: choice })}
          />
        ) : (
          <textarea
            class="command"
            aria-label={isCall ? "Arguments of the call" : "Answer"}
            rows={Math.min(12, Math.max(3, edited.split("\n").length))}
            value={edited}
            ref={focusOn}
            onInput={(event) => setEdited(event.currentTarget.value)}
          />
        )}
        <dl class="pairs">
          {request.reason !== questionText(request.input) && (
            <>
              <dt>Why it asks</dt>
              <dd>{request.reason}</dd>
            </>
          )}
          <dt>{isCall ? "If approved" : "If answered"}</dt>
          <dd>{isCall ? "The call runs once, with these arguments." : "The answer goes to the agent."}</dd>
          <dt>Meanwhile</dt>
          <dd>{agentId} keeps its seat. Nothing is spent.</dd>
        </dl>
        {denial !== null && (
          <label class="field">
            Reason, which {agentId} reads
            <input ref={focusOn} value={denial} onInput={(event) => setDenial(event.currentTarget.value)} />
          </label>
        )}
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          {denial === null ? (
            <>
              {(isCall || edited !== null || request.kind === "confirm") && (
                <button class="button primary" onClick={approve}>
                  {isCall
                    ? edited === null
                      ? "Approve"
                      : "Approve the edited call"
                    : edited === null
                      ? "Agree"
                      : "Answer"}{" "}
                  <kbd>A</kbd>
                </button>
              )}
              {edited === null && (
                <button class="button" onClick={edit}>
                  {isCall ? "Edit" : "Write an answer"} <kbd>E</kbd>
                </button>
              )}
              {edited !== null && (
                <button class="button" onClick={() => setEdited(null)}>
                  Back
                </button>
              )}
              <button class="button deny" onClick={() => setDenial("")}>
                Deny <kbd>D</kbd>
              </button>
              <button class="button quiet" onClick={() => void answer({ decision: "skipped" })}>
                Skip <kbd>S</kbd>
              </button>
            </>
          ) : (
            <>
              <button
                class="button danger"
                onClick={() => void answer({ decision: "denied", ...(denial !== "" && { reason: denial }) })}
              >
                Deny the call
              </button>
              <button class="button quiet" onClick={() => setDenial(null)}>
                Back
              </button>
            </>
          )}
          {isCall && (
            <label class="check">
              <input
                type="checkbox"
                checked={remember}
                onChange={(event) => setRemember(event.currentTarget.checked)}
              />
              Do not ask me again for this tool
            </label>
          )}
        </div>
      </div>
      <span class="unseen">{runId}</span>
    </section>
  );
}

/** Moves the focus to an element that has just appeared. */
function focusOn(element: HTMLElement | null): void {
  element?.focus();
}

function Content({
  request,
  onChoose,
}: {
  readonly request: Question["request"];
  readonly onChoose: (choice: string) => void;
}): JSX.Element {
  const { kind, input, parsedInput, toolName } = request;
  const choices = choicesOf(input);
  if (kind === "tool_call") return <pre class="command">{callText(toolName, parsedInput ?? input)}</pre>;
  if (choices.length > 0)
    return (
      <div class="actions choices">
        {choices.map((choice) => (
          <button key={choice} class="button" onClick={() => onChoose(choice)}>
            {choice}
          </button>
        ))}
      </div>
    );
  return questionText(input) === null ? <pre class="command">{plain(input)}</pre> : <></>;
}

async function send(
  { runId, request: { approvalId, kind, callId } }: Question,
  answer: Answer,
): Promise<void> {
  const params = { runId };
  if (kind === "client_tool") {
    const isError = answer.decision !== "approved";
    const value = answer.input ?? answer.reason ?? answer.decision;
    await post("/api/runs/{runId}/tool-result", { params, body: { callId, value, isError } });
    return;
  }
  await post("/api/runs/{runId}/decide", { params, body: { approvalId, ...answer } });
}

const sentWords = {
  approved: "Approved by you",
  denied: "Denied by you",
  skipped: "Skipped by you",
} as const;

/** Who was first, if the question has been answered meanwhile. The run may have ended since. */
async function lostRace(error: unknown, { runId, request }: Question): Promise<string | null> {
  if (!(error instanceof RequestError) || (error.status !== 409 && error.status !== 404)) return null;
  const { by, decision, at } = error.details;
  if (typeof decision === "string") return firstWords(by, decision, at);
  const { events } = await get("/api/runs/{runId}/events", {
    params: { runId },
    query: { types: ["approval_decision"], limit: 5_000 },
  });
  for (const event of events.toReversed())
    if (event.type === "approval_decision" && event.data.approvalId === request.approvalId)
      return firstWords(event.data.decision.by, event.data.decision.decision, event.at);
  return null;
}

function firstWords(by: unknown, decision: string, at: unknown): string {
  const passed = typeof at === "number" ? ` ${span(Date.now() - at)} ago` : "";
  return `${personName(typeof by === "string" ? by : undefined)} ${decision} this${passed}.`;
}

/** Who wants what, as a sentence. */
function sentence(agentId: string, { kind, toolName, input }: Question["request"]): string {
  if (kind !== "tool_call") return questionText(input) ?? `${agentId} asks with ${toolName}`;
  return `${agentId} wants to call ${toolName}`;
}

export function questionText(input: JsonValue): string | null {
  if (typeof input === "string") return oneLine(input);
  if (typeof input !== "object" || input === null || Array.isArray(input)) return null;
  const { question, message } = input as Readonly<Record<string, JsonValue | undefined>>;
  if (typeof question === "string") return question;
  return typeof message === "string" ? message : null;
}

function choicesOf(input: JsonValue): readonly string[] {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return [];
  const { choices, options } = input as Readonly<Record<string, JsonValue | undefined>>;
  const list = Array.isArray(choices) ? choices : Array.isArray(options) ? options : [];
  return list.filter((choice) => typeof choice === "string");
}

/** The exact call: a command as it runs, other arguments as JSON. */
function callText(toolName: string, input: JsonValue): string {
  const isCommand =
    typeof input === "object" && input !== null && !Array.isArray(input) && "command" in input;
  return isCommand
    ? plain((input as Readonly<Record<string, JsonValue>>)["command"])
    : `${toolName} ${plain(input)}`;
}

function parsed(text: string, isCall: boolean): JsonValue | undefined {
  if (!isCall) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
