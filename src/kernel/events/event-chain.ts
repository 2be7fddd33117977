import type { Hash } from "../base/hash.ts";
import type { RunRecord } from "../run/run-record.ts";

/**
 * What the chain says of one commit of a run. The content is a hash of all that the store keeps of the commit, its events included,
 * as it keeps it: retention may erase what is kept, and the chain still holds (E1).
 */
export interface ChainLink {
  readonly number: number;
  readonly at: number;
  /** The seq after its last event. */
  readonly nextSeq: number;
  readonly content: string;
}

/** What the chain of a run begins with: whose log it is. */
export function chainStart({
  runId,
  agentId,
  sessionId,
}: Pick<RunRecord, "runId" | "agentId" | "sessionId">): string {
  return `${runId}\n${agentId}\n${sessionId}`;
}

/** The head of a log after one more commit. */
export function chainHead(previous: string, { number, at, nextSeq, content }: ChainLink, hash: Hash): string {
  return hash(`${previous}\n${number} ${at} ${nextSeq} ${content}`);
}
