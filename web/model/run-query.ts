import { runSummaryStatuses } from "../../src/kernel/index.ts";
import { dayRange, scoreRange } from "../../src/surfaces/view/run-words.ts";
import { statusWords } from "../../src/surfaces/view/status-words.ts";
import type { Run, RunQueryValues } from "../api/types.ts";
import { asking } from "../api/runs-feed.ts";
import { gatewayAgent } from "./gateway/gateway-requests.ts";
import { groups, statusesOf, type Group } from "./run-filter.ts";
import { waitsForPerson } from "./status.ts";

/** The filter of the list of runs, as in the address of the page. The server applies everything except `words`. */
export interface RunFilter {
  readonly group: Group;
  readonly status: readonly Run["status"][];
  readonly agent: string | null;
  readonly user: string | null;
  readonly tenant: string | null;
  /** Pairs of the metadata, each as KEY=VALUE. */
  readonly meta: readonly string[];
  /** Days: `today`, `yesterday`, `7d`, a date, or two dates with `..` between them. A date with `Z` is a UTC day. */
  readonly started: string | null;
  readonly ended: string | null;
  /** A score: `thumbs`, `thumbs<0.5` or `thumbs>0.5`. */
  readonly score: string | null;
  readonly above: number | null;
  readonly below: number | null;
  readonly sort: "newest" | "costliest";
  /** Words that are looked for in the runs that were read. */
  readonly words: string;
}

/** One filter of the bar: its parameter in the address, and what it says. */
export interface FilterToken {
  readonly name: keyof typeof tokenNames;
  readonly value: string;
  readonly label: string;
}

const tokenNames = {
  status: "Status",
  agent: "Agent",
  user: "User",
  tenant: "Tenant",
  meta: "Has",
  started: "Started",
  ended: "Ended",
  score: "Score",
  above: "Cost above",
  below: "Cost below",
} as const;

/** The parameters of the address that belong to the filter. */
export const filterNames = [...Object.keys(tokenNames), "show", "sort", "find"] as const;

export function filterOf(query: URLSearchParams): RunFilter {
  const amount = (name: string): number | null => {
    const text = query.get(name);
    return text === null || text === "" || !Number.isFinite(Number(text)) ? null : Number(text);
  };
  return {
    group: groups.find((each) => each === query.get("show")) ?? "all",
    status: runSummaryStatuses.filter((each) => query.getAll("status").includes(each)),
    agent: query.get("agent"),
    user: query.get("user"),
    tenant: query.get("tenant"),
    meta: query.getAll("meta").filter(isPair),
    started: dayRange(query.get("started")) === null ? null : query.get("started"),
    ended: dayRange(query.get("ended")) === null ? null : query.get("ended"),
    score: scoreRange(query.get("score")) === null ? null : query.get("score"),
    above: amount("above"),
    below: amount("below"),
    sort: query.get("sort") === "cost" ? "costliest" : "newest",
    words: query.get("find") ?? "",
  };
}

/** Returns the filters of the bar, in the order in which the address contains them. */
export function tokensOf(query: URLSearchParams): readonly FilterToken[] {
  const filter = filterOf(query);
  const tokens: FilterToken[] = [];
  for (const [name, value] of query) {
    if (!isTokenName(name)) continue;
    const known = filter[name];
    const isRead = Array.isArray(known) ? known.includes(value) : known !== null;
    if (isRead) tokens.push({ name, value, label: tokenNames[name] });
  }
  return tokens;
}

export function tokenWords({ name, value }: FilterToken): string {
  if (name === "status") return statusWords[value as Run["status"]];
  if (name === "agent" && value === gatewayAgent) return "the gateway";
  if (name === "agent" && value.startsWith(`${gatewayAgent}/`))
    return `${value.slice(gatewayAgent.length + 1)} of the gateway`;
  if (name === "above" || name === "below") return `$${value}`;
  if (name === "started" || name === "ended")
    return value === "7d" ? "last 7 days" : value.replace(/T(\d\d)Z$/u, " $1:00 UTC").replace(/Z$/u, " UTC");
  return value;
}

function isTokenName(name: string): name is FilterToken["name"] {
  return Object.hasOwn(tokenNames, name);
}

function isPair(text: string): boolean {
  return text.indexOf("=") > 0;
}

/** The filters of the server that the page uses. */
type ServerFilter = Pick<
  RunQueryValues,
  | "status"
  | "agent"
  | "userId"
  | "tenantId"
  | "metadata"
  | "createdAfter"
  | "createdBefore"
  | "endedAfter"
  | "endedBefore"
  | "costAbove"
  | "costBelow"
  | "score"
  | "scoreAbove"
  | "scoreBelow"
>;

/** The filters as the server takes them. */
export function serverFilter(filter: RunFilter, now = Date.now()): ServerFilter {
  const { agent, user, tenant, meta, above, below } = filter;
  const statuses = filter.status.length > 0 ? filter.status : statusesOf(filter.group);
  const [started, ended] = [dayRange(filter.started, now), dayRange(filter.ended, now)];
  const score = scoreRange(filter.score);
  return {
    ...(statuses !== null && { status: statuses }),
    ...(agent !== null && { agent }),
    ...(user !== null && { userId: user }),
    ...(tenant !== null && { tenantId: tenant }),
    ...(meta.length > 0 && { metadata: meta }),
    ...(started !== null && { createdAfter: started.from - 1, createdBefore: started.to }),
    ...(ended !== null && { endedAfter: ended.from - 1, endedBefore: ended.to }),
    ...(above !== null && { costAbove: above }),
    ...(below !== null && { costBelow: below }),
    ...(score !== null && { score: score.name }),
    ...(score?.above !== undefined && { scoreAbove: score.above }),
    ...(score?.below !== undefined && { scoreBelow: score.below }),
  };
}

/** Whether a changed run still belongs to the list, or a new run belongs to it. */
export function fits(run: Run, filter: RunFilter): boolean {
  const { status, createdAfter, createdBefore, endedAfter, endedBefore } = serverFilter(filter);
  const { costUsd, metadata } = run;
  if (filter.group === "waits" && filter.status.length === 0 && !waitsForPerson(run, asking.value))
    return false;
  return (
    (status?.includes(run.status) ?? true) &&
    (filter.agent === null || isOf(run, filter.agent)) &&
    (filter.user === null || run.userId === filter.user) &&
    (filter.tenant === null || run.tenantId === filter.tenant) &&
    filter.meta.every(
      (pair) => metadata[pair.slice(0, pair.indexOf("="))] === pair.slice(pair.indexOf("=") + 1),
    ) &&
    isBetween(run.createdAt, createdAfter, createdBefore) &&
    isBetween(run.endedAt, endedAfter, endedBefore) &&
    isBetween(costUsd, filter.above ?? undefined, filter.below ?? undefined) &&
    hasScore(run, filter.score)
  );
}

function hasScore({ scores = [] }: Run, text: string | null): boolean {
  const wanted = scoreRange(text);
  return (
    wanted === null ||
    scores.some(({ name, value }) => name === wanted.name && isBetween(value, wanted.above, wanted.below))
  );
}

/**
 * Whether a run belongs to an agent, to all programs of the gateway, or to one of these programs, whose runs are
 * shown under its name.
 */
function isOf({ agentId, kind }: Run, agent: string): boolean {
  if (kind === "gateway") return agent === gatewayAgent || agent === `${gatewayAgent}/${agentId}`;
  return agentId.split("/")[0] === agent;
}

function isBetween(value: number | null, above: number | undefined, below: number | undefined): boolean {
  if (above === undefined && below === undefined) return true;
  return value !== null && value > (above ?? -Infinity) && value < (below ?? Infinity);
}
