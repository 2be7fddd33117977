import type { Hash } from "../base/hash.ts";
import type { RunRecord } from "../run/run-record.ts";

/**
 * E1: one commit of a run in its hash chain. `content` is the hash of everything that the store keeps of the commit,
 * including its events. The chain stays valid when retention erases the content itself.
 */
export interface ChainLink {
  /** Number of the commit in its run, from 0. */
  readonly number: number;
  /** Time of the commit, in epoch milliseconds. */
  readonly at: number;
  /** Sequence number after the last event of the commit. */
  readonly nextSeq: number;
  /** Hash of the commit's stored content. */
  readonly content: string;
}

/** The fields of a run that its hash chain covers, beside the commits. */
export type ChainedRun = Pick<RunRecord, "runId" | "agentId" | "sessionId" | "tenantId" | "userId">;

/**
 * Returns the start of a run's hash chain, which binds the chain to the run, its agent, session, tenant and user. Tenant
 * and user are any texts, so they are written as JSON; a run without both has none.
 */
export function chainStart({ runId, agentId, sessionId, tenantId, userId }: ChainedRun): string {
  const start = `${runId}\n${agentId}\n${sessionId}`;
  return tenantId === null && userId === null ? start : `${start}\n${JSON.stringify([tenantId, userId])}`;
}

/** Returns the head of a hash chain after one more commit. */
export function chainHead(previous: string, { number, at, nextSeq, content }: ChainLink, hash: Hash): string {
  return hash(`${previous}\n${number} ${at} ${nextSeq} ${content}`);
}
