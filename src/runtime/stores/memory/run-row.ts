import type { ReadyLine } from "./ready-line.ts";
import type { ShownDeltas } from "./shown-deltas.ts";
import type { RunEnd } from "../run-end.ts";
import type { Commit, Delta, Event, PlacedMail, Rest, RunRecord } from "../../../kernel/index.ts";

export interface RunRow {
  readonly record: RunRecord;
  /** Counts runs in the order of their creation, from 1. */
  readonly place: number;
  /** K1: how it ended, while it has. */
  end: RunEnd | null;
  commits: Commit[];
  events: Event[];
  /** By number, of commits that retention erased: what stands for them in the chain. */
  erasedContents: Map<number, string> | undefined;
  /** Not consumed yet. */
  mail: readonly PlacedMail[];
  /** Of all mail it ever had. */
  mailIds: Set<string> | undefined;
  readonly deltas: ShownDeltas;
  /** It has not ended, or has mail. */
  isLive: boolean;
  epoch: number;
  owner: string | null;
  rest: Rest;
  /** When it last became ready, by `Tables.tick`. */
  readyAt: number;
  /** Where it stands while it may be claimed. */
  line: ReadyLine<RunRow> | undefined;
  watchers: readonly RunWatcher[];
}

/** Told of a run what becomes of it, as it does. */
export interface RunWatcher {
  seeCommit(events: readonly Event[]): void;
  seeDelta(delta: Delta): void;
  /** The run is no longer there. */
  seeRemoval(): void;
}
