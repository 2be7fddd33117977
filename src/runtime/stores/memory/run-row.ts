import type { ReadyLine } from "./ready-line.ts";
import type { ShownDeltas } from "./shown-deltas.ts";
import type { Gate } from "../flow-gates.ts";
import type { RunEnd } from "../run-end.ts";
import type {
  Commit,
  Delta,
  Event,
  LostOwner,
  PlacedMail,
  Rest,
  RunRecord,
  RunSpend,
  RunStanding,
  StoredScore,
} from "../../../kernel/index.ts";

export interface RunRow {
  record: RunRecord;
  /** L5: `turnKey` of the run. */
  readonly turn: string;
  /** Position in the order of creation, from 1. */
  readonly place: number;
  /** K5: value of `Tables.lastChange` when the run last changed. */
  change: number;
  /** K1: how the run ended. `null` while it has not ended. */
  end: RunEnd | null;
  /** K1: the last standing in a commit of the run. `null` means running. */
  standing: RunStanding | null;
  /** K3: what the run has used, according to the last commit that contains it. */
  spent: RunSpend;
  /** K4: places of the run's open questions. */
  questions: readonly number[];
  commits: Commit[];
  events: Event[];
  /** For each erased commit, by number, the hash that represents its original events in the chain. */
  erasedContents: Map<number, string> | undefined;
  /** Unread mail. */
  mail: readonly PlacedMail[];
  /** Ids of all mail that the run has received (P1), without those that it has forgotten (P7). */
  mailIds: Set<string> | undefined;
  /** Number of mails that the run has received, which is the place of the next one. */
  mailCount: number;
  readonly deltas: ShownDeltas;
  /** Whether the run has not ended, or has mail. */
  isLive: boolean;
  epoch: number;
  owner: string | null;
  /**
   * L7: number of recoveries in a row. It is valid while the run has `recoveredAt` commits. The record has the
   * total.
   */
  recoveries: number;
  /** L7: the first lost owner in this series of recoveries. `null` if no owner was lost. */
  lostOwner: LostOwner | null;
  recoveredAt: number;
  rest: Rest;
  /** S5: whether a compaction of the session must end before a worker may claim the run. */
  isHeld: boolean;
  /** L17: the limits (gates) of the run, in the order in which the run passes them. */
  gates: readonly Gate[];
  /** L17: number of limits that the run has passed. */
  passed: number;
  /**
   * L17: whether the run is in the queue of a limit. It keeps its place in the queue while it has mail or an owner.
   */
  isQueued: boolean;
  /** L17: whether the run has a place among the runs of its concurrency key. */
  hasPlace: boolean;
  /** Value of `Tables.tick` when the run last became ready. */
  readyAt: number;
  /** The line in which the run waits to be claimed. `undefined` while it is not ready. */
  line: ReadyLine<RunRow> | undefined;
  /** Z2: all scores of the run. `undefined` if it has none. */
  scores: readonly StoredScore[] | undefined;
  watchers: readonly RunWatcher[];
}

/** Observer of one run. */
export interface RunWatcher {
  seeCommit(events: readonly Event[]): void;
  seeDelta(delta: Delta): void;
  /** The run was deleted. */
  seeRemoval(): void;
}
