import {
  checkChoice,
  readProperty,
  rootTaskId,
  type Delivery,
  type JsonObject,
  type JsonValue,
  type OpenApproval,
  type RunSummary,
  type Runtime,
} from "../../../../kernel/index.ts";
import { FiguresOfRuns } from "../../../http/figures/run-figures.ts";
import { inboxKinds, InboxReader } from "../../../http/inbox-reader.ts";
import { keyOfLetter, keyOfQuestion, keyOfRun } from "../../../view/inbox-keys.ts";
import { lackOf } from "../../../view/top-up-offer.ts";
import { findRunId } from "../../setup/find-run.ts";
import { withRuns } from "../../setup/idle-engine.ts";
import { defaultStore } from "../../setup/default-store.ts";
import type { StoreOptions } from "../../setup/stored-runs.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, dollars, duration, shellWord, short } from "../../terminal/format.ts";
import { positiveInteger } from "../../terminal/number-option.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { isForPerson } from "../../terminal/approval-prompt.ts";

export interface InboxCommandOptions extends StoreOptions {
  readonly kind?: string;
  readonly agent?: string;
  readonly limit: string;
  readonly json?: boolean;
}

/** One line of the inbox. */
interface InboxLine {
  /** What waits, in one or two words. */
  readonly what: string;
  readonly runId: string | null;
  /** Time since which the request waits, in epoch milliseconds. */
  readonly at: number;
  readonly agentId: string;
  readonly text: string;
  /** The command that answers the request. `null` if a program answers it. */
  readonly answer: string | null;
  /** The item in full, for `--json`. */
  readonly item: object;
}

/** Prints everything that waits for a person: questions, stopped runs, and undelivered messages. */
export function printInbox(
  name: string | undefined,
  options: InboxCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { kind, agent, json = false } = options;
  checkChoice("reeve inbox", "--kind", kind, inboxKinds);
  const limit = positiveInteger("--limit", options.limit);
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const runId = name === undefined ? undefined : await findRunId(store, name, options.store);
    const wanted = {
      limit,
      ...(kind !== undefined && { kind: kind as (typeof inboxKinds)[number] }),
      ...(agent !== undefined && { agent }),
      ...(runId !== undefined && { runId }),
    };
    // What a person has closed on the page still waits.
    const { questions, runs, letters } = await new InboxReader(runtime, [], wanted).read();
    const lines = [
      ...questions.items.map(lineOfQuestion),
      ...(await Promise.all(runs.items.map((run) => lineOfRun(runtime, run)))),
      ...letters.items.map(lineOfLetter),
    ].map((line) => inStore(line, options));
    await (json ? printJson(lines, terminal) : printLines(lines, terminal));
    if (lines.length === 0) terminal.say("Nothing waits for a person.");
    if (questions.isMore || runs.isMore || letters.isMore)
      terminal.say(`Only ${limit} of each kind are shown; --limit shows more.`);
    return "ok";
  });
}

/** Returns the line with a command that also names the store, unless it is the store of the folder. */
function inStore(line: InboxLine, { store }: StoreOptions): InboxLine {
  const { answer } = line;
  if (answer === null || store === defaultStore) return line;
  return {
    ...line,
    answer: answer.replace(/^reeve \S+/u, (start) => `${start} --store ${shellWord(store)}`),
  };
}

async function printJson(lines: readonly InboxLine[], terminal: Terminal): Promise<void> {
  for (const { what, answer, item } of lines)
    await terminal.out(JSON.stringify({ waits: what, answer, ...item }));
}

async function printLines(lines: readonly InboxLine[], terminal: Terminal): Promise<void> {
  const now = Date.now();
  const rows = lines.map(({ what, runId, at, agentId, text, answer }) => [
    what,
    runId ?? "-",
    `${duration(now - at)} ago`,
    printable(agentId.split("/", 1)[0] ?? agentId),
    printable(short(text)),
    answer === null ? "a program answers" : printable(answer),
  ]);
  const all = terminal.isWatched && rows.length > 0 ? [heading, ...rows] : rows;
  for (const line of columns(all)) await terminal.out(line);
}

const heading = ["WAITS", "RUN", "SINCE", "AGENT", "WHAT", "ANSWER WITH"];

function lineOfQuestion(question: OpenApproval): InboxLine {
  const { runId, agentId, approvalId } = question;
  return {
    what: kindWord(question),
    runId,
    at: keyOfQuestion(question).at,
    agentId,
    text: textOf(question),
    answer: isForPerson(question) ? `reeve approve ${runId} --id ${shellWord(approvalId)}` : null,
    item: question,
  };
}

function kindWord({ kind }: OpenApproval): string {
  switch (kind) {
    case "tool_call":
    case "foreign_tool_call":
      return "approval";
    case "top_up":
      return "budget";
    case "merge":
      return "merge";
    case "client_tool":
      return "program";
    default:
      return "question";
  }
}

/** Returns what a person must decide, in one line: the call with its arguments, or the question. */
function textOf({ kind, toolName, input, reason }: OpenApproval): string {
  if (kind === "tool_call" || kind === "foreign_tool_call" || kind === "client_tool")
    return `${toolName} ${JSON.stringify(input)}`;
  return messageOf(input) ?? reason;
}

function messageOf(input: JsonValue): string | undefined {
  const message = readProperty(input, "message");
  return typeof message === "string" && message !== "" ? message : undefined;
}

const addOptions = {
  maxCostUsd: "--usd",
  maxTurns: "--turns",
  maxTokens: "--tokens",
  deadlineMs: "--seconds",
} as const;

/**
 * Returns the line for a run that stopped at a limit, or that was paused because it crashed every process that
 * executed it.
 */
async function lineOfRun(runtime: Runtime, run: RunSummary): Promise<InboxLine> {
  const { runId, agentId, status, costUsd } = run;
  const { at } = keyOfRun(run);
  if (status === "paused") {
    const text = "ends the processes that execute it";
    const answer = `reeve resume ${runId}`;
    return { what: "crash loop", runId, at, agentId, text, answer, item: run };
  }
  const figures = await new FiguresOfRuns().of(runtime, runId);
  const lack = figures === undefined ? null : lackOf({ status, failure: figures.failure, budget: figures });
  const spent = `${status}, ${dollars(costUsd)} spent`;
  const answer =
    lack === null
      ? `reeve show ${runId}`
      : `reeve top-up ${runId} ${addOptions[lack.name]} N${lack.taskId === rootTaskId ? "" : ` --task ${lack.taskId}`}`;
  const item: JsonObject = { ...(run as unknown as JsonObject), lack: lack as JsonValue };
  return { what: "stopped", runId, at, agentId, text: spent, answer, item };
}

function lineOfLetter(letter: Delivery): InboxLine {
  const { message, deliveries, runId = null } = letter;
  return {
    what: "not delivered",
    runId,
    at: keyOfLetter(letter).at,
    agentId: message.to,
    text: `tried ${deliveries}x: ${JSON.stringify(message.body)}`,
    answer: `reeve redeliver ${shellWord(message.to)} -- ${shellWord(message.id)}`,
    item: letter,
  };
}
