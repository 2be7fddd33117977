import type { ImagePart, TextPart } from "../../kernel/index.ts";
import type { ToldWindows } from "./accessibility/accessible-tree.ts";
import type { Area } from "./x11/picture.ts";
import type { DesktopWindow, Subwindow } from "./x11/windows.ts";

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface DesktopState {
  readonly screen: { readonly width: number; readonly height: number };
  readonly pointer: Point;
  /** Those that are shown, the one on top last. */
  readonly windows: readonly DesktopWindow[];
  /** PNG, base64; a pixel of it is a pixel of the screen. */
  readonly screenshot?: string;
  readonly accessibility?: string;
}

/** Of windows, so many are listed: those on top. */
const mostWindows = 100;
/** Of what windows say, so much is shown at a time. */
const mostChars = 20_000;
const images = "image/png";

export function stateParts(state: DesktopState): (TextPart | ImagePart)[] {
  const { screen, pointer, windows, screenshot, accessibility } = state;
  const facts = [
    `Desktop, ${screen.width}x${screen.height}, pointer at ${pointer.x},${pointer.y}:`,
    ...windows.slice(-mostWindows).map(windowLine),
  ];
  if (windows.length > mostWindows) facts.push(`[${windows.length - mostWindows} more, below these]`);
  if (windows.length === 0) facts.push("No window is shown.");
  if (accessibility !== undefined) facts.push("In them:", accessibility);
  const text: TextPart = { type: "text", text: facts.join("\n") };
  return screenshot === undefined ? [text] : [text, imagePart(screenshot)];
}

export function imagePart(data: string): ImagePart {
  return { type: "image", mediaType: images, source: { kind: "base64", data } };
}

/** What programs say of their windows, then those of programs that say nothing. */
export function describeWindows(
  { windows, reason }: ToldWindows,
  silent: readonly { readonly window: DesktopWindow; readonly subwindows: readonly Subwindow[] }[],
): string {
  const lines = windows.map(({ text }) => text);
  if (silent.length > 0) {
    const why = reason ?? "these programs say nothing of themselves";
    lines.push(`[${why}: their windows, and the windows in them, without words]`);
  }
  for (const { window, subwindows } of silent)
    lines.push(windowLine(window), ...subwindowLines(subwindows, 1));
  return cut(lines.join("\n"));
}

function windowLine(window: DesktopWindow): string {
  const { id, title, focused, role } = window;
  const kind = role === undefined ? window.class : `${window.class}, ${role}`;
  return `${focused ? "*" : "-"} window ${id}: ${JSON.stringify(title)} (${kind}) ${placeOf(window)}`;
}

function subwindowLines(subwindows: readonly Subwindow[], depth: number): readonly string[] {
  return subwindows.flatMap((each) => [
    `${"  ".repeat(depth)}- ${placeOf(each)}`,
    ...subwindowLines(each.children, depth + 1),
  ]);
}

function placeOf({ x, y, width, height }: Area): string {
  return `at ${x},${y} size ${width}x${height}`;
}

function cut(text: string): string {
  return text.length <= mostChars
    ? text
    : `${text.slice(0, mostChars)}\n[... ${text.length - mostChars} characters more]`;
}
