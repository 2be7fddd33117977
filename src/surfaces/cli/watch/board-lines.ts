import { visibleLine, visibleText } from "../../../kernel/index.ts";
import { duration } from "../terminal/format.ts";
import type { TextMeasure } from "../chat/screen/board.ts";
import type { Role, Theme } from "../chat/screen/theme.ts";
import { requestDetails } from "../chat/front/questions.ts";
import type { RunQuestion, WatchItem } from "./watch-items.ts";

/** The size in which a board is drawn, and its theme. */
export interface BoardPlace {
  readonly columns: number;
  readonly rows: number;
  readonly theme: Theme;
  readonly measure: TextMeasure;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** The last lines of every board. */
export interface BoardFoot {
  /** What has happened to the last order. */
  readonly message?: { readonly text: string; readonly role: Role };
  /** Time since which the server has not answered, in epoch milliseconds. */
  readonly lostAt: number | undefined;
  /** The keys with their descriptions, the most important first. The last two are always shown. */
  readonly keys: readonly (readonly [key: string, what: string])[];
}

/** A part of a board, below a rule line with its title. */
export interface BoardPanel {
  readonly title: string;
  readonly lines: (rows: number) => readonly string[];
  /** Number of lines of the whole panel. */
  readonly height: number;
}

/**
 * Returns a line with one text at its left end and one at its right end. The left text is cut if there is not
 * enough room.
 */
export function endsLine(left: string, right: string, { columns, measure }: BoardPlace): string {
  const room = columns - measure.width(right) - 1;
  if (room < 8) return measure.cut(left, columns);
  const start = measure.cut(left, room);
  return `${start}${" ".repeat(Math.max(1, columns - measure.width(start) - measure.width(right)))}${right}`;
}

/** Returns a rule line with a title, and a hint at its end. */
export function ruleLine(title: string, { columns, theme, measure }: BoardPlace): string {
  const text = measure.cut(`─ ${title} `, columns);
  return theme.paint("dim", text + "─".repeat(Math.max(0, columns - measure.width(text))));
}

/**
 * Returns the lines of a whole board: head, main part, panels and foot. The main part gets the lines that the other
 * parts do not need.
 */
export function boardLines(
  head: readonly string[],
  main: (rows: number) => readonly string[],
  panels: readonly BoardPanel[],
  foot: BoardFoot,
  place: BoardPlace,
): readonly string[] {
  const { rows } = place;
  const below = footLines(foot, place);
  let left = rows - below.length;
  const top = left > 6 ? head : head.slice(0, left > 3 ? 1 : 0);
  left -= top.length;
  const shown: string[] = [];
  // A panel gets at most a third of the rows, so that the main part stays the largest.
  const most = Math.max(2, Math.floor(rows / 3));
  for (const { title, height, lines } of panels) {
    const room = Math.min(height, most, left - shown.length - 5);
    // Without lines, the title says it all.
    if (room < 0 || (room === 0 && height > 0)) continue;
    shown.push(ruleLine(title, place), ...lines(room));
  }
  const middle = main(left - shown.length).slice(0, Math.max(0, left - shown.length));
  const space = Array.from({ length: left - shown.length - middle.length }, () => "");
  return [...top, ...middle, ...space, ...shown, ...below].slice(-Math.max(1, rows));
}

function footLines({ message, lostAt, keys }: BoardFoot, place: BoardPlace): readonly string[] {
  const { theme, now, columns, measure } = place;
  const said =
    lostAt === undefined
      ? message
      : {
          text: `The server does not answer since ${duration(now - lostAt)}; trying again. What is shown may be old.`,
          role: "bad" as const,
        };
  return [
    ...(said === undefined ? [] : [theme.paint(said.role, measure.cut(said.text, columns))]),
    measure.cut(keysLine(keys, place), columns),
  ];
}

/**
 * Returns a line with the keys and their descriptions. On a narrow terminal, keys in the middle are left out,
 * because the last two are the keys for help and for leaving.
 */
function keysLine(keys: BoardFoot["keys"], { theme, columns, measure }: BoardPlace): string {
  let shown = keys;
  const widthOf = (some: BoardFoot["keys"]): number =>
    measure.width(some.map((key) => key.join(" ")).join("  "));
  while (shown.length > 2 && widthOf(shown) > columns) shown = shown.toSpliced(-3, 1);
  return shown.map(([key, what]) => `${theme.paint("strong", key)} ${theme.paint("dim", what)}`).join("  ");
}

/** Returns the inbox as a panel. If the inbox has the focus, `marked` is the position of the marked item. */
export function inboxPanel(
  items: readonly WatchItem[],
  marked: number | undefined,
  place: BoardPlace,
  isMore = false,
): BoardPanel {
  const { theme, measure, columns, now } = place;
  const lineOf = (item: WatchItem, isMarked: boolean): string => {
    const since = duration(now - item.at);
    const mark = isMarked ? theme.paint("accent", "›") : " ";
    const agent = visibleLine(item.agentId);
    const left = `${item.sign} ${agent}: ${visibleLine(item.text)}`;
    const line = endsLine(left, since, { ...place, columns: columns - 2 });
    return `${mark} ${item.act.kind === "none" ? theme.paint("dim", line) : measure.cut(line, columns - 2)}`;
  };
  return {
    title: `Inbox: ${items.length === 0 ? "nothing waits for you" : `${items.length}${isMore ? " or more" : ""} ${items.length === 1 ? "waits" : "wait"} for you`}`,
    height: items.length,
    lines: (rows) => {
      const first = Math.max(0, Math.min((marked ?? 0) - rows + 1, items.length - rows));
      return items.slice(first, first + rows).map((item, index) => lineOf(item, marked === first + index));
    },
  };
}

/**
 * Returns all lines about the subject of a question, beginning at a line. `first` is the index of the first
 * returned line, limited so that the view cannot scroll beyond the end.
 */
export function questionLines(
  { question }: RunQuestion,
  from: number,
  { columns, rows, theme, measure }: BoardPlace,
): { readonly shown: readonly string[]; readonly first: number } {
  const { request, agentId } = question;
  const head = theme.paint("strong", measure.cut(`${visibleLine(agentId)} asks`, columns));
  const details = requestDetails(request).flatMap((line) => measure.wrap(visibleText(line), columns - 2));
  const room = Math.max(1, rows - 2);
  const first = Math.max(0, Math.min(from, details.length - room));
  const shown = details.slice(first, first + room).map((line) => `  ${line}`);
  const hidden = details.length - first - shown.length;
  const more =
    details.length <= room
      ? []
      : [
          theme.paint(
            "hold",
            `${hidden} more ${hidden === 1 ? "line" : "lines"} below; PageDown and PageUp scroll`,
          ),
        ];
  return { shown: [head, ...shown, ...more], first };
}
