import { Fault, messageText, visibleLine, type SessionEntry } from "../../../../kernel/index.ts";
import { excerpt } from "../../../view/excerpt.ts";
import { counted } from "../../terminal/format.ts";
import { spokenText } from "../model/chat-words.ts";
import type { Choice } from "../screen/screen.ts";
import { sessionOf, type ChatCommand, type Desk } from "./desk.ts";

/** Commands for the tree of a conversation: move in it, copy it, shorten it and undo changes. */
export const treeCommands: readonly ChatCommand[] = [
  {
    name: "tree",
    takes: "",
    about: "show all branches; continue after another entry, or label it",
    run: moveInTree,
  },
  {
    name: "fork",
    takes: "",
    about: "continue in a copy of this conversation, up to an entry that you choose",
    run: forkSession,
  },
  {
    name: "rewind",
    takes: "",
    about: "restore the files that write and edit changed since an entry, after showing the change",
    run: rewind,
  },
  {
    name: "compact",
    takes: "[INSTRUCTIONS]",
    about: "let the agent summarise the beginning of the conversation",
    run: async ({ client, conversation }, instructions) => {
      const params = sessionOf(conversation);
      const body = instructions === "" ? {} : { instructions };
      await client.post("/api/sessions/{sessionId}/compaction", { params, body });
      await conversation.reopen();
    },
  },
  {
    name: "context",
    takes: "",
    about: "show how much of the model's window is filled",
    run: showContext,
  },
];

/** Describes an entry that a person may choose in one line. `undefined` for entries that contain only settings. */
function entryWords(entry: SessionEntry): string | undefined {
  switch (entry.type) {
    case "message": {
      const { message } = entry;
      const text = message.role === "user" ? spokenText(message) : messageText(message);
      const calls =
        message.role === "assistant" ? message.content.filter(({ type }) => type === "tool_call").length : 0;
      if (message.role === "tool" || (text.trim() === "" && calls === 0)) return undefined;
      const said = text.trim() === "" ? `(${calls} ${calls === 1 ? "call" : "calls"})` : excerpt(text);
      return `${message.role === "user" ? "❯" : " "} ${said}`;
    }
    case "compaction":
    case "branch_summary":
      return `─ ${excerpt(entry.summary)}`;
    case "custom_message":
      return `· ${excerpt(messageText(entry.message))}`;
    default:
      return undefined;
  }
}

interface TreeChoices {
  readonly choices: readonly Choice<string>[];
  /** Index of the entry at which the conversation continues. */
  readonly leaf: number;
}

/**
 * Returns the entries of all branches in the order of the tree. A branch is indented below the entry at which it
 * begins.
 */
async function treeChoices({ client, conversation }: Desk): Promise<TreeChoices> {
  const { nodes, roots, leafId } = await client.get("/api/sessions/{sessionId}/tree", {
    params: sessionOf(conversation),
  });
  const byId = new Map(nodes.map((node) => [node.entry.id, node]));
  const choices: Choice<string>[] = [];
  let leaf = 0;
  const open = roots.toReversed().map((id) => ({ id, depth: 0 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const node = byId.get(next.id);
    if (node === undefined) continue;
    const words = entryWords(node.entry);
    if (words !== undefined) {
      const mark = node.isOnPath ? "│" : " ";
      const label = node.label === null ? "" : `[${visibleLine(node.label)}] `;
      choices.push({ value: node.entry.id, label: `${mark}${"  ".repeat(next.depth)}${label}${words}` });
      if (node.entry.id === leafId || node.isOnPath) leaf = choices.length - 1;
    }
    const depth = next.depth + Number(node.children.length > 1);
    for (const id of node.children.toReversed()) open.push({ id, depth });
  }
  return { choices, leaf };
}

async function pickEntry(desk: Desk, title: string): Promise<string | undefined> {
  const { choices, leaf } = await treeChoices(desk);
  if (choices.length === 0) throw new Fault("not_found", "this conversation has no entries yet");
  return desk.pick({ title, choices, filters: true, first: leaf });
}

async function moveInTree(desk: Desk): Promise<void> {
  const entryId = await pickEntry(
    desk,
    "The conversation with its branches. Enter chooses an entry; type to filter.",
  );
  if (entryId === undefined) return;
  const act = await desk.pick({
    title: "What with this entry?",
    choices: [
      { value: "move", label: "Continue after it", key: "c" },
      { value: "label", label: "Label it", key: "l" },
    ],
  });
  const params = sessionOf(desk.conversation);
  if (act === "move") {
    await desk.client.post("/api/sessions/{sessionId}/move", { params, body: { entryId } });
    await desk.conversation.reopen();
    desk.say("The conversation continues here. What followed stays in the tree.");
  } else if (act === "label") {
    const label = await desk.ask("The label; an empty one removes it:");
    if (label === undefined) return;
    await desk.client.post("/api/sessions/{sessionId}/label", {
      params,
      body: { entryId, label: label.trim() === "" ? null : label.trim() },
    });
  }
}

async function forkSession(desk: Desk): Promise<void> {
  const entryId = await pickEntry(desk, "Copy the conversation up to which entry?");
  if (entryId === undefined) return;
  const params = sessionOf(desk.conversation);
  const { sessionId } = await desk.client.post("/api/sessions/{sessionId}/fork", {
    params,
    body: { entryId },
  });
  await desk.conversation.open(sessionId);
  desk.say(`This is a copy; the original is ${params.sessionId}`);
}

/** The answer of the route that restores files. Only servers that know the folder of the files have this route. */
interface Restoring {
  readonly files: readonly {
    readonly path: string;
    readonly state: string;
    readonly wasAbsent: boolean;
    readonly presentHash: string | null;
    readonly diff: string;
    readonly reason: string;
  }[];
  readonly erased: number;
  readonly otherCalls: readonly { readonly toolName: string; readonly count: number }[];
}

async function rewind(desk: Desk): Promise<void> {
  const entryId = await pickEntry(desk, "Restore the files as they were at which entry?");
  if (entryId === undefined) return;
  const { sessionId } = sessionOf(desk.conversation);
  const path = `/api/sessions/${encodeURIComponent(sessionId)}/restore-files`;
  const planned = (await desk.client.send(path, { entryId })) as Restoring;
  const ready = planned.files.filter(({ state }) => state === "restorable");
  const lines = planned.files.flatMap(({ path: file, state, wasAbsent, diff, reason }) => {
    if (state === "same") return [];
    if (state !== "restorable") return [`${file} stays: ${reason}`];
    return wasAbsent ? [`${file} is deleted`] : [`${file}:`, ...diff.split("\n")];
  });
  desk.say([...lines, ...notUndone(planned)].join("\n") || "No file has changed since.");
  if (ready.length === 0) return;
  const isWanted = await desk.pick({
    title: `Restore ${ready.length} ${ready.length === 1 ? "file" : "files"} as shown?`,
    choices: [
      { value: true, label: "Restore", key: "y" },
      { value: false, label: "Leave everything as it is", key: "n" },
    ],
  });
  if (isWanted !== true) return;
  const only = ready.map(({ path: file, presentHash }) => ({ path: file, presentHash }));
  const done = (await desk.client.send(path, { entryId, apply: true, only })) as Restoring;
  const restored = done.files.filter(({ state }) => state === "restored").length;
  const left = done.files.flatMap(({ path: file, state, reason }) =>
    state !== "restored" && only.some((each) => each.path === file) ? [`${file} stays: ${reason}`] : [],
  );
  desk.say([...left, `Restored: ${restored}. /tree moves the conversation back as well.`].join("\n"));
}

/** What restoring files does not undo. */
function notUndone({ erased, otherCalls }: Restoring): readonly string[] {
  return [
    ...(erased === 0 ? [] : [`${erased} changes are not kept any more`]),
    ...otherCalls.map(
      ({ toolName, count }) =>
        `not undone: what ${count} ${count === 1 ? "call" : "calls"} of ${toolName} did`,
    ),
  ];
}

async function showContext({ client, conversation, say }: Desk): Promise<void> {
  const { tokens, reported, estimated, model, contextWindow, share } = await client.get(
    "/api/sessions/{sessionId}/context-usage",
    { params: sessionOf(conversation) },
  );
  const window = contextWindow === null ? "of an unknown window" : `of ${counted(contextWindow)}`;
  const filled = share === null ? "" : ` (${(share * 100).toFixed(1)} %)`;
  say(
    `${counted(tokens)} tokens ${window}${filled}: ${counted(reported)} as the model reported, ${counted(estimated)} estimated since. Model: ${model ?? "none yet"}`,
  );
}
