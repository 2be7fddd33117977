import type {
  ApprovalRequest,
  Failure,
  ForeignCallView,
  JsonValue,
  RunStatus,
} from "../../../../kernel/index.ts";

/** The cost of a part of a conversation. `usd` is `null` if a price is unknown. */
export interface ItemCost {
  readonly usd: number | null;
}

/** An image that a person has sent, as base64. */
export interface ShownImage {
  readonly mediaType: string;
  readonly data: string;
}

/** A tool call with its result, if it has one. */
export interface CallItem {
  readonly kind: "call";
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  /** `asks`: a person must decide first. `cut`: the task ended before the call ended. */
  readonly status: "open" | "asks" | "cut" | "ok" | "error" | "denied";
  readonly output: string;
  /** Unified diff of an edit. */
  readonly diff: string | null;
  readonly durationMs: number | null;
  /** The cost of the agent that the call started. `null` if the call has started no agent. */
  readonly cost: ItemCost | null;
  /** The last line of the progress that an open call reports. */
  readonly progress: string;
  /** Data about a call that a program has made with its own tool. */
  readonly foreign: ForeignCallView | null;
}

/** An answer of the agent. */
interface AnswerItem {
  readonly kind: "answer";
  readonly text: string;
  readonly reasoning: string;
  /** Whether the model still writes it. */
  readonly isLive: boolean;
}

/** How much a note matters. */
export type Tone = "plain" | "bad" | "hold";

/** One part of a conversation, as a person sees it in the chat. */
export type ChatItem =
  | {
      readonly kind: "user";
      /** The text names its images. */
      readonly text: string;
      readonly images: readonly ShownImage[];
      readonly from: "person" | "queue" | "agent";
    }
  | AnswerItem
  | CallItem
  | {
      readonly kind: "hire";
      readonly taskId: string;
      readonly agent: string;
      /** What it does now, or how it ended. */
      readonly doing: string;
      readonly isOver: boolean;
      /** The cost of the agent and its reports. `null` before their first model call. */
      readonly cost: ItemCost | null;
    }
  | {
      readonly kind: "asked";
      readonly request: ApprovalRequest;
      readonly agent: string;
      readonly answer: string | null;
    }
  | { readonly kind: "note"; readonly text: string; readonly tone: Tone }
  | { readonly kind: "summary"; readonly text: string }
  | {
      readonly kind: "end";
      readonly status: RunStatus;
      readonly failure: Failure | null;
      readonly costUsd: number | null;
      readonly tokens: number;
      readonly durationMs: number;
    };

/**
 * An item with its place in the conversation. `version` increases with each change of the item; `id` never changes.
 */
export interface PlacedItem {
  readonly id: number;
  readonly version: number;
  readonly item: ChatItem;
}

/** A list of items in which individual items can change. */
export class ItemList {
  readonly #items: PlacedItem[] = [];
  #nextId = 0;

  get all(): readonly PlacedItem[] {
    return this.#items;
  }

  push(item: ChatItem): number {
    const id = this.#nextId++;
    this.#items.push({ id, version: 0, item });
    return id;
  }

  /** Replaces an item. An unknown id changes nothing. */
  set(id: number, item: ChatItem): void {
    const at = this.#at(id);
    const known = this.#items[at];
    if (known !== undefined) this.#items[at] = { id, version: known.version + 1, item };
  }

  get(id: number): ChatItem | undefined {
    return this.#items[this.#at(id)]?.item;
  }

  remove(id: number): void {
    const at = this.#at(id);
    if (at >= 0) this.#items.splice(at, 1);
  }

  /** The newest item that matches. */
  findLast(matches: (item: ChatItem) => boolean): PlacedItem | undefined {
    return this.#items.findLast(({ item }) => matches(item));
  }

  clear(): void {
    this.#items.length = 0;
  }

  /** Finds the index of an item by its id, in logarithmic time, because ids increase along the list. */
  #at(id: number): number {
    let [low, high] = [0, this.#items.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#items[middle]?.id ?? 0;
      if (found === id) return middle;
      if (found < id) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }
}
