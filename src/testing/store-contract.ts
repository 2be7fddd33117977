import { blobContract } from "./blob-contract.ts";
import { claimContract } from "./claim-contract.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { erasureContract } from "./erasure-contract.ts";
import { eventLogContract } from "./event-log-contract.ts";
import { inboxContract } from "./inbox-contract.ts";
import { journalContract } from "./journal-contract.ts";
import { leaseContract } from "./lease-contract.ts";
import { leaseTurnsContract } from "./lease-turns-contract.ts";
import { mailboxContract } from "./mailbox-contract.ts";
import { recordContract } from "./record-contract.ts";
import { runListContract } from "./run-list-contract.ts";
import { runRecordContract } from "./run-record-contract.ts";
import { sessionContract } from "./session-contract.ts";
import { singleFlightContract } from "./single-flight-contract.ts";
import { topicContract } from "./topic-contract.ts";

/**
 * The contract suites of a store by name. A store has nine contracts; the journal has four suites, the leases three and the event log
 * two.
 */
export const storeContracts: Readonly<Record<string, (harness: ContractHarness) => void>> = Object.freeze({
  journal: journalContract,
  runs: runListContract,
  runRecords: runRecordContract,
  flights: singleFlightContract,
  events: eventLogContract,
  erasures: erasureContract,
  mailbox: mailboxContract,
  inbox: inboxContract,
  sessions: sessionContract,
  blobs: blobContract,
  leases: leaseContract,
  turns: leaseTurnsContract,
  claims: claimContract,
  topics: topicContract,
  records: recordContract,
});
