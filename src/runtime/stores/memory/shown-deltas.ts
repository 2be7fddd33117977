import type { Delta, Event } from "../../../kernel/index.ts";
import { aboutDelta, aboutEvent } from "../delta-about.ts";
import { JoinedDelta } from "../joined-delta.ts";

/** E2: what was shown of a run and is not recorded yet, for watchers who come late. */
export class ShownDeltas {
  #byAbout: Map<string, JoinedDelta[]> | undefined;

  add(delta: Delta): void {
    const byAbout = (this.#byAbout ??= new Map());
    const about = aboutDelta(delta);
    const shown = byAbout.get(about);
    if (shown === undefined) byAbout.set(about, [new JoinedDelta(delta)]);
    else if (shown.at(-1)?.join(delta) !== true) shown.push(new JoinedDelta(delta));
  }

  recorded(events: readonly Event[]): void {
    if (this.#byAbout === undefined) return;
    for (const event of events) {
      const about = aboutEvent(event);
      if (about !== undefined) this.#byAbout.delete(about);
    }
  }

  *[Symbol.iterator](): Iterator<Delta> {
    for (const shown of this.#byAbout?.values() ?? []) for (const each of shown) yield each.whole;
  }
}
