import type { JSX } from "preact";
import { setQuery } from "../../base/route.ts";

interface ChatBarProps {
  readonly name: string;
  /** Whether the tree is shown in place of the chat. */
  readonly isTree: boolean;
}

/** Names the session on a narrow screen, where its tree and its chat take turns. */
export function ChatBar({ name, isTree }: ChatBarProps): JSX.Element {
  return (
    <div class="chat-bar">
      <a class="dim" href="/sessions">
        Sessions /
      </a>
      <b class="cut grow" title={name}>
        {name}
      </b>
      <button class="button" onClick={() => setQuery("show", isTree ? null : "tree")}>
        {isTree ? "Chat" : "Entries"}
      </button>
    </div>
  );
}
