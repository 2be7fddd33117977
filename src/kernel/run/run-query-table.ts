import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { RunCountQuery, RunQuery } from "./run-summary.ts";

/**
 * Option kinds of queries for runs. They are in a separate file, because the page needs the statuses of runs but
 * not the option tables.
 */
const queryKinds = {
  sessionId: is.any,
  agentId: is.any,
  agentName: is.any,
  tenantId: is.any,
  userId: is.any,
  kind: is.any,
  createdAfter: is.any,
  createdBefore: is.any,
  endedAfter: is.any,
  endedBefore: is.any,
  costAbove: is.any,
  costBelow: is.any,
  metadata: is.any,
  score: is.any,
  status: is.any,
  sort: is.any,
  limit: is.any,
  after: is.any,
} satisfies OptionKinds<RunQuery>;

export const runQueryTable = optionTable(queryKinds);

const { sort: _sort, after: _after, ...countKinds } = queryKinds;

export const runCountTable = optionTable(countKinds satisfies OptionKinds<RunCountQuery>);
