import type { ImagePart, TextPart } from "../../kernel/index.ts";
import type { DescribedWindows } from "./accessibility/accessible-tree.ts";
import type { Area } from "./x11/screenshot.ts";
import type { DesktopWindow, Subwindow } from "./x11/windows.ts";

/** A position on the screen, in pixels. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** State of a desktop, as the model sees it. */
export interface DesktopState {
  readonly screen: { readonly width: number; readonly height: number };
  readonly pointer: Point;
  /** Visible windows, the topmost last. */
  readonly windows: readonly DesktopWindow[];
  /** Screenshot of the whole screen: PNG in base64, in the screen's resolution. */
  readonly screenshot?: string;
  /** Content of the windows. */
  readonly accessibility?: string;
}

/** Maximum number of windows that are listed, from the top of the stack. */
const maxWindows = 100;
/** Maximum length of the content of the windows that the model sees, in characters. */
const maxChars = 20_000;
const images = "image/png";

/** Formats the state of a desktop as message parts. */
export function stateParts(state: DesktopState): (TextPart | ImagePart)[] {
  const { screen, pointer, windows, screenshot, accessibility } = state;
  const facts = [
    `Desktop, ${screen.width}x${screen.height}, pointer at ${pointer.x},${pointer.y}:`,
    ...windows.slice(-maxWindows).map(windowLine),
  ];
  if (windows.length > maxWindows) facts.push(`[${windows.length - maxWindows} more windows below these]`);
  if (windows.length === 0) facts.push("No window is visible.");
  if (accessibility !== undefined) facts.push("Content of the windows:", accessibility);
  const text: TextPart = { type: "text", text: facts.join("\n") };
  return screenshot === undefined ? [text] : [text, imagePart(screenshot)];
}

/** Returns a PNG in base64 as an image part. */
export function imagePart(data: string): ImagePart {
  return { type: "image", mediaType: images, source: { kind: "base64", data } };
}

/**
 * Describes the windows of programs with accessibility support. The windows of other programs follow with their
 * positions.
 */
export function describeWindows(
  { windows, reason }: DescribedWindows,
  silent: readonly { readonly window: DesktopWindow; readonly subwindows: readonly Subwindow[] }[],
): string {
  const lines = windows.map(({ text }) => text);
  if (silent.length > 0) {
    const why = reason ?? "these programs have no accessibility support";
    lines.push(`[${why}: only the positions of their windows and subwindows are known]`);
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
  return text.length <= maxChars
    ? text
    : `${text.slice(0, maxChars)}\n[... ${text.length - maxChars} more characters]`;
}
