import {
  asksAboutCall,
  visibleLine,
  visibleText,
  type ApprovalDecision,
  type MergeQuestion,
} from "../../src/kernel/index.ts";
import { filePatches, mergeOf } from "../../src/surfaces/view/merge-words.ts";
import type { QuestionView } from "../../src/surfaces/view/run-view.ts";
import type { JSX, RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { errorText, get, post, RequestError, type Body } from "../api/client.ts";
import { isOffline } from "../api/connection.ts";
import { refreshSoon } from "../api/runs-feed.ts";
import { useKeys } from "../base/keys.ts";
import { now } from "../base/now.ts";
import {
  callText,
  choicesOf,
  droppedWords,
  firstWords,
  offerOf,
  otherArguments,
  patchOf,
  questionText,
  reasonWords,
  sentence,
} from "../model/words/approval-words.ts";
import { draftOf, readDraft, type CallDraft } from "../model/edited-call.ts";
import { canBeAllowed } from "../model/words/foreign-words.ts";
import { decisionWords } from "../model/words/decision-words.ts";
import { CallEdit, focusOnWrong } from "./call-edit.tsx";
import { Diff } from "./diff.tsx";
import { ForeignContent } from "./foreign-call.tsx";
import { capitalized, counted, plain, span, timeOfDay } from "../base/format.ts";
import { Glyph } from "./glyph.tsx";

/** A question as the card shows it, from the log of a run or from the inbox. */
interface Question {
  readonly runId: string;
  readonly agentId: string;
  readonly askedAt: number;
  readonly request: Pick<
    QuestionView["request"],
    | "approvalId"
    | "kind"
    | "toolName"
    | "callId"
    | "input"
    | "parsedInput"
    | "inputSchema"
    | "reason"
    | "foreign"
  >;
  readonly decision: ApprovalDecision | null;
  readonly decidedAt: number | null;
  /** Time at which its agent ended without an answer. Questions of the inbox do not have it. */
  readonly droppedAt?: number | null;
}

interface CardProps {
  readonly question: Question;
  /** Whether the keys A, E, D and S apply to this card. */
  readonly hasKeys?: boolean;
}

/** How a question was answered. */
interface Outcome {
  readonly words: string;
  /** `null` if the words say when. */
  readonly at: number | null;
  readonly isApproved: boolean;
}

type Answer = Omit<Body<"POST", "/api/runs/{runId}/decide">, "approvalId">;

/** Asks a person. After the answer, it shows one line: who decided, and when. */
export function ApprovalCard({ question, hasKeys = false }: CardProps): JSX.Element {
  const { decision, decidedAt, droppedAt = null } = question;
  const [sent, setSent] = useState<Outcome | null>(null);
  if (decision !== null)
    return (
      <p class="decided">
        <Glyph look={decision.decision === "approved" ? "completed" : "cancelled"} />
        {decisionWords(decision, question.request)}
        {decidedAt !== null && <span class="label">at {timeOfDay(decidedAt)}</span>}
      </p>
    );
  if (droppedAt !== null)
    return (
      <p class="decided">
        <Glyph look="cancelled" />
        {droppedWords(question.agentId, question.request)}
        <span class="label">at {timeOfDay(droppedAt)}</span>
      </p>
    );
  if (sent !== null)
    return (
      <p class="decided" role="status">
        <Glyph look={sent.isApproved ? "completed" : "cancelled"} />
        {sent.words}
        {sent.at !== null && <span class="label">at {timeOfDay(sent.at)}</span>}
      </p>
    );
  return <OpenCard question={question} hasKeys={hasKeys} onSent={setSent} />;
}

interface OpenProps extends CardProps {
  readonly hasKeys: boolean;
  readonly onSent: (outcome: Outcome) => void;
}

function OpenCard({ question, hasKeys, onSent }: OpenProps): JSX.Element {
  const { runId, agentId, askedAt, request } = question;
  /** The answer to a question, and the arguments of a call, while a person writes them. */
  const [written, setWritten] = useState<string | null>(null);
  const [draft, setDraft] = useState<CallDraft | null>(null);
  const [denial, setDenial] = useState<string | null>(null);
  const [remember, setRemember] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const root = useRef<HTMLElement>(null);
  const isCall = request.kind === "tool_call";
  /** Whether a program makes the call with its own tool. A person cannot edit the arguments of this call. */
  const isForeign = request.kind === "foreign_tool_call";
  const isAboutCall = asksAboutCall(request);
  /**
   * Whether an approval can have an effect. A program that offers no approval for one call refuses the call in any
   * case.
   */
  const canAllow = request.foreign === undefined || canBeAllowed(request.foreign);
  const isTopUp = request.kind === "top_up";
  const isMerge = request.kind === "merge";
  const amount = isTopUp ? offerOf(request.input)?.amount : undefined;
  const reason = reasonWords(request);
  const edited = draft === null ? null : readDraft(request, draft);
  const isEditing = written !== null || draft !== null;
  const others = isEditing ? null : otherArguments(request);
  const { asked, unread } = useReadThrough(!isEditing);
  /** Number of arguments that differ from the requested ones. */
  const changes = edited?.changes.length ?? 0;
  /**
   * Number of lines of the call that were not visible yet. If the person has changed something, the call counts as
   * read.
   */
  const left = (isAboutCall || isMerge) && changes === 0 ? unread : 0;
  /** On a narrow screen the list hides the question, and no key answers a question that is not shown. */
  const isSeen = (): boolean => root.current?.checkVisibility() ?? false;
  /** Whether a field has the focus, which takes the letters of the keys. */
  const isWriting = isEditing || denial !== null;
  const answer = async (value: Answer): Promise<void> => {
    setProblem(null);
    try {
      await send(question, value);
      onSent({
        words:
          value.input === undefined || !isCall
            ? sentWords[value.decision]
            : `Approved by you with ${counted(changes, "change")}`,
        at: Date.now(),
        isApproved: value.decision === "approved",
      });
    } catch (error) {
      const lost = await lostRace(error, question);
      if (lost === null) setProblem(refusedWords(errorText(error)));
      else
        onSent(
          value.input === undefined || !isCall
            ? lost
            : { ...lost, words: `${lost.words} Your change was not used.` },
        );
    }
    refreshSoon();
  };
  const approve = (): void => {
    if (!canAllow) return;
    if (left > 0) return setProblem(`Read the whole call first: ${counted(left, "line")} below.`);
    if (draft !== null && edited !== null && edited.value === undefined) {
      focusOnWrong({ request, draft });
      return setProblem(edited.problem ?? "Correct the marked arguments first.");
    }
    const input = changes > 0 ? edited?.value : (written ?? undefined);
    void answer({
      decision: "approved",
      ...(input !== undefined && { input }),
      ...(remember && { remember }),
    });
  };
  const edit = (): void => {
    if (isTopUp || isMerge || isForeign) return;
    if (isCall) setDraft(draft ?? draftOf(request));
    else setWritten(written ?? "");
  };
  const leave = (): void => {
    setWritten(null);
    setDraft(null);
    setProblem(null);
  };
  const keys = {
    // A key that is held down must not answer the next question too.
    a: ({ repeat }: KeyboardEvent) => (repeat || !isSeen() ? false : approve()),
    e: () => (isSeen() ? edit() : false),
    d: () => (isSeen() ? setDenial(denial ?? "") : false),
    s: ({ repeat }: KeyboardEvent) => (repeat || !isSeen() ? false : void answer({ decision: "skipped" })),
  } as const;
  useKeys(hasKeys && !isOffline.value ? keys : {});
  return (
    <section
      class="approval"
      ref={root}
      aria-label={`${agentId} waits for you`}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isWriting) return;
        leave();
        setDenial(null);
      }}
    >
      <header>
        <Glyph look={isAboutCall ? "waits" : "question"} />
        {isAboutCall
          ? "Waits for you"
          : isTopUp
            ? "Asks for a top-up"
            : isMerge
              ? "Asks to merge"
              : "A question"}
        <span class="label">{span(now.value - askedAt)}</span>
      </header>
      <div class="body">
        <h3>{sentence(agentId, request)}</h3>
        {draft !== null ? (
          <CallEdit request={request} draft={draft} onDraft={setDraft} />
        ) : written === null ? (
          <div class="asked" ref={asked} tabIndex={0} role="group" aria-label="What it asks for">
            <Content
              request={request}
              onChoose={(choice) => void answer({ decision: "approved", input: choice })}
            />
            {others !== null && (
              <>
                <h4 class="label">Other arguments</h4>
                <pre class="command">{others}</pre>
              </>
            )}
          </div>
        ) : (
          <textarea
            class="command"
            aria-label="Answer"
            rows={Math.min(12, Math.max(3, written.split("\n").length))}
            value={written}
            ref={focusOn}
            onInput={(event) => setWritten(event.currentTarget.value)}
          />
        )}
        <dl class="pairs">
          {reason !== null && (
            <>
              <dt>Why it asks</dt>
              <dd>{reason}</dd>
            </>
          )}
          <dt>{isAboutCall || isMerge ? "If approved" : isTopUp ? "If topped up" : "If answered"}</dt>
          <dd>
            {
              effectWords[
                isTopUp ? "topUp" : isMerge ? "merge" : isForeign ? "foreign" : isCall ? "call" : "question"
              ]
            }
          </dd>
          <dt>Meanwhile</dt>
          <dd>
            {agentId} {isTopUp ? "has given up its seat" : "keeps its seat"} and spends nothing.
            {isForeign && ` ${idleWords}`}
          </dd>
        </dl>
        {denial !== null && (
          <label class="field">
            Reason, which {agentId} reads
            <input ref={focusOn} value={denial} onInput={(event) => setDenial(event.currentTarget.value)} />
          </label>
        )}
        {!canAllow && <p class="problem">{noYes}</p>}
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <fieldset class="actions" disabled={isOffline.value}>
          {denial === null ? (
            <>
              {(isAboutCall || isTopUp || isMerge || written !== null || request.kind === "confirm") && (
                <button class="button primary" disabled={left > 0 || !canAllow} onClick={approve}>
                  {isAboutCall
                    ? changes === 0
                      ? isForeign
                        ? "Allow once"
                        : "Approve"
                      : `Approve with ${counted(changes, "change")}`
                    : written === null
                      ? isTopUp
                        ? `Top up${amount === undefined ? "" : ` ${amount}`}`
                        : isMerge
                          ? "Merge"
                          : "Agree"
                      : "Answer"}{" "}
                  {!isWriting && <kbd>A</kbd>}
                </button>
              )}
              {!isEditing && !isTopUp && !isMerge && !isForeign && (
                <button class="button" onClick={edit}>
                  {isCall ? "Edit" : "Write an answer"} <kbd>E</kbd>
                </button>
              )}
              {isEditing && (
                <button class="button" onClick={leave}>
                  Back
                </button>
              )}
              <button class="button deny" onClick={() => setDenial("")}>
                Deny {!isWriting && <kbd>D</kbd>}
              </button>
              <button class="button quiet" onClick={() => void answer({ decision: "skipped" })}>
                Skip {!isWriting && <kbd>S</kbd>}
              </button>
            </>
          ) : (
            <>
              <button
                class="button danger"
                onClick={() => void answer({ decision: "denied", ...(denial !== "" && { reason: denial }) })}
              >
                {isTopUp ? "Refuse the top-up" : isMerge ? "Do not merge" : "Deny the call"}
              </button>
              <button class="button quiet" onClick={() => setDenial(null)}>
                Back
              </button>
            </>
          )}
          {left > 0 && denial === null && (
            <span class="label" role="status">
              {counted(left, "line")} not read yet
            </span>
          )}
          {isAboutCall && denial === null && (
            <label class="check">
              <input
                type="checkbox"
                checked={remember}
                onChange={(event) => setRemember(event.currentTarget.checked)}
              />
              {isForeign
                ? "Do not ask me again for this call with these arguments"
                : "Do not ask me again for this tool"}
            </label>
          )}
        </fieldset>
      </div>
      <span class="unseen">{runId}</span>
    </section>
  );
}

/** How many lines of a scrolling element were not in view yet while it was shown. 0 once its end was in view. */
function useReadThrough(isShown: boolean): {
  readonly asked: RefObject<HTMLDivElement | null>;
  readonly unread: number;
} {
  const asked = useRef<HTMLDivElement>(null);
  const [unread, setUnread] = useState(0);
  const isRead = useRef(false);
  useLayoutEffect(() => {
    const element = asked.current;
    if (element === null) return;
    const measure = (): void => {
      // A call that another part of the page hides has no height, and was not read.
      if (element.clientHeight === 0) return;
      const below = element.scrollHeight - element.clientHeight - element.scrollTop;
      isRead.current ||= below <= 1;
      setUnread(isRead.current ? 0 : Math.ceil(below / lineHeight));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, [isShown]);
  return { asked, unread };
}

/** What an answer does. */
const effectWords = {
  call: "The call runs once, with these arguments.",
  foreign: "The program makes the call itself. What it says about the call is not checked.",
  question: "The answer goes to the agent.",
  merge: "Exactly this is merged. If a folder has changed meanwhile, nothing is.",
  topUp: "The amount is added to the budget, and the task continues where it stopped.",
} as const;

/** Explains what happens if no person answers a program for a long time. */
const idleWords =
  "If you take longer than its idle time (an hour by default), its process ends and the question stays: your answer counts if the program asks for the same call after it has continued.";

const noYes = "The program offers no yes for one call, so that it cannot be allowed.";

/** Height of a line of a call, in pixels. */
const lineHeight = 20;

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
  const { kind, input } = request;
  const choices = choicesOf(input);
  const merge = kind === "merge" ? mergeOf(input) : null;
  if (merge !== null) return <MergeContent question={merge} />;
  if (request.foreign !== undefined)
    return (
      <ForeignContent view={request.foreign} program={request.foreign.program} args={callText(request)} />
    );
  const patch = kind === "tool_call" ? patchOf(request) : null;
  if (patch !== null) return <Diff patch={patch} />;
  if (kind === "tool_call") return <pre class="command">{callText(request)}</pre>;
  if (choices.length > 0)
    return (
      <fieldset class="actions choices" disabled={isOffline.value}>
        {choices.map((choice) => (
          <button key={choice} class="button" onClick={() => onChoose(choice)}>
            {visibleLine(choice)}
          </button>
        ))}
      </fieldset>
    );
  return questionText(input) === null ? <pre class="command">{visibleText(plain(input))}</pre> : <></>;
}

/** The branches that are merged, and the changes of each file. */
function MergeContent({
  question: { merge, diff, isCut },
}: {
  readonly question: MergeQuestion;
}): JSX.Element {
  return (
    <>
      <dl class="pairs">
        <dt>Into</dt>
        <dd>{visibleLine(merge.branch === null ? merge.path : `${merge.branch} (${merge.path})`)}</dd>
        {merge.sources.map(({ taskId, branch, commit }) => (
          <>
            <dt>{visibleLine(taskId)}</dt>
            <dd>{visibleLine(`${branch}, commit ${commit.slice(0, 12)}`)}</dd>
          </>
        ))}
      </dl>
      {filePatches(diff).map(({ path, notes, patch }) => (
        <>
          <h4 class="label">{visibleLine(path)}</h4>
          {notes.length > 0 && <pre class="command">{visibleText(notes.join("\n"))}</pre>}
          {patch !== "" && <Diff patch={patch} />}
        </>
      ))}
      {isCut === true && <p class="problem">The rest of the diff is too long to be shown.</p>}
    </>
  );
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

/** Describes why an answer was refused, without the id of the question. */
function refusedWords(text: string): string {
  return capitalized(text.replace(/^invalid decision on \S+: /u, ""));
}

const sentWords = {
  approved: "Approved by you",
  denied: "Denied by you",
  skipped: "Skipped by you",
} as const;

/** Returns who answered first, if the question was answered in the meantime. The run may also have ended. */
async function lostRace(error: unknown, { runId, request }: Question): Promise<Outcome | null> {
  if (!(error instanceof RequestError) || (error.status !== 409 && error.status !== 404)) return null;
  const { by, decision, at } = error.details;
  if (typeof decision === "string") return firstOutcome(by, decision, at);
  const { events } = await get("/api/runs/{runId}/events", {
    params: { runId },
    query: { types: ["approval_decision"], limit: 5_000, last: true },
  });
  for (const event of events.toReversed())
    if (event.type === "approval_decision" && event.data.approvalId === request.approvalId)
      return firstOutcome(event.data.decision.by, event.data.decision.decision, event.at);
  return null;
}

function firstOutcome(by: unknown, decision: string, at: unknown): Outcome {
  const passedMs = typeof at === "number" ? Date.now() - at : null;
  const words = firstWords(typeof by === "string" ? by : undefined, decision, passedMs);
  return { words, at: null, isApproved: decision === "approved" };
}
