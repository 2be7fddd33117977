import { asksAboutCall, visibleLine, type ApprovalRequest } from "../../../kernel/index.ts";
import { argumentOf } from "../../view/excerpt.ts";
import { keyOfLetter, keyOfQuestion, keyOfRun } from "../../view/inbox-keys.ts";
import type { QuestionView } from "../../view/run-view.ts";
import { causeWords, statusWords } from "../../view/status-words.ts";
import { amountWords } from "../../view/top-up-offer.ts";
import { questionLine } from "../chat/front/questions.ts";
import type { Run, RunState } from "./run-feed.ts";
import type { Inbox } from "./store-feed.ts";

/** A question with the run that asks it. */
export interface RunQuestion {
  readonly runId: string;
  readonly question: Pick<QuestionView, "request" | "agentId" | "taskId">;
}

/** Something that waits for a person, in one line. */
export interface WatchItem {
  /** Names the item while it waits. */
  readonly id: string;
  /** Time since which the item waits, in epoch milliseconds. */
  readonly at: number;
  readonly sign: string;
  readonly agentId: string;
  readonly text: string;
  /** What answers it. */
  readonly act:
    | ({ readonly kind: "answer" } & RunQuestion)
    | { readonly kind: "top-up" | "resume"; readonly runId: string }
    | { readonly kind: "none" };
}

/** What waits in one run. */
export function itemsOfRun(feed: RunState): readonly WatchItem[] {
  const { runId, agentId } = feed.run;
  const { view, lack } = feed;
  const items: WatchItem[] = feed.questions.map((question) => itemOf({ runId, question }, question.askedAt));
  if (lack !== undefined) {
    const limit = lack.limit === null ? "its limit" : amountWords(lack.name, lack.limit);
    items.push({
      id: `${runId} lack`,
      at: view.endedAt ?? view.at,
      sign: "$",
      agentId: view.tasks.get(lack.taskId as QuestionView["taskId"])?.agentId ?? agentId,
      text: `stopped at ${limit}; a top-up lets it continue`,
      act: { kind: "top-up", runId },
    });
  }
  if (view.crashLoop !== null)
    items.push({
      id: `${runId} crash loop`,
      at: view.at,
      sign: "!",
      agentId,
      text: causeWords.crash_loop,
      act: { kind: "resume", runId },
    });
  return items;
}

/** What waits in all runs. */
export function itemsOfInbox({ questions, runs, letters }: Inbox): readonly WatchItem[] {
  return [
    ...questions.items.map((item) => {
      const { agentId, taskId, runId } = item;
      const question = { request: item as unknown as ApprovalRequest, agentId, taskId };
      return itemOf({ runId, question: question as RunQuestion["question"] }, keyOfQuestion(item).at);
    }),
    ...runs.items.map((run): WatchItem => {
      const { runId, agentId, status } = run;
      const isLoop = status === "paused";
      return {
        id: runId,
        at: keyOfRun(run).at,
        sign: isLoop ? "!" : "$",
        agentId,
        text: isLoop ? causeWords.crash_loop : `${statusWords[status]}; a top-up may let it continue`,
        act: { kind: isLoop ? "resume" : "top-up", runId },
      };
    }),
    ...letters.items.map((letter): WatchItem => ({
      ...keyOfLetter(letter),
      sign: "✉",
      agentId: letter.message.to,
      text: `a message was not delivered in ${letter.deliveries} tries; reeve redeliver sends it again`,
      act: { kind: "none" },
    })),
  ];
}

/** Returns the id of the item for a question of a run. */
export function itemId(runId: string, approvalId: string): string {
  return `${runId}:${approvalId}`;
}

function itemOf({ runId, question }: RunQuestion, at: number): WatchItem {
  const { request, agentId } = question;
  const isForProgram = request.kind === "client_tool";
  return {
    id: itemId(runId, request.approvalId),
    at,
    sign: "?",
    agentId,
    text: isForProgram ? `${request.toolName} waits for a program` : askedText(request),
    act: isForProgram ? { kind: "none" } : { kind: "answer", runId, question },
  };
}

function askedText(request: ApprovalRequest): string {
  const { toolName, input } = request;
  if (!asksAboutCall(request)) return questionLine(request);
  const about = argumentOf(input);
  return visibleLine(about === "" ? `wants to call ${toolName}` : `wants to call ${toolName}: ${about}`);
}

/** How a run in a list stands, in words. */
export function runWord({ status, waitsFor, host }: Run): string {
  const [first] = waitsFor;
  if (first === undefined) return statusWords[status];
  if (first === "person") return causeWords.person;
  if (first === "host" && host !== undefined) return `Waits for machine ${visibleLine(host)}`;
  const isWaiting = status === "waiting" || status === "pending" || first === "crash_loop";
  return isWaiting ? causeWords[first] : statusWords[status];
}
