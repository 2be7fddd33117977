import {
  AbstractChat,
  DefaultChatTransport,
  type ChatInit,
  type ChatState,
  type ChatStatus,
  type UIMessage,
} from "ai";

/** The state of a chat without a user interface. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = "ready";
  error: Error | undefined = undefined;
  messages: UIMessage[];

  constructor(messages: UIMessage[] = []) {
    this.messages = messages;
  }

  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message];
  };

  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.with(index, this.snapshot(message));
  };

  snapshot = <Value>(value: Value): Value => structuredClone(value);
}

/** A chat of the AI SDK, as its packages for user interfaces build it. */
export class TestChat extends AbstractChat<UIMessage> {
  constructor({ messages, ...init }: ChatInit<UIMessage>) {
    super({ ...init, state: new PlainState(messages) });
  }
}

export interface ChatAccess {
  readonly url: string;
  readonly token: string;
  readonly agent?: string;
}

/** The transport with which the AI SDK talks to a server. */
export function transportTo({ url, token, agent }: ChatAccess): DefaultChatTransport<UIMessage> {
  return new DefaultChatTransport({
    api: `${url}/api/chat`,
    headers: { authorization: `Bearer ${token}` },
    ...(agent !== undefined && { body: { agent } }),
  });
}

/** The texts of a message, one per part. */
export function textsOf(message: UIMessage | undefined): readonly string[] {
  return message?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) ?? [];
}

/** Waits for a condition that other parts of this process, and its connections to itself, make true. */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise<void>((resolve) => void setImmediate(resolve));
}
