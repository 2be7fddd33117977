import { visibleLine, visibleText } from "../../../../kernel/index.ts";
import { argumentOf } from "../../../view/excerpt.ts";
import { statusWords } from "../../../view/status-words.ts";
import { counted, dollars, duration } from "../../terminal/format.ts";
import type { CallItem, ChatItem, ItemCost, PlacedItem } from "../model/chat-item.ts";
import { diffLine } from "../screen/highlight.ts";
import type { Block, Part } from "../screen/screen.ts";
import type { Role, Theme } from "../screen/theme.ts";
import { argumentLines, questionLine, requestDetails } from "./questions.ts";

/** How the conversation is shown. */
export interface BlockLook {
  readonly theme: Theme;
  /** Whether calls are shown with their arguments and results, and answers with their reasoning. */
  readonly isOpen: boolean;
  /** Whether the person has marked the part. Default: `false`. */
  readonly isMarked?: boolean;
  /** Whether images are shown if the terminal can show them. Default: `false`: only their names are shown. */
  readonly showsImages?: boolean;
}

/** Maximum number of lines that are shown of a text that a person has sent, such as a paste. */
const mostTyped = 30;
/** The most lines of an opened result. */
const mostLines = 200;

/**
 * Returns one part of a conversation as a block of the screen. In texts that the person has not written, hidden
 * characters are made visible.
 */
export function blockOf({ id, version, item }: PlacedItem, look: BlockLook): Block {
  return {
    id,
    version: `${version} ${look.isOpen} ${look.isMarked === true} ${look.theme.name}`,
    parts: () => partsOf(item, look),
  };
}

function partsOf(
  item: ChatItem,
  { theme, isOpen, isMarked = false, showsImages = false }: BlockLook,
): readonly Part[] {
  const { paint } = theme;
  switch (item.kind) {
    case "user": {
      const mark = { person: "❯ ", queue: "❯ ", agent: "· " }[item.from];
      const all = visibleText(item.text).split("\n");
      const lines = limited(all, isOpen ? mostLines : mostTyped, theme).map((line) => paint("user", line));
      return [
        blank,
        ...lines.map((text, at) => textPart(text, at === 0 ? paint("user", mark) : "  ")),
        ...(showsImages ? item.images.map((image): Part => ({ kind: "image", ...image })) : []),
      ];
    }
    case "answer":
      return [
        blank,
        ...reasoningParts(item.reasoning, theme, isOpen),
        { kind: "markdown", text: item.text, isGrowing: item.isLive },
      ];
    case "call":
      return [
        { kind: "line", text: `${isMarked ? paint("accent", "› ") : ""}${callLine(item, theme)}` },
        ...(isOpen ? openedCall(item, theme) : briefCall(item, theme)),
      ];
    case "hire": {
      const mark = item.isOver ? paint("good", "▸") : paint("accent", "▸");
      return [
        {
          kind: "line",
          text: `${mark} ${paint("strong", visibleLine(item.agent))} ${paint("dim", [`${item.taskId}: ${visibleLine(item.doing)}`, ...costWords(item.cost)].join(" · "))}`,
        },
      ];
    }
    case "asked": {
      const { request, agent, answer } = item;
      const tone: Role = answer === null ? "hold" : "dim";
      const details = answer === null || isOpen ? requestDetails(request) : [];
      return [
        textPart(`${paint(tone, "?")} ${paint("strong", visibleLine(agent))} ${questionLine(request)}`, ""),
        ...details.map((line) => textPart(diffLine(line, theme), "    ")),
        ...(answer === null ? [] : [textPart(paint("dim", `→ ${visibleText(answer)}`), "    ")]),
      ];
    }
    case "note": {
      const role: Role = item.tone === "plain" ? "dim" : item.tone;
      return visibleText(item.text)
        .split("\n")
        .map((line) => textPart(paint(role, line), "  "));
    }
    case "summary":
      return [
        blank,
        textPart(paint("dim", "─ What was said before is summarised for the model ─"), ""),
        ...(isOpen ? [{ kind: "markdown", text: item.text, isGrowing: false } as const] : []),
      ];
    case "end":
      return endParts(item, theme);
  }
}

const blank: Part = { kind: "text", text: "" };

function textPart(text: string, indent: string): Part {
  return { kind: "text", text, indent };
}

function reasoningParts(reasoning: string, { paint }: Theme, isOpen: boolean): readonly Part[] {
  const lines = visibleText(reasoning)
    .split("\n")
    .filter((line) => line.trim() !== "");
  const [first] = lines;
  if (first === undefined) return [];
  if (isOpen) return lines.map((line) => textPart(paint("dim", line), "  "));
  const more = lines.length > 1 ? ` (+${lines.length - 1} lines)` : "";
  return [{ kind: "line", text: paint("dim", `  ${first}${more}`) }];
}

const marks: Readonly<Record<CallItem["status"], readonly [Role, string]>> = {
  open: ["accent", "◌"],
  asks: ["hold", "?"],
  cut: ["dim", "–"],
  ok: ["good", "✓"],
  error: ["bad", "✗"],
  denied: ["bad", "⊘"],
};

/**
 * Returns a call as one line: its status, its name, its most important argument, its duration, and its cost if it
 * has one.
 */
function callLine(
  { status, name, input, durationMs, cost, diff, progress }: CallItem,
  { paint }: Theme,
): string {
  const [role, mark] = marks[status];
  const about = argumentOf(input).slice(0, 300);
  const facts = [
    ...(status === "ok" || status === "open" ? [] : [status === "asks" ? "waits for you" : status]),
    ...(durationMs === null ? [] : [shortTime(durationMs)]),
    ...costWords(cost),
    ...(diff === null ? [] : [changeWords(diff)]),
  ];
  const told = facts.length === 0 ? "" : paint("dim", ` · ${facts.join(" · ")}`);
  const doing = progress === "" ? "" : paint("dim", ` · ${visibleLine(progress)}`);
  return `${paint(role, mark)} ${paint("strong", visibleLine(name))} ${about}${told}${doing}`;
}

function costWords(cost: ItemCost | null): readonly string[] {
  return cost === null ? [] : [dollars(cost.usd)];
}

function shortTime(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : duration(ms);
}

function changeWords(diff: string): string {
  const lines = diff.split("\n");
  const added = lines.filter((line) => line.startsWith("+") && !line.startsWith("+++")).length;
  const removed = lines.filter((line) => line.startsWith("-") && !line.startsWith("---")).length;
  return `+${added} −${removed}`;
}

/** Returns the lines below a closed call: the error of a failed call, and the change that an edit makes. */
function briefCall({ status, output, diff }: CallItem, theme: Theme): readonly Part[] {
  if (status === "error" || status === "denied") {
    const [first = ""] = visibleText(output)
      .split("\n")
      .filter((line) => line.trim() !== "");
    return [{ kind: "line", text: theme.paint("bad", `    ${first}`) }];
  }
  return diff === null
    ? []
    : limited(visibleText(diff).split("\n"), 12, theme).map((line) =>
        textPart(diffLine(line, theme), "    "),
      );
}

function openedCall({ input, output, diff }: CallItem, theme: Theme): readonly Part[] {
  const given = argumentLines(input).map((line) => theme.paint("dim", visibleText(line)));
  const change =
    diff === null
      ? []
      : visibleText(diff)
          .split("\n")
          .map((line) => diffLine(line, theme));
  const got = visibleText(output.trimEnd()).split("\n");
  return [...given, ...limited(change, mostLines, theme), ...limited(got, mostLines, theme)].map((line) =>
    textPart(line, "    "),
  );
}

function limited(lines: readonly string[], most: number, { paint }: Theme): readonly string[] {
  if (lines.length <= most) return lines;
  return [...lines.slice(0, most), paint("dim", `… ${counted(lines.length - most)} more lines`)];
}

function endParts(item: Extract<ChatItem, { kind: "end" }>, { paint }: Theme): readonly Part[] {
  const { status, failure, costUsd, tokens, durationMs } = item;
  const isGood = status === "completed";
  const facts = `${statusWords[status]} · ${counted(tokens)} tokens · ${dollars(costUsd)} · ${shortTime(durationMs)}`;
  const why = isGood || failure === null ? [] : [textPart(paint("bad", visibleText(failure.message)), "  ")];
  return [...why, textPart(paint(isGood || status === "cancelled" ? "dim" : "bad", facts), "  ")];
}
