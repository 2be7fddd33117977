import type { Delta } from "./delta.ts";

/** E2: a delta, combined with the text deltas that continue it. */
export class JoinedDelta {
  readonly #first: Delta;
  #text: string;

  constructor(first: Delta) {
    this.#first = first;
    this.#text = first.type === "message_update" ? first.text : "";
  }

  get whole(): Delta {
    const first = this.#first;
    return first.type === "message_update" ? { ...first, text: this.#text } : first;
  }

  /** Appends `next` if it continues this delta. Otherwise returns `false` and changes nothing. */
  join(next: Delta): boolean {
    const first = this.#first;
    const follows =
      first.type === "message_update" &&
      next.type === "message_update" &&
      first.offset + this.#text.length === next.offset &&
      first.messageSeq === next.messageSeq &&
      first.attempt === next.attempt &&
      first.kind === next.kind &&
      first.taskId === next.taskId;
    if (follows) this.#text += next.text;
    return follows;
  }
}
