import type { Terminal } from "../../terminal/terminal.ts";
import type { ChatClient } from "../client/chat-client.ts";
import type { Conversation, ConversationOptions } from "../client/conversation.ts";
import type { ChatServer } from "../client/local-server.ts";
import type { PickOptions } from "../screen/screen.ts";

/** What commands and questions use of the surface on which a person sits. */
export interface Desk {
  readonly conversation: Conversation;
  readonly client: ChatClient;
  readonly server: ChatServer;
  /** Shows a text of the chat itself. It may have several lines. */
  readonly say: (text: string, tone?: "plain" | "bad" | "hold") => void;
  readonly pick: <Value>(options: PickOptions<Value>) => Promise<Value | undefined>;
  readonly ask: (title: string, initial?: string) => Promise<string | undefined>;
  /** Puts a text into the composer. */
  readonly setDraft: (text: string) => void;
  /** Leaves the chat. Runs continue where they are driven. */
  readonly quit: () => void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What every front end of a chat gets. */
export interface FrontOptions {
  readonly server: ChatServer;
  readonly client: ChatClient;
  readonly terminal: Terminal;
  /** Makes the conversation, which calls back with each change, and with the events and deltas of its runs. */
  readonly converse: (onChange: () => void, onItem?: ConversationOptions["onItem"]) => Conversation;
  /** Opens the session that the person has named. */
  readonly begin: (conversation: Conversation) => Promise<void>;
  /** The model of the agent, until its first call names it. */
  readonly model: string | undefined;
}
