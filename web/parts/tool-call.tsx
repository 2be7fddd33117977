import { argumentOf } from "../../src/surfaces/view/excerpt.ts";
import { visibleLine, visibleText, type JsonValue } from "../../src/kernel/index.ts";
import type { JSX } from "preact";
import type { ToolItem } from "../model/thread.ts";
import { Diff, diffCount } from "./diff.tsx";
import { ForeignDiffs, Places } from "./foreign-call.tsx";
import { callPlaces } from "../model/words/foreign-words.ts";
import { counted, personName, plain, took } from "../base/format.ts";
import { toolTitle } from "../../src/surfaces/view/task-words.ts";
import { Icon, type IconName } from "./icon.tsx";

/** One tool call: a line that opens. An edit is open and shows its diff. A call may wait for a person, so hidden characters are shown. */
export function ToolCall({
  item,
  progress,
}: {
  readonly item: ToolItem;
  readonly progress?: unknown;
}): JSX.Element {
  const { name, input, edit, status, output, diff, durationMs, foreign } = item;
  const diffs = foreign?.diffs ?? [];
  const outside = foreign === null ? 0 : callPlaces(foreign).filter(({ isOutside }) => isOutside).length;
  const facts = [
    edit === null ? null : "edited",
    diff === null ? null : diffCount(diff),
    diffs.length === 0 ? null : diffCount(diffs.map((each) => each.diff).join("\n")),
    foreign === null ? null : "as it reports",
    status === "denied" ? "denied" : status === "error" ? "failed" : null,
    waiting[status] ?? (durationMs === null ? null : took(durationMs)),
  ].filter((fact) => fact !== null);
  return (
    <details class={`tool ${status}`} open={diff !== null || edit !== null || diffs.length > 0}>
      <summary>
        <Icon name={iconOf(name)} />
        <b>{visibleLine(toolTitle(name, null))}</b>
        <code class="cut">{argumentOf(edit === null ? input : edit.input)}</code>
        {outside > 0 && <span class="chip bad">{counted(outside, "path")} outside</span>}
        <span class="label">{facts.join(" · ")}</span>
      </summary>
      {edit !== null && <Edited item={item} by={edit.by} changed={edit.input} />}
      {diff !== null && <Diff patch={diff} />}
      {foreign !== null && <Places view={foreign} />}
      {foreign !== null && <ForeignDiffs view={foreign} />}
      {diff === null && edit === null && diffs.length === 0 && input !== null && (
        <pre tabIndex={0}>{visibleText(plain(input))}</pre>
      )}
      {status === "open" && progress !== undefined && <pre tabIndex={0}>{visibleText(plain(progress))}</pre>}
      {output !== "" && <pre tabIndex={0}>{visibleText(output)}</pre>}
    </details>
  );
}

/** What was asked, what a person changed, and what ran. The result follows. */
function Edited({
  item: { input, status },
  by,
  changed,
}: {
  readonly item: ToolItem;
  readonly by: string | undefined;
  readonly changed: JsonValue;
}): JSX.Element {
  return (
    <dl class="edited">
      <dt>Asked</dt>
      <dd>
        <pre tabIndex={0}>{visibleText(plain(input))}</pre>
      </dd>
      <dt>Changed by {visibleLine(personName(by).replace(/^You$/u, "you"))}</dt>
      <dd>
        <pre tabIndex={0}>{visibleText(plain(changed))}</pre>
      </dd>
      <dt>Ran</dt>
      <dd>{ran[status]}</dd>
    </dl>
  );
}

const ran: Readonly<Record<ToolItem["status"], string>> = {
  open: "With the changed arguments, in flight",
  asks: "Not yet",
  cut: "Stopped before it ended",
  ok: "With the changed arguments",
  error: "With the changed arguments, and failed",
  denied: "Not at all: the changed call was denied",
};

const waiting: Readonly<Partial<Record<ToolItem["status"], string>>> = {
  open: "in flight",
  asks: "waits for you",
  cut: "stopped",
};

function iconOf(name: string): IconName {
  if (name === "edit" || name === "write") return "edit";
  return name === "bash" ? "terminal" : "tool";
}
