import type { Terminal } from "../../terminal/terminal.ts";
import type { RouteClient } from "../../../client/route-client.ts";
import type { Conversation, ConversationOptions } from "../client/conversation.ts";
import type { ChatServer } from "../client/local-server.ts";
import { Fault } from "../../../../kernel/index.ts";
import type { AskOptions, PickOptions } from "../screen/screen.ts";
import type { ThemeName } from "../screen/theme.ts";
import type { KeyMap } from "./keys.ts";

/** What commands and questions use of the surface on which a person sits. */
export interface Desk {
  readonly conversation: Conversation;
  readonly client: RouteClient;
  readonly server: ChatServer;
  /** Shows a text of the chat itself. It may have several lines. */
  readonly say: (text: string, tone?: "plain" | "bad" | "hold") => void;
  readonly pick: <Value>(options: PickOptions<Value>) => Promise<Value | undefined>;
  readonly ask: (title: string, options?: AskOptions) => Promise<string | undefined>;
  /** Puts a text into the composer. */
  readonly setDraft: (text: string) => void;
  /** Puts a text into the clipboard of the terminal. */
  readonly copy: (text: string) => void;
  readonly setTheme: (name: ThemeName) => void;
  /** Reads the commands of extensions, the templates and the skills of the agent again. */
  readonly readCommands: () => Promise<void>;
  /** Leaves the chat. Runs continue where they are executed. */
  readonly quit: () => void;
  readonly keys: KeyMap;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What every front end of a chat gets. */
export interface FrontOptions {
  readonly server: ChatServer;
  readonly client: RouteClient;
  readonly terminal: Terminal;
  /** Makes the conversation, which calls back with each change, and with the events and deltas of its runs. */
  readonly converse: (onChange: () => void, onItem?: ConversationOptions["onItem"]) => Conversation;
  /** Opens the session that the person has named. */
  readonly begin: (conversation: Conversation) => Promise<void>;
  /** The model of the agent, until its first call names it. */
  readonly model: string | undefined;
}

/** A command of the chat. Help, completion and the documentation follow from the table of commands. */
export interface ChatCommand {
  readonly name: string;
  /** What follows the name, as in `[TEXT]`. Empty if nothing may follow. */
  readonly takes: string;
  readonly about: string;
  run(desk: Desk, argument: string): Promise<void>;
}

/** The session of a conversation, for requests. Throws if there is none yet. */
export function sessionOf({ sessionId }: Desk["conversation"]): { readonly sessionId: string } {
  if (sessionId !== undefined) return { sessionId };
  throw new Fault("not_found", "this conversation has no session yet; send a first message");
}
