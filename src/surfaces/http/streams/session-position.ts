import { Fault, type RunId } from "../../../kernel/index.ts";

/**
 * Position of a reader in the stream of a session, as contained in the id of an event: `RUN:SEQ` of the newest run
 * that was sent, then `,RUN:SEQ` for each run of which events after its first end were sent. Only resumed runs have
 * such events.
 */
export class SessionPosition {
  /** The newest run from which events were sent. If absent, the stream starts with the first run. */
  newest: RunId | undefined;
  /** For each run from which events were sent, the sequence number of its next event. */
  readonly next = new Map<RunId, number>();
  /** The runs from which events after their first end were sent. */
  readonly resumed = new Set<RunId>();

  /** The id of the event that was sent last. */
  toString(): string {
    const runs = this.newest === undefined ? [] : [this.newest, ...this.resumed];
    return runs.map((runId) => `${runId}:${(this.next.get(runId) ?? 0) - 1}`).join(",");
  }

  /** Returns the position after the event with this id. */
  static after(lastEventId: string | null): SessionPosition {
    const position = new SessionPosition();
    if (lastEventId === null || lastEventId === "") return position;
    for (const part of lastEventId.split(",")) {
      const [, id, seq] = /^(run_[A-Za-z0-9_-]{1,64}):(\d{1,15})$/u.exec(part) ?? [];
      if (id === undefined || seq === undefined)
        throw new Fault(
          "invalid_argument",
          `invalid Last-Event-ID ${JSON.stringify(lastEventId)}: expected the id of an event, which is RUN:SEQ or several of them with commas`,
        );
      const runId = id as RunId;
      position.next.set(runId, Number(seq) + 1);
      if (position.newest === undefined) position.newest = runId;
      else position.resumed.add(runId);
    }
    return position;
  }
}
