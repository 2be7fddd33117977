import { formatAgentId, formatTopicId } from "../../kernel/index.ts";
import { claimContract } from "./leases/claim-contract.ts";
import { flowContract } from "./leases/flow-contract.ts";
import { queuedMailContract } from "./leases/queued-mail-contract.ts";
import { takeOverContract } from "./leases/take-over-contract.ts";
import { approvalContract } from "./approval-contract.ts";
import { contentContract } from "./content-contract.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { erasureContract } from "./erasure-contract.ts";
import { eventLogContract } from "./event-log-contract.ts";
import { inboxContract } from "./inbox-contract.ts";
import { journalContract } from "./journal-contract.ts";
import { leaseContract } from "./leases/lease-contract.ts";
import { leaseTurnsContract } from "./leases/lease-turns-contract.ts";
import { mailboxContract } from "./mailbox-contract.ts";
import { recordContract } from "./record-contract.ts";
import { runFilterContract } from "./run-filter-contract.ts";
import { runListContract } from "./run-list-contract.ts";
import { runRecordContract } from "./run-record-contract.ts";
import { scopeContract } from "./scope-contract.ts";
import { scoreContract } from "./score-contract.ts";
import { sessionContract } from "./session-contract.ts";
import { singleFlightContract } from "./single-flight-contract.ts";
import { usageContract } from "./usage-contract.ts";

/** Tests of the rules that every implementation of `Topics` must keep. */
function topicContract({ test, expect, open }: ContractHarness): void {
  const topicId = formatTopicId({ type: "news", source: "eu" });
  const [ann, bob] = [formatAgentId({ name: "ann" }), formatAgentId({ name: "bob" })];

  test("Q1: following a topic twice counts once, and unfollowing a topic that is not followed has no effect", async () => {
    const { topics } = await open();
    await topics.apply([
      { type: "follow", topicId, agentId: ann },
      { type: "follow", topicId, agentId: ann },
      { type: "unfollow", topicId, agentId: bob },
    ]);
    expect(await topics.followers(topicId)).toEqual([ann]);
    await topics.apply([{ type: "unfollow", topicId, agentId: ann }]);
    expect(await topics.followers(topicId)).toEqual([]);
  });

  test("Q2: the followers of each topic are listed in the order in which they began to follow it", async () => {
    const { topics } = await open();
    await topics.apply([
      { type: "follow", topicId, agentId: bob },
      { type: "follow", topicId, agentId: ann },
    ]);
    expect(await topics.followers(topicId)).toEqual([bob, ann]);
    expect(await topics.followers(formatTopicId({ type: "news", source: "us" }))).toEqual([]);
  });
}

/** The contract suites of a store by name. The journal, the leases and the event log have several suites. */
export const storeContracts: Readonly<Record<string, (harness: ContractHarness) => void>> = Object.freeze({
  journal: journalContract,
  runs: runListContract,
  approvals: approvalContract,
  runFilters: runFilterContract,
  runRecords: runRecordContract,
  flights: singleFlightContract,
  events: eventLogContract,
  erasures: erasureContract,
  mailbox: mailboxContract,
  inbox: inboxContract,
  sessions: sessionContract,
  scopes: scopeContract,
  contents: contentContract,
  leases: leaseContract,
  turns: leaseTurnsContract,
  claims: claimContract,
  takeOvers: takeOverContract,
  flows: flowContract,
  queuedMail: queuedMailContract,
  topics: topicContract,
  records: recordContract,
  scores: scoreContract,
  usage: usageContract,
});
