import { visibleLine } from "../../../kernel/index.ts";
import type { RunView, TaskView } from "../../view/run-view.ts";
import { taskWord } from "../../view/status-words.ts";
import { doingOrResult, inTreeOrder } from "../../view/task-words.ts";
import { shortUsd, turnsOf } from "../chat/front/agent-tree.ts";
import { onGone } from "../chat/front/on-gone.ts";
import { shellWord } from "../terminal/format.ts";
import { interrupted } from "../terminal/interrupted.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { WatchFrontOptions } from "./interactive-watch.ts";
import { moneyLine, standing } from "./run-board.ts";
import { RunFeed, type Run } from "./run-feed.ts";
import { StoreFeed } from "./store-feed.ts";
import { itemsOfRun, runWord } from "./watch-items.ts";

/**
 * Prints a line for each change, for pipes and screen readers: for one run until it ends, or for all runs until an
 * interrupt. Also ends when its output is no longer read.
 */
export async function plainWatch(options: WatchFrontOptions): Promise<ExitKind> {
  const { terminal, runId } = options;
  const over = Promise.withResolvers<void>();
  const lines = new LineQueue(terminal);
  // The store that is read in this process keeps no process alive.
  const stay = setInterval(() => undefined, 60_000);
  const forget = onGone(() => over.resolve());
  void interrupted(terminal).then(() => over.resolve());
  try {
    const close = await (runId === undefined
      ? watchStore(options, lines, over)
      : watchRun(runId, options, lines, over));
    try {
      await over.promise;
    } finally {
      close();
      await lines.written;
    }
  } finally {
    forget();
    clearInterval(stay);
  }
  return "ok";
}

/** Writes lines one after another. */
class LineQueue {
  readonly #terminal: Terminal;
  written: Promise<void> = Promise.resolve();

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  add(line: string): void {
    this.written = this.written.then(() => this.#terminal.out(visibleLine(line)));
  }
}

type End = PromiseWithResolvers<void>;

async function watchRun(
  runId: string,
  { client, place }: WatchFrontOptions,
  lines: LineQueue,
  over: End,
): Promise<() => void> {
  const told = new Map<string, string>();
  /** Prints a text about a subject, unless the same text was printed last about this subject. */
  const tell = (about: string, text: string): void => {
    if (told.get(about) === text) return;
    told.set(about, text);
    lines.add(text);
  };
  const show = (feed: RunFeed): void => {
    const { view } = feed;
    tell("server", feed.lostAt === undefined ? "" : `The server ${place} does not answer; trying again.`);
    for (const task of inTreeOrder(view)) {
      const word = taskWord(task);
      if (told.get(task.taskId) !== word) lines.add(taskLine(task, view));
      told.set(task.taskId, word);
    }
    for (const { id, agentId, text, act } of itemsOfRun(feed))
      if (act.kind === "answer") {
        const { approvalId } = act.question.request;
        tell(
          id,
          `${agentId} asks: ${text}. Answer with reeve approve ${runId} --id ${shellWord(approvalId)}`,
        );
      } else tell(id, `${agentId}: ${text}`);
    tell("run", `The run: ${standing(feed)}`);
    if (view.endedAt === null) return;
    tell("money", moneyLine(feed));
    over.resolve();
  };
  told.set("server", "");
  let feed: RunFeed | undefined;
  feed = await RunFeed.open(runId, {
    client,
    onChange: () => feed !== undefined && show(feed),
    onProblem: (error) => over.reject(error),
  });
  lines.add(`${runId}: ${feed.run.title ?? feed.run.agentId}`);
  show(feed);
  const opened = feed;
  return () => opened.close();
}

function taskLine(task: TaskView, view: RunView): string {
  const above = task.parentId === null ? "" : ` (works for ${view.tasks.get(task.parentId)?.agentId})`;
  const doing = doingOrResult(task, view);
  const word = taskWord(task);
  const words = doing.toLowerCase() === word.toLowerCase() ? word : `${word}: ${doing}`;
  return `${task.agentId}${above}: ${words}; ${shortUsd(task.total.costUsd)}, turns ${turnsOf(task)}`;
}

async function watchStore(
  { client, place }: WatchFrontOptions,
  lines: LineQueue,
  over: End,
): Promise<() => void> {
  const told = new Map<string, string>();
  const tell = (run: Run): void => {
    const word = runWord(run);
    if (told.get(run.runId) !== word)
      lines.add(
        `${run.runId} ${run.agentId}: ${word}; ${shortUsd(run.costUsd)}${run.title === null ? "" : `; ${run.title}`}`,
      );
    told.set(run.runId, word);
  };
  let wasLost = false;
  const feed: StoreFeed = new StoreFeed({
    client,
    onRun: tell,
    onChange: () => {
      const isLost = feed.lostAt !== undefined;
      if (isLost && !wasLost) lines.add(`The server ${place} does not answer; trying again.`);
      wasLost = isLost;
      for (const run of feed.runs) if (run.endedAt === null) tell(run);
    },
    onProblem: (error) => over.reject(error),
  });
  return () => feed.close();
}
