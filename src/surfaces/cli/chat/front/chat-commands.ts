import { Fault, visibleLine } from "../../../../kernel/index.ts";
import { excerpt } from "../../../view/excerpt.ts";
import { counted, dollars, duration } from "../../terminal/format.ts";
import type { Desk } from "./desk.ts";
import { composerKeys, keyActions } from "./keys.ts";

/** A command of the chat. Help, completion and the documentation follow from the table. */
export interface ChatCommand {
  readonly name: string;
  /** What follows the name, as in `[TEXT]`. Empty if nothing may follow. */
  readonly takes: string;
  readonly about: string;
  run(desk: Desk, argument: string): Promise<void>;
}

/** The commands that every surface of the chat has, in the order in which help shows them. */
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
    run: async ({ conversation, client, say }, name) => {
      if (name === "")
        throw new Fault("invalid_argument", "invalid name: expected a text, as in /name Release 7");
      await client.patch("/api/sessions/{sessionId}", { params: sessionOf(conversation), body: { name } });
      say(`This conversation is now ${name}`);
    },
  },
  {
    name: "model",
    takes: "[PROVIDER/ID]",
    about: "choose the model from the next turn on",
    run: chooseModel,
  },
  {
    name: "cost",
    takes: "",
    about: "show what this conversation has cost, by agent and model",
    run: showCost,
  },
  {
    name: "help",
    takes: "",
    about: "show the commands and the keys",
    run: async (desk) => desk.say(helpText()),
  },
  {
    name: "quit",
    takes: "",
    about: "leave; a run in progress is continued by a server, a worker or reeve chat --continue",
    run: async (desk) => desk.quit(),
  },
];

/** The command that a text names, with what follows it. `undefined` if the text is no command of the chat. */
export function commandOf(
  text: string,
): { readonly command: ChatCommand; readonly argument: string } | undefined {
  const [, name, argument = ""] = /^\/([\w-]+)(?:\s+([^]*))?$/u.exec(text) ?? [];
  const command = chatCommands.find((each) => each.name === name);
  return command === undefined ? undefined : { command, argument: argument.trim() };
}

/** The commands with their arguments, and the keys, with what they do, one per line. */
function helpText(): string {
  const rows = [
    ...chatCommands.map(
      ({ name, takes, about }) => [`/${name}${takes === "" ? "" : ` ${takes}`}`, about] as const,
    ),
    ...composerKeys,
    ...Object.values(keyActions).map(({ keys, about }) => [keys.join(", "), about] as const),
  ];
  const width = Math.max(...rows.map(([head]) => head.length));
  return rows.map(([head, about]) => `${head.padEnd(width)}  ${about}`).join("\n");
}

/** The session of a conversation, for requests. Throws if there is none yet. */
function sessionOf({ sessionId }: Desk["conversation"]): { readonly sessionId: string } {
  if (sessionId !== undefined) return { sessionId };
  throw new Fault("not_found", "this conversation has no session yet; send a first message");
}

async function resumeSession(desk: Desk, wanted: string): Promise<void> {
  const { client, conversation } = desk;
  if (wanted !== "") return conversation.open(wanted);
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

async function chooseModel({ client, conversation, pick, say }: Desk, wanted: string): Promise<void> {
  const params = sessionOf(conversation);
  let model: string | undefined = wanted;
  if (wanted === "") {
    const { models } = await client.get("/api/agents/{name}/options", {
      params: { name: conversation.agent },
    });
    if (models.length === 0) return say("The agent names no models; use /model provider/id.");
    model = await pick({
      title: "Which model?",
      filters: true,
      choices: models.map((name) => ({ value: name, label: visibleLine(name) })),
    });
  }
  if (model === undefined) return;
  await client.patch("/api/sessions/{sessionId}", { params, body: { model } });
  say(`The model is ${model} from the next turn on.`);
}

async function showCost({ client, conversation, say }: Desk): Promise<void> {
  const { model } = conversation;
  const view = model.view;
  const lines =
    view === undefined
      ? []
      : [...view.money].map(
          ({ agentId, model: name, calls, usage }) =>
            `${agentId}  ${name}  ${calls} calls  ${counted(usage.inputTokens + usage.outputTokens)} tokens  ${dollars(usage.costUsd)}`,
        );
  if (conversation.sessionId !== undefined) {
    const { runs } = await client.get("/api/runs", {
      query: { sessionId: conversation.sessionId, limit: 200 },
    });
    lines.push(`${runs.length} runs of this conversation: ${dollars(conversation.costUsd)}`);
  }
  say(lines.length === 0 ? "Nothing was paid yet." : lines.join("\n"));
}
