import {
  messageText,
  pathTo,
  visibleText,
  type ChatMessage,
  type ContentPart,
  type MediaSource,
  type SessionEntry,
  type SessionSummary,
} from "../../../kernel/index.ts";

/**
 * A session as one HTML file that needs no network and runs no code: the conversation, then the other branches. A
 * browser that opens the file may load only images that are contained in it.
 */
export function sessionPage(session: SessionSummary, entries: readonly SessionEntry[]): string {
  const title = session.name ?? session.title ?? session.sessionId;
  const path = pathTo(entries, session.leafId) ?? [];
  const shown = new Set(path.map(({ id }) => id));
  const labels = new Map(
    entries.flatMap((entry) => (entry.type === "label" ? [[entry.targetId, entry.label] as const] : [])),
  );
  const left = branches(entries, shown);
  const facts = [
    session.agentId,
    `${path.length} entries`,
    ...(left.length > 0
      ? [`${left.length} ${left.length === 1 ? "branch" : "branches"} that were left`]
      : []),
    new Date(session.updatedAt).toISOString(),
  ];
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}</style>`,
    "</head>",
    "<body>",
    "<main>",
    `<h1>${escaped(title)}</h1>`,
    `<p class="facts">${facts.map(escaped).join(" · ")}</p>`,
    ...path.map((entry) => article(entry, labels.get(entry.id))),
    ...left.flatMap(({ after, entries: branch }) => [
      `<details class="branch"><summary>A branch that was left${after === null ? "" : `, after ${link(after)}`}: ${branch.length} entries</summary>`,
      ...branch.map((entry) => article(entry, labels.get(entry.id))),
      "</details>",
    ]),
    "</main>",
    "</body>",
    "</html>",
    "",
  ].join("\n");
}

/** Returns the entries that are not on the path: each branch from its first entry to its end, or to the next fork. */
function branches(
  entries: readonly SessionEntry[],
  shown: ReadonlySet<string>,
): readonly { readonly after: string | null; readonly entries: readonly SessionEntry[] }[] {
  const rest = entries.filter(
    ({ id, type }) => !shown.has(id) && type !== "leaf" && type !== "label" && type !== "session_info",
  );
  const found: { readonly after: string | null; readonly entries: SessionEntry[] }[] = [];
  /** The branch that ends with an entry. */
  const endsWith = new Map<string, SessionEntry[]>();
  for (const entry of rest) {
    const before = entry.parentId === null ? undefined : endsWith.get(entry.parentId);
    if (entry.parentId !== null) endsWith.delete(entry.parentId);
    const branch = before ?? [];
    if (before === undefined) found.push({ after: entry.parentId, entries: branch });
    branch.push(entry);
    endsWith.set(entry.id, branch);
  }
  return found;
}

function article(entry: SessionEntry, label: string | null | undefined): string {
  const mark = label === undefined || label === null ? "" : ` <mark>${escaped(label)}</mark>`;
  const time = new Date(entry.at).toISOString();
  const head = `<header>${escaped(speaker(entry))}${mark} <time datetime="${time}">${time.slice(0, 16).replace("T", " ")}</time></header>`;
  return `<article id="${idOf(entry.id)}" class="${kindOf(entry)}">${head}${body(entry)}</article>`;
}

function kindOf(entry: SessionEntry): string {
  return entry.type === "message" ? entry.message.role : "note";
}

function speaker(entry: SessionEntry): string {
  switch (entry.type) {
    case "message": {
      const model = entry.model === undefined ? "" : ` · ${entry.model.modelId}`;
      const cost = entry.usage?.costUsd;
      const price = cost === undefined || cost === null ? "" : ` · $${cost.toFixed(4)}`;
      return `${entry.message.role}${model}${price}`;
    }
    case "custom":
    case "custom_message":
      return entry.customType;
    case "compaction":
      return "Summary of what was before";
    case "branch_summary":
      return "Summary of a branch that was left";
    case "model_change":
      return "Model";
    case "thinking_level_change":
      return "Thinking";
    default:
      return entry.type;
  }
}

function body(entry: SessionEntry): string {
  switch (entry.type) {
    case "message":
    case "custom_message":
      return messageBody(entry.message);
    case "compaction":
    case "branch_summary":
      return text(entry.summary);
    case "model_change":
      return text(`${entry.provider}/${entry.modelId}`);
    case "thinking_level_change":
      return text(entry.level);
    case "custom":
      return folded("Data", JSON.stringify(entry.data, null, 2));
    default:
      return "";
  }
}

function messageBody(message: ChatMessage): string {
  return message.role === "system" ? text(messageText(message)) : message.content.map(partBody).join("");
}

function partBody(part: ContentPart): string {
  switch (part.type) {
    case "text":
      return text(part.text);
    case "reasoning":
      return part.text === "" ? "" : folded("Reasoning", part.text);
    case "image":
      return image(part.mediaType, part.source);
    case "file":
      return text(`[file ${part.filename ?? ""} ${part.mediaType}]`);
    case "tool_call":
      return folded(`Call of ${part.toolName}`, JSON.stringify(part.input, null, 2));
    case "tool_result": {
      const head = `${part.isError ? "Error" : "Result"} of ${part.toolName}`;
      const { output } = part;
      if (output.type === "content")
        return `<details open><summary>${escaped(head)}</summary>${output.parts.map(partBody).join("")}</details>`;
      return folded(head, output.type === "text" ? output.text : JSON.stringify(output.value, null, 2));
    }
    case "opaque":
      return folded(`Content of ${part.provider}`, JSON.stringify(part.value, null, 2));
  }
}

/** Types of images that browsers show and that cannot run code. */
const imageTypes: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

function image(mediaType: string, source: MediaSource): string {
  if (source.kind === "url") return text(`[image ${source.url.slice(0, 200)}]`);
  if (!imageTypes.has(mediaType) || !/^[A-Za-z0-9+/=\s]*$/u.test(source.data))
    return text(`[image ${mediaType}]`);
  return `<img alt="image" src="data:${mediaType};base64,${source.data}">`;
}

function text(value: string): string {
  return value.trim() === "" ? "" : `<p>${escaped(value)}</p>`;
}

function folded(head: string, value: string): string {
  return `<details><summary>${escaped(head)}</summary><pre>${escaped(value)}</pre></details>`;
}

function link(id: string): string {
  return `<a href="#${idOf(id)}">this entry</a>`;
}

function idOf(id: string): string {
  return `e-${escaped(encodeURIComponent(id.toWellFormed()))}`;
}

/** Escapes a text for HTML, for a place between tags or in quotes. Hidden characters are made visible. */
function escaped(value: string): string {
  return visibleText(value)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

const style = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
.facts, header, time { font-size: .85rem; opacity: .75; }
header { display: flex; gap: .5rem; flex-wrap: wrap; font-weight: 600; }
time { margin-left: auto; font-weight: 400; }
article { border-top: 1px solid var(--line); padding: .75rem 0; }
.user { background: var(--soft); padding-inline: .75rem; }
p, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; }
pre { font: .85rem/1.45 ui-monospace, monospace; background: var(--soft); padding: .5rem; max-height: 30rem; overflow: auto; }
summary { cursor: pointer; }
img { max-width: 100%; }
.branch { margin-top: 1.5rem; border: 1px solid var(--line); padding: .5rem .75rem; }
`;
