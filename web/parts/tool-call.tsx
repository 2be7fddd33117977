import { argumentOf } from "../../src/surfaces/view/excerpt.ts";
import { visibleLine, visibleText } from "../../src/kernel/index.ts";
import type { JSX } from "preact";
import type { ToolItem } from "../model/thread.ts";
import { Diff, diffCount } from "./diff.tsx";
import { plain, took } from "../base/format.ts";
import { Icon, type IconName } from "./icon.tsx";

/** One tool call: a line that opens. An edit is open and shows its diff. A call may wait for a person, so hidden characters are shown. */
export function ToolCall({
  item,
  progress,
}: {
  readonly item: ToolItem;
  readonly progress?: unknown;
}): JSX.Element {
  const { name, input, status, output, diff, durationMs } = item;
  const facts = [
    diff === null ? null : diffCount(diff),
    status === "denied" ? "denied" : status === "error" ? "failed" : null,
    waiting[status] ?? (durationMs === null ? null : took(durationMs)),
  ].filter((fact) => fact !== null);
  return (
    <details class={`tool ${status}`} open={diff !== null}>
      <summary>
        <Icon name={iconOf(name)} />
        <b>{visibleLine(name)}</b>
        <code class="cut">{argumentOf(input)}</code>
        <span class="label">{facts.join(" · ")}</span>
      </summary>
      {diff !== null && <Diff patch={diff} />}
      {diff === null && input !== null && <pre tabIndex={0}>{visibleText(plain(input))}</pre>}
      {status === "open" && progress !== undefined && <pre tabIndex={0}>{visibleText(plain(progress))}</pre>}
      {output !== "" && <pre tabIndex={0}>{visibleText(output)}</pre>}
    </details>
  );
}

const waiting: Readonly<Partial<Record<ToolItem["status"], string>>> = {
  open: "in flight",
  asks: "waits for you",
  cut: "stopped",
};

function iconOf(name: string): IconName {
  if (name === "edit" || name === "write") return "edit";
  return name === "bash" ? "terminal" : "tool";
}
