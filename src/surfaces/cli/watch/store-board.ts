import { visibleLine } from "../../../kernel/index.ts";
import { counted } from "../../view/short-words.ts";
import { shortUsd } from "../chat/front/agent-tree.ts";
import type { Role } from "../chat/screen/theme.ts";
import { duration } from "../terminal/format.ts";
import {
  boardLines,
  endsLine,
  inboxPanel,
  ruleLine,
  type BoardFoot,
  type BoardPlace,
} from "./board-lines.ts";
import type { Run } from "./run-feed.ts";
import type { StoreState } from "./store-feed.ts";
import { itemsOfInbox, runWord } from "./watch-items.ts";

export interface StoreBoard {
  readonly feed: StoreState;
  /** Where the runs are, for the title. */
  readonly place: string;
  /** The runs that fit the filter. */
  readonly runs: readonly Run[];
  readonly filter: string;
  /** The marked run. */
  readonly markedRun: string | undefined;
  /** Position of the marked item of the inbox. `undefined` if the inbox does not have the focus. */
  readonly marked: number | undefined;
  readonly foot: BoardFoot;
}

/** Returns the runs that contain every word of a filter in their id, title, agent, user or status. */
export function fittingRuns(runs: readonly Run[], filter: string): readonly Run[] {
  const words = filter.toLowerCase().split(/\s+/u);
  return runs.filter((run) => {
    const { runId, title, agentId, userId } = run;
    const text = [runId, title ?? "", agentId, userId ?? "", runWord(run), run.status]
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Returns the lines of a board with all runs. Runs that have not ended come first. */
export function storeBoardLines(board: StoreBoard, place: BoardPlace): readonly string[] {
  const { feed, runs, filter, markedRun, marked, foot } = board;
  const { theme, measure, columns } = place;
  const { facts, inbox } = feed;
  const isMore = inbox !== undefined && (inbox.questions.isMore || inbox.runs.isMore || inbox.letters.isMore);
  const items = inbox === undefined ? [] : itemsOfInbox(inbox);
  const figures =
    facts === undefined
      ? "reading…"
      : [
          counted(facts.live, "live run"),
          `${counted(facts.liveAgents, "agent")} at work`,
          `${shortUsd(facts.spentTodayUsd)} spent today`,
          ...(facts.capPerDayUsd === null ? [] : [`cap ${shortUsd(facts.capPerDayUsd)} a day`]),
        ].join(" · ");
  const found =
    filter === "" ? "" : `; ${counted(runs.length, "run")} with "${visibleLine(filter)}", Esc shows all`;
  const head = [
    endsLine(theme.paint("strong", "reeve watch"), theme.paint("dim", visibleLine(board.place)), place),
    measure.cut(figures, columns),
    ruleLine(`Runs${found}`, place),
  ];
  const at = runs.findIndex(({ runId }) => runId === markedRun);
  const main = (rows: number): readonly string[] => {
    if (runs.length === 0)
      return [theme.paint("dim", filter === "" ? "  No run yet. reeve run starts one." : "  No run fits.")];
    const first = Math.max(0, Math.min(Math.max(0, at) - Math.floor(rows / 2), runs.length - rows));
    return runs
      .slice(first, first + rows)
      .map((run, index) => runLine(run, marked === undefined && first + index === Math.max(0, at), place));
  };
  return boardLines(head, main, [inboxPanel(items, marked, place, isMore)], foot, place);
}

function runLine(run: Run, isMarked: boolean, place: BoardPlace): string {
  const { theme, measure, columns, now } = place;
  const word = runWord(run);
  const sign = theme.paint(roleOf(run), signOf(run));
  const mark = isMarked ? theme.paint("accent", "›") : " ";
  const time = `${duration(now - run.createdAt)} ago`;
  const right = columns < 60 ? word : `${word}  ${shortUsd(run.costUsd).padStart(9)}  ${time.padStart(11)}`;
  const title = run.title ?? run.runId;
  const left = `${visibleLine(run.agentId)}  ${visibleLine(title)}`;
  const line = endsLine(measure.cut(left, columns), right, { ...place, columns: columns - 4 });
  return `${mark} ${sign} ${run.endedAt === null ? line : theme.paint("dim", line)}`;
}

function signOf({ status, waitsFor }: Run): string {
  if (waitsFor.includes("person")) return "?";
  switch (status) {
    case "running":
      return "●";
    case "waiting":
    case "pending":
      return "◌";
    case "paused":
      return "‖";
    case "completed":
      return "✓";
    case "cancelled":
      return "–";
    default:
      return "✗";
  }
}

function roleOf({ status, waitsFor, endedAt }: Run): Role {
  if (waitsFor.includes("person") || status === "paused") return "hold";
  if (endedAt === null) return "accent";
  return status === "completed" ? "good" : status === "cancelled" ? "dim" : "bad";
}
