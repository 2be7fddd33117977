import { JoinedDelta, type Delta, type Event } from "../../../kernel/index.ts";
import { keyOfDelta, keyOfEvent } from "../delta-key.ts";

/** E2: deltas of messages that are not recorded yet, for readers that start late. */
export class ShownDeltas {
  #byAbout: Map<string, JoinedDelta[]> | undefined;
  /** The delta that was extended last. It is kept because most often the next delta continues it. */
  #last: JoinedDelta | undefined;

  add(delta: Delta): void {
    if (this.#last?.join(delta) !== true) this.#last = this.#put(delta);
  }

  #put(delta: Delta): JoinedDelta {
    const byAbout = (this.#byAbout ??= new Map());
    const about = keyOfDelta(delta);
    const shown = byAbout.get(about);
    const last = shown?.at(-1);
    if (last?.join(delta) === true) return last;
    const joined = new JoinedDelta(delta);
    if (shown === undefined) byAbout.set(about, [joined]);
    else shown.push(joined);
    return joined;
  }

  recorded(events: readonly Event[]): void {
    if (this.#byAbout === undefined) return;
    this.#last = undefined;
    for (const event of events) {
      const about = keyOfEvent(event);
      if (about !== undefined) this.#byAbout.delete(about);
    }
  }

  *[Symbol.iterator](): Iterator<Delta> {
    for (const shown of this.#byAbout?.values() ?? []) for (const each of shown) yield each.whole;
  }
}
