import { randomUUID } from "node:crypto";
import { Fault, visibleLine } from "../../../../kernel/index.ts";
import { excerpt } from "../../../view/excerpt.ts";
import { counted, duration } from "../../terminal/format.ts";
import { findSessionId } from "../client/find-session.ts";
import type { ChatCommand, Desk } from "./desk.ts";
import { keyRows } from "./keys.ts";
import { runCommands } from "./run-commands.ts";
import { treeCommands } from "./tree-commands.ts";
import { workspaceCommands } from "./workspace-commands.ts";

/** The commands that every surface of the chat offers, in the order of the help. */
export const chatCommands: readonly ChatCommand[] = [
  {
    name: "new",
    takes: "",
    about: "start a new conversation",
    run: async ({ conversation }) => conversation.startNew(),
  },
  {
    name: "resume",
    takes: "[SESSION]",
    about: "continue another conversation",
    run: resumeSession,
  },
  {
    name: "sessions",
    takes: "[TEXT]",
    about: "list the conversations, or those with a text in their name",
    run: listSessions,
  },
  {
    name: "name",
    takes: "NAME",
    about: "name this conversation",
    run: async ({ conversation, say }, name) => {
      if (name === "")
        throw new Fault("invalid_argument", "invalid name: expected a text, as in /name Release 7");
      await conversation.change({ name });
      say(`This conversation is now ${name}`);
    },
  },
  ...treeCommands,
  ...runCommands,
  ...workspaceCommands,
  {
    name: "keys",
    takes: "",
    about: "show the keys; keybindings.json in ~/.reeve changes them",
    run: async (desk) => desk.say(linesOf(keyRows(desk.keys))),
  },
  {
    name: "help",
    takes: "",
    about: "show the commands",
    run: async (desk) =>
      desk.say(
        `${linesOf(commandRows())}\n\n!COMMAND runs a command of yours, whose output goes to the model with your next message; !!COMMAND keeps it here.\n/skills lists what else begins with a slash, and /keys the keys.`,
      ),
  },
  {
    name: "quit",
    takes: "",
    about: "leave; a run in progress is continued by a server, a worker or reeve chat --continue",
    run: async (desk) => desk.quit(),
  },
];

/**
 * Returns the command that a text names, together with the text that follows the name. `undefined` if the text is
 * no command of the chat.
 */
export function commandOf(
  text: string,
): { readonly command: ChatCommand; readonly argument: string } | undefined {
  const [, name, argument = ""] = /^\/([\w-]+)(?:\s+([^]*))?$/u.exec(text) ?? [];
  const command = chatCommands.find((each) => each.name === name);
  return command === undefined ? undefined : { command, argument: argument.trim() };
}

/** Runs the extension command that a text names. Returns whether the text names one. */
export async function runExtension(
  { client, conversation }: Pick<Desk, "client" | "conversation">,
  text: string,
): Promise<boolean> {
  const [, command = "", args = ""] = /^\/(\S+)\s*([^]*)$/u.exec(text) ?? [];
  if (command === "") return false;
  const { agent, plannedId: sessionId = `ses_${randomUUID()}` } = conversation;
  const { commands } = await client.get("/api/agents/{name}/commands", { params: { name: agent } });
  if (!commands.some(({ name, kind }) => kind === "command" && name === command)) return false;
  const ended = await client.post("/api/agents/{name}/commands/{command}", {
    params: { name: agent, command },
    body: { sessionId, args },
  });
  // The command may have navigated.
  if (ended.sessionId !== sessionId) await conversation.show(ended.sessionId);
  return true;
}

/** Returns rows with the commands, their arguments and their descriptions. */
function commandRows(): readonly Row[] {
  return chatCommands.map(({ name, takes, about }) => [`/${name}${takes === "" ? "" : ` ${takes}`}`, about]);
}

type Row = readonly [head: string, about: string];

function linesOf(rows: readonly Row[]): string {
  const width = Math.min(28, Math.max(...rows.map(([head]) => head.length)));
  return rows.map(([head, about]) => `${head.padEnd(width)}  ${about}`).join("\n");
}

async function resumeSession(desk: Desk, wanted: string): Promise<void> {
  const { client, conversation } = desk;
  if (wanted !== "") return conversation.open(await findSessionId(client, wanted));
  const { sessions } = await client.get("/api/sessions", { query: { limit: 100 } });
  if (sessions.length === 0) return desk.say("There is no conversation yet.");
  const now = Date.now();
  const sessionId = await desk.pick({
    title: "Which conversation? Type to filter.",
    filters: true,
    choices: sessions.map((each) => ({
      value: each.sessionId,
      label: excerpt(each.name ?? each.title ?? each.sessionId),
      description: `${visibleLine(each.agentId)} · ${counted(each.entries)} entries · ${duration(now - each.updatedAt)} ago`,
    })),
  });
  if (sessionId !== undefined) await conversation.open(sessionId);
}

async function listSessions({ client, conversation, say }: Desk, text: string): Promise<void> {
  const query = { limit: 20, ...(text !== "" && { text }) };
  const { sessions, next } = await client.get("/api/sessions", { query });
  const now = Date.now();
  const lines = sessions.map(({ sessionId, name, title, updatedAt }) => {
    const mark = sessionId === conversation.sessionId ? "*" : " ";
    return `${mark} ${sessionId}  ${duration(now - updatedAt)} ago  ${excerpt(name ?? title ?? "")}`;
  });
  say(lines.length === 0 ? "No conversation found." : lines.join("\n"));
  if (next !== null) say("Older ones are not shown; /sessions TEXT finds them, and /resume continues one.");
}
