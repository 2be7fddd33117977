import type {
  AssistantPart,
  ChatMessage,
  JsonObject,
  JsonValue,
  ToolOutput,
  ToolResultPart,
  UserPart,
} from "../../../kernel/index.ts";

export type EditText = (text: string) => string;

/** Applies an edit to every string and key of a JSON value. Unchanged parts are returned as the same objects. */
export function editJson(value: JsonValue, edit: EditText): JsonValue {
  if (typeof value === "string") return edit(value);
  if (typeof value === "number") return editNumber(value, edit);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return editAll(value as readonly JsonValue[], (item) => editJson(item, edit));
  return editMembers(value as JsonObject, edit);
}

function editMembers(object: JsonObject, edit: EditText): JsonObject {
  let changed = false;
  const members = new Map<string, JsonValue>();
  for (const [key, member] of Object.entries(object)) {
    const [name, edited] = [edit(key), editJson(member, edit)];
    changed ||= name !== key || edited !== member;
    // Two keys may become equal; a suffix keeps both members.
    let free = name;
    for (let copy = 2; members.has(free); copy++) free = `${name} ${copy}`;
    members.set(free, edited);
  }
  return changed ? Object.fromEntries(members) : object;
}

/** Edits an integer only if it is long enough to be an identifier, such as a card number. */
function editNumber(value: number, edit: EditText): JsonValue {
  if (!Number.isInteger(value) || value < 1e12) return value;
  const text = String(value);
  const edited = edit(text);
  return edited === text ? value : edited;
}

export function editOutput(output: ToolOutput, edit: EditText): ToolOutput {
  switch (output.type) {
    case "text": {
      const text = edit(output.text);
      return text === output.text ? output : { type: "text", text };
    }
    case "json": {
      const value = editJson(output.value, edit);
      return value === output.value ? output : { type: "json", value };
    }
    case "content": {
      const parts = editAll(output.parts, (part) => (part.type === "text" ? editTextOf(part, edit) : part));
      return parts === output.parts ? output : { type: "content", parts };
    }
  }
}

/** The parts of a message that are edited: its text and the arguments of its tool calls. */
export interface MessageEdits {
  readonly words?: EditText;
  readonly calls?: EditText;
}

export function editMessage<Message extends ChatMessage>(message: Message, edits: MessageEdits): Message;
export function editMessage(
  message: ChatMessage,
  { words: edit = unchanged, calls = unchanged }: MessageEdits,
): ChatMessage {
  switch (message.role) {
    case "system":
      return message;
    case "user": {
      const content = editAll<UserPart>(message.content, (part) =>
        part.type === "text" ? editTextOf(part, edit) : part,
      );
      return content === message.content ? message : { ...message, content };
    }
    case "assistant": {
      const content = editAll(message.content, (part) => editAssistantPart(part, edit, calls));
      return content === message.content ? message : { ...message, content };
    }
    case "tool": {
      const content = editAll(message.content, (part) => editToolResult(part, edit));
      return content === message.content ? message : { ...message, content };
    }
  }
}

function editAssistantPart(part: AssistantPart, edit: EditText, calls: EditText): AssistantPart {
  switch (part.type) {
    case "text":
      return editTextOf(part, edit);
    case "reasoning": {
      const text = edit(part.text);
      if (text === part.text) return part;
      // The provider's signature covers the original text.
      const { providerMetadata: _signature, ...rest } = part;
      return { ...rest, text };
    }
    case "tool_call": {
      const input = editJson(part.input, calls);
      return input === part.input ? part : { ...part, input };
    }
    case "file":
    case "opaque":
      return part;
  }
}

function unchanged(text: string): string {
  return text;
}

function editToolResult(part: ToolResultPart, edit: EditText): ToolResultPart {
  const output = editOutput(part.output, edit);
  return output === part.output ? part : { ...part, output };
}

function editTextOf<Part extends { readonly text: string }>(part: Part, edit: EditText): Part {
  const text = edit(part.text);
  return text === part.text ? part : { ...part, text };
}

function editAll<Item>(items: readonly Item[], edit: (item: Item) => Item): readonly Item[] {
  let changed = false;
  const edited = items.map((item) => {
    const after = edit(item);
    changed ||= after !== item;
    return after;
  });
  return changed ? edited : items;
}

/** Caches the edited form of each message, because a transcript is sent again with every turn (F2). */
export function onceEach(
  edit: (message: ChatMessage) => ChatMessage,
): (messages: readonly ChatMessage[]) => readonly ChatMessage[] {
  const done = new WeakMap<ChatMessage, ChatMessage>();
  return (messages) =>
    editAll(messages, (message) => {
      let edited = done.get(message);
      if (edited === undefined) {
        edited = edit(message);
        done.set(message, edited);
      }
      return edited;
    });
}
