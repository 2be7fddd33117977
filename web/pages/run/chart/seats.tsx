import type { TaskView } from "../../../../src/surfaces/view/run-view.ts";
import { Component, type JSX } from "preact";
import { useRef } from "preact/hooks";
import { runPath } from "../../../base/route.ts";
import { capUsd, counted, grouped, usd } from "../../../base/format.ts";
import { Glyph } from "../../../parts/glyph.tsx";
import { Name } from "../../../parts/name.tsx";
import { BudgetMeter } from "../../../parts/budget-meter.tsx";
import type { MeterTone, BudgetUse } from "../../../model/money.ts";
import { lookOfTask, type Look } from "../../../model/status.ts";
import { useKeptFocus } from "../../../base/use-kept-focus.ts";
import type { LevelProps } from "./level-props.ts";
import { byNeed, capOfTeam, budgetUseOfTeam, spendOfTeam, urgencyOf, type Team } from "./org-tree.ts";
import { TeamIndex } from "./team-index.ts";

const perLine = 11;
const size = 11;
const step = 13;

/** The chart for thousands of agents: a team is a box, an agent a square that is filled as far as its budget is used. */
export function Seats({ model, view, root }: LevelProps): JSX.Element {
  // A team that needs a person moves to the front, with the focus if it has it.
  useKeptFocus();
  const index = useRef<TeamIndex | null>(null);
  index.current ??= new TeamIndex();
  const teams = index.current.update(view, root);
  return (
    <div class="teams-view">
      <p class="row wrap">
        <span class="mid wide-only">
          One square is one agent, filled as far as its budget is used. The strip is the budget: as wide as
          each team's share, filled as far as it is spent.
        </span>
        <span class="grow" />
        <Counts counts={index.current.counts} />
      </p>
      <Split teams={teams} />
      <div class="teams">
        {teams.map((team) => (
          <TeamBox
            key={keyOf(team)}
            team={team}
            runId={model.runId}
            use={budgetUseOfTeam(team, model.held)}
          />
        ))}
      </div>
      {teams.length === 0 && <p class="dim">{root.agentId} has hired no one yet.</p>}
    </div>
  );
}

const countNames: readonly (readonly [Look, string, string])[] = [
  ["waits", "wait for you", "wait"],
  ["failed", "failed", "bad"],
  ["running", "running", "live"],
  ["suspended", "waiting", "plain"],
  ["pending", "without a seat", "plain"],
  ["paused", "paused", "hold"],
  ["completed", "done", "plain"],
  ["cancelled", "cancelled", "plain"],
];

function Counts({ counts }: { readonly counts: ReadonlyMap<Look, number> }): JSX.Element {
  return (
    <span class="row wrap">
      {countNames.map(([look, words, tone]) => {
        const count = counts.get(look) ?? 0;
        return count === 0 ? null : (
          <span key={look} class={`chip ${tone}`}>
            {(look === "waits" || look === "failed") && <Glyph look={look} />}
            {grouped(count)} {look === "waits" && count === 1 ? "waits for you" : words}
          </span>
        );
      })}
    </span>
  );
}

/** The budget split by team: as wide as the team's share, filled as far as it is spent. Who has no share is left out. */
function Split({ teams: all }: { readonly teams: readonly Team[] }): JSX.Element | null {
  const shares = all.filter((team) => capOfTeam(team) !== null);
  const teams = shares.length > 0 ? shares : all;
  const caps = teams.map((team) => capOfTeam(team) ?? spendOfTeam(team));
  const total = caps.reduce((sum, cap) => sum + cap, 0);
  if (total === 0) return null;
  let x = 0;
  return (
    <svg
      class="split"
      viewBox="0 0 1000 40"
      preserveAspectRatio="none"
      role="img"
      aria-label="The budget, split by team"
    >
      {teams.map((team, at) => {
        const cap = caps[at] ?? 0;
        const width = (1_000 * cap) / total;
        const left = x;
        x += width;
        const share = cap === 0 ? 0 : Math.min(1, spendOfTeam(team) / cap);
        const need = needOfTeam(team);
        return (
          <g key={keyOf(team)} class={toneOfTeam(team)}>
            <rect class="budget" x={left} y="6" width={Math.max(1, width - 2)} height="34" />
            <rect
              class="spent"
              x={left}
              y={40 - 34 * share}
              width={Math.max(1, width - 2)}
              height={34 * share}
            />
            {need !== "" && <rect class={need} x={left} y="0" width={Math.max(1, width - 2)} height="4" />}
          </g>
        );
      })}
    </svg>
  );
}

function needOfTeam(team: Team): "" | "failed" | "waits" {
  return (["failed", "waits", ""] as const)[urgencyOf(team)] ?? "";
}

/** A team is done when all its agents have ended. */
function toneOfTeam({ members }: Team): MeterTone {
  return members.every((member) => member.endedAt !== null) ? "done" : "live";
}

/**
 * A box is made again only if its team changed. A kept element would do the same, but it refers to the page in which it
 * was drawn first: the heap would contain one whole page per team.
 */
class TeamBox extends Component<BoxProps> {
  override shouldComponentUpdate({ team, runId, use }: BoxProps): boolean {
    return team !== this.props.team || runId !== this.props.runId || use.held !== this.props.use.held;
  }

  override render(props: BoxProps): JSX.Element {
    return teamBox(props);
  }
}

interface BoxProps {
  readonly team: Team;
  readonly runId: string;
  readonly use: BudgetUse;
}

function keyOf({ head, isRest, isRoot }: Team): string {
  return `${head.taskId} ${isRest} ${isRoot}`;
}

function teamBox({ team, runId, use }: BoxProps): JSX.Element {
  const { head, members, isRest } = team;
  const spent = spendOfTeam(team);
  const { cap } = use;
  const lines = Math.ceil(members.length / perLine);
  const name = isRest ? `reports of ${head.agentId}` : head.agentId;
  const zoom = isRest && members.length > 24 ? "rows" : members.length > 60 ? "rows" : "cards";
  return (
    <a
      class={`team-box ${needOfTeam(team)}`}
      href={`${runPath(runId, "chart")}?root=${head.taskId}&zoom=${zoom}`}
      aria-label={`${name}, ${counted(members.length, "agent")}, ${usd(spent)} spent`}
    >
      <span class="row">
        <b class="grow">
          <Name text={name} />
        </b>
        <span class="count">{grouped(members.length)}</span>
      </span>
      {cap !== null && <BudgetMeter values={use} size="small" tone={toneOfTeam(team)} />}
      <svg width={perLine * step} height={lines * step} aria-hidden="true">
        {squares(byNeed(members)).map(([kind, path]) => (
          <path key={kind} class={kind} d={path} />
        ))}
      </svg>
      <span class="grow" />
      <span class="row between label">
        <span class="cut">
          {usd(spent)}
          {use.held > 0 && ` + ${usd(use.held)}`}
          {use.held > 0 && <span class="wide-only"> held</span>}
        </span>
        {cap !== null && <span>of {capUsd(cap)}</span>}
      </span>
    </a>
  );
}

/** One path per kind of square, so that a team of hundreds stays a handful of elements. */
function squares(members: readonly TaskView[]): readonly (readonly [string, string])[] {
  const paths = new Map<string, string>();
  const add = (kind: string, path: string): void => void paths.set(kind, (paths.get(kind) ?? "") + path);
  for (const [at, member] of members.entries()) {
    const { total, budget } = member;
    const [x, y] = [(at % perLine) * step, Math.floor(at / perLine) * step];
    const look = lookOfTask(member);
    const cap = budget?.maxCostUsd ?? null;
    const share = cap === null || cap === 0 ? 0.5 : Math.min(1, (total.costUsd ?? 0) / cap);
    const tall = Math.max(2, Math.round(size * share));
    add(`${look} ground`, `M${x} ${y}h${size}v${size}h${-size}z`);
    if (look !== "pending") add(`${look} used`, `M${x} ${y + size - tall}h${size}v${tall}h${-size}z`);
  }
  return [...paths];
}
