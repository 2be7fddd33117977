import type { Terminal } from "../../terminal/terminal.ts";
import type { RouteClient } from "../../../client/route-client.ts";
import type { Conversation, ConversationOptions } from "../client/conversation.ts";
import type { ChatServer } from "../client/local-server.ts";
import { Fault } from "../../../../kernel/index.ts";
import type { AskOptions, PickOptions } from "../screen/screen.ts";
import type { ThemeName } from "../screen/theme.ts";
import type { KeyMap } from "./keys.ts";

/** The functions of a surface that commands and questions use. */
export interface Desk {
  readonly conversation: Conversation;
  readonly client: RouteClient;
  readonly server: ChatServer;
  /** Shows a message of the chat program. The message may have several lines. */
  readonly say: (text: string, tone?: "plain" | "bad" | "hold") => void;
  readonly pick: <Value>(options: PickOptions<Value>) => Promise<Value | undefined>;
  readonly ask: (title: string, options?: AskOptions) => Promise<string | undefined>;
  /** Puts a text into the composer. */
  readonly setDraft: (text: string) => void;
  /** Puts a text into the clipboard of the terminal. */
  readonly copy: (text: string) => void;
  readonly setTheme: (name: ThemeName) => void;
  /** Reads again the commands of extensions, the templates and the skills of the agent. */
  readonly readCommands: () => Promise<void>;
  /** Leaves the chat. Runs continue in the process that executes them. */
  readonly quit: () => void;
  readonly keys: KeyMap;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What every front end of a chat gets. */
export interface FrontOptions {
  readonly server: ChatServer;
  readonly client: RouteClient;
  readonly terminal: Terminal;
  /**
   * Creates the conversation. The conversation calls back after each change, and for each event and delta of its
   * runs.
   */
  readonly converse: (onChange: () => void, onItem?: ConversationOptions["onItem"]) => Conversation;
  /** Opens the session that the person has named. */
  readonly begin: (conversation: Conversation) => Promise<void>;
  /** The model of the agent. It is used until the first call names its model. */
  readonly model: string | undefined;
}

/** A command of the chat. The help, the completion and the documentation are made from the table of these commands. */
export interface ChatCommand {
  readonly name: string;
  /** The arguments of the command, as in `[TEXT]`. Empty if the command takes no arguments. */
  readonly takes: string;
  readonly about: string;
  run(desk: Desk, argument: string): Promise<void>;
}

/** Returns the session id of a conversation, for requests. Throws if the conversation has no session yet. */
export function sessionOf({ sessionId }: Desk["conversation"]): { readonly sessionId: string } {
  if (sessionId !== undefined) return { sessionId };
  throw new Fault("not_found", "this conversation has no session yet; send a first message");
}
