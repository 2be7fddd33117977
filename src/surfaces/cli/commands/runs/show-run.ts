import {
  agentNameOf,
  jsonText,
  totalTokens,
  type ApprovalRequest,
  type CrashLoop,
  type TaskId,
} from "../../../../kernel/index.ts";
import { crashLoopHeadline, crashLoopLines } from "../../../view/crash-loop-words.ts";
import { scoreWords } from "../../../view/run-words.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import {
  causeWords,
  columns,
  counted,
  dollars,
  duration,
  shortText,
  likelyCost,
  likelyWords,
} from "../../terminal/format.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, shownText, type Terminal } from "../../terminal/terminal.ts";
import { isForPerson } from "../../terminal/approval-prompt.ts";
import { requestLines } from "../../terminal/run-watcher.ts";
import { findRunId } from "../../setup/find-run.ts";
import { readReport, totalOf, type RunReport, type TaskReport } from "./run-report.ts";

export interface ReportOptions extends StoreOptions {
  readonly json?: boolean;
}

/** Prints the status, the cost, the open requests and the answer of a run. */
export function showRun(name: string, options: ReportOptions, terminal: Terminal): Promise<ExitKind> {
  return printReport(name, options, terminal, {
    lines: showLines,
    json: ({ summary, tasks, approvals, input, output, failure, crashLoop, events, ...spent }) => ({
      ...summary,
      input,
      output,
      error: failure,
      crashLoop,
      pendingApprovals: approvals,
      tasks: [...tasks.values()],
      events,
      ...totalOf(spent),
      unreported: spent.unreported,
    }),
  });
}

/** Prints the tasks of a run as a tree. */
export function showTree(name: string, options: ReportOptions, terminal: Terminal): Promise<ExitKind> {
  return printReport(name, options, terminal, {
    lines: ({ tasks }) => treeLines([...tasks.values()], null, ""),
    json: ({ tasks }) => [...tasks.values()],
  });
}

/** Prints the cost of a run by agent and model. */
export function showCost(name: string, options: ReportOptions, terminal: Terminal): Promise<ExitKind> {
  return printReport(name, options, terminal, {
    lines: costLines,
    json: ({ summary: { runId }, calls, unreported }) => ({
      runId,
      byAgent: calls,
      unreported,
      total: totalOf({ calls, unreported }),
    }),
  });
}

interface Printer {
  readonly lines: (report: RunReport) => readonly string[];
  readonly json: (report: RunReport) => unknown;
}

function printReport(
  name: string,
  options: ReportOptions,
  terminal: Terminal,
  { lines, json }: Printer,
): Promise<ExitKind> {
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const report = await readReport(store, await findRunId(store, name, options.store));
    for (const line of options.json === true ? [JSON.stringify(json(report))] : lines(report))
      await terminal.out(line);
    return "ok";
  });
}

function showLines(report: RunReport): readonly string[] {
  const { summary, approvals, input, output, failure, crashLoop, events, tasks, unreported } = report;
  const { runId, kind, status, waitsFor, agentId, sessionId, createdAt, endedAt, host } = summary;
  const { calls, usage, costUsd } = totalOf(report);
  const waits = waitsFor.length === 0 ? "" : ` (waits for: ${causeWords(summary)})`;
  const lost = unreported.calls === 0 ? "" : `, up to ${counted(unreported.tokens)} more unreported`;
  const took = duration((endedAt ?? Date.now()) - createdAt);
  const facts = columns([
    ["run", runId],
    ["status", `${status}${waits}`],
    ["agent", printable(agentId)],
    ...(sessionId === undefined ? [] : [["session", printable(sessionId)]]),
    ...(host === undefined ? [] : [["machine", printable(host)]]),
    ["started", `${new Date(createdAt).toISOString()}, ${endedAt === null ? `${took} ago` : `took ${took}`}`],
    [
      "spent",
      `${calls} calls, ${counted(totalTokens(usage))} tokens${lost}, ${dollars(costUsd)}${likelyWords({ costUsd, unreported })}`,
    ],
    ...(summary.scores === undefined ? [] : [["scores", printable(scoreWords(summary.scores))]]),
    ["log", `${events} events, ${tasks.size} ${tasks.size === 1 ? "task" : "tasks"}`],
    ["input", shortText(input)],
  ]);
  return [
    ...facts,
    ...(kind === "workflow" && waitsFor.includes("worker")
      ? [
          `waits    no worker of this store hosts ${printable(agentNameOf(agentId))} now: start a process that registers the workflow, and check its name`,
        ]
      : []),
    ...(waitsFor.includes("host")
      ? [
          `waits    it has left files on ${printable(host ?? "another machine")}, where no worker executes it now: start reeve worker or reeve run --resume there, or end it with reeve cancel ${runId}`,
        ]
      : []),
    ...(failure === null ? [] : [`error    ${failure.code}: ${printable(failure.message)}`]),
    ...(crashLoop === null ? [] : crashLines(crashLoop, runId)),
    ...approvals.flatMap((request) => [
      `asks     ${printable(request.approvalId)}: ${printable(request.reason)}; ${printable(answerTo(request, runId))}`,
      ...requestLines(request),
    ]),
    ...(output === null || output === "" ? [] : ["", shownText(jsonText(output))]),
  ];
}

function crashLines(crashLoop: CrashLoop, runId: string): readonly string[] {
  return [
    `crashes  ${crashLoopHeadline(crashLoop)}; correct the cause, then resume the run: on the page, with run.resume(), or, if reeve run started it, with reeve run --resume ${runId}`,
    ...crashLoopLines(crashLoop).map((line) => `         ${printable(line)}`),
  ];
}

function treeLines(tasks: readonly TaskReport[], parent: TaskId | null, indent: string): readonly string[] {
  const children = tasks.filter(({ parentId }) => parentId === parent);
  return children.flatMap(({ taskId, agentId, status }, index) => {
    const isLast = index === children.length - 1;
    const [branch, below] = parent === null ? ["", ""] : isLast ? ["└─ ", "   "] : ["├─ ", "│  "];
    const name = printable(agentId.split("/", 1)[0] ?? agentId);
    return [`${indent}${branch}${name}  ${taskId}  ${status}`, ...treeLines(tasks, taskId, indent + below)];
  });
}

function costLines(report: RunReport): readonly string[] {
  const { calls, unreported } = report;
  const total = totalOf(report);
  const rows = calls.map(({ agentId, model, calls: count, usage }) => [
    printable(agentId.split("/", 1)[0] ?? agentId),
    printable(model),
    ...numbers(count, usage.inputTokens, usage.outputTokens, usage.costUsd),
  ]);
  const lost = [
    "unreported",
    "",
    String(unreported.calls),
    counted(unreported.tokens),
    "",
    dollars(unreported.costUsd),
  ];
  const { inputTokens, outputTokens } = total.usage;
  return columns([
    ["AGENT", "MODEL", "CALLS", "INPUT", "OUTPUT", "COST"],
    ...rows,
    ...(unreported.calls === 0 ? [] : [lost]),
    ["total", "", ...numbers(total.calls, inputTokens + unreported.tokens, outputTokens, total.costUsd)],
    ...(unreported.calls === 0
      ? []
      : [["likely", "", "", "", "", likelyCost({ costUsd: total.costUsd, unreported })]]),
  ]);
}

function numbers(calls: number, input: number, output: number, costUsd: number | null): readonly string[] {
  return [String(calls), counted(input), counted(output), dollars(costUsd)];
}
/**
 * Returns the command that answers a request. The result of a client-side tool is sent by a program, not by a
 * command.
 */
function answerTo(request: ApprovalRequest, runId: string): string {
  return isForPerson(request)
    ? `answer with reeve approve ${runId}`
    : `a program answers with run.toolResult(${JSON.stringify(request.callId)}, value)`;
}
