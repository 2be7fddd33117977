import { visibleLine } from "../../../src/kernel/index.ts";
import type { JSX } from "preact";
import { get, type Result } from "../../api/client.ts";
import { asking } from "../../api/runs-feed.ts";
import type { Run } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { ago, columnUsd, counted, grouped, took, usd } from "../../base/format.ts";
import { now } from "../../base/now.ts";
import { runPath } from "../../base/route.ts";
import { gatewayAgent, gatewayBudget } from "../../model/gateway/gateway-requests.ts";
import { lookOfRun, runWord } from "../../model/status.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { shownName } from "../../parts/name.tsx";

/** What the gateway of this server says. */
type Served = NonNullable<Result<"GET", "/api/gateway/runs">>;

/** How often the open requests are read, in milliseconds. */
const readEveryMs = 5_000;

/** Number of programs that the list has. */
const mostRuns = 100;

/** The programs outside Reeve that spend through the gateway. */
export function GatewayPage(): JSX.Element {
  const { value, problem, again } = useRead(
    () => get("/api/runs", { query: { agent: gatewayAgent, limit: mostRuns } }),
    [],
  );
  const runs = value?.runs ?? [];
  // `null` if the server knows no gateway.
  const { value: here } = useRead(() => get("/api/gateway/runs"), [Math.floor(now.value / readEveryMs)]);
  return (
    <main class="page gateway" id="main">
      <div class="page-head">
        <h1>Gateway</h1>
        {runs.length > 0 && <span class="dim">{totalWords(runs)}</span>}
        <span class="grow" />
        <button class="button" onClick={again}>
          Read again
        </button>
      </div>
      {here !== null && runs.length > 0 && <Here here={here} />}
      {problem !== null && <p class="problem">{problem}</p>}
      {value !== null && runs.length === 0 && <Empty />}
      {runs.length > 0 && <Programs runs={runs} here={here} />}
      {value?.next != null && (
        <p class="dim">
          Older programs are in the <a href={`/runs?agent=${encodeURIComponent(gatewayAgent)}`}>runs</a>.
        </p>
      )}
    </main>
  );
}

function totalWords(runs: readonly Run[]): string {
  const spent = runs.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
  const requests = runs.reduce((sum, { turns }) => sum + turns, 0);
  return `${usd(spent)} spent in ${counted(requests, "request")} by ${counted(runs.length, "program")}`;
}

/** What the gateway of this server does now. */
function Here({ here: { url, runs } }: { readonly here: Served }): JSX.Element {
  if (url === null)
    return <p class="dim">This server has no gateway. Start reeve serve with a key of a provider.</p>;
  const sum = (name: "open" | "held" | "refused"): number =>
    runs.reduce((all, { figures }) => all + (figures?.[name] ?? 0), 0);
  const delays = runs.flatMap(({ figures }) => figures?.addedDelayMs ?? []);
  const facts = [
    ["Open requests", grouped(sum("open"))],
    ["Held for a top-up", grouped(sum("held"))],
    ["Refused since the start", grouped(sum("refused"))],
    ["Added delay", delays.length === 0 ? "–" : took(Math.max(...delays))],
  ];
  return (
    <dl class="step-values" aria-label={`The gateway at ${url}`}>
      {facts.map(([name = "", text = ""]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function Programs({
  runs,
  here,
}: {
  readonly runs: readonly Run[];
  readonly here: Served | null;
}): JSX.Element {
  const figuresOf = (runId: string): Served["runs"][number]["figures"] =>
    here?.runs.find((each) => each.runId === runId)?.figures ?? null;
  return (
    <table class="table figure-cards" aria-label="Programs, newest first">
      <thead>
        <tr>
          <th>Program</th>
          <th>Status</th>
          <th>User</th>
          <th>Tenant</th>
          <th class="right">Requests</th>
          <th class="right">Open</th>
          <th class="right">Spent of budget</th>
          <th class="right">Created</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.runId}>
            <td class="cut">
              <a class="link" href={runPath(run.runId)}>
                {visibleLine(run.agentId)}
              </a>
            </td>
            <td>
              <span class={`status ${lookOfRun(run, asking.value)}`}>
                <Glyph look={lookOfRun(run, asking.value)} status={run.status} />
                <span>{runWord(run, asking.value)}</span>
              </span>
            </td>
            <td class="cut" data-head="User">
              {run.userId === null ? "–" : shownName(run.userId)}
            </td>
            <td class="cut" data-head="Tenant">
              {run.tenantId === null ? "–" : shownName(run.tenantId)}
            </td>
            <td class="right" data-head="Requests">
              {grouped(run.turns)}
            </td>
            <td class="right" data-head="Open">
              {openWords(run, figuresOf(run.runId), here)}
            </td>
            <td class="right" data-head="Spent of budget">
              {columnUsd(run.costUsd)} <span class="dim">of {gatewayBudget(run.metadata) ?? "no limit"}</span>
            </td>
            <td class="right dim" data-head="Created">
              {ago(run.createdAt, now.value)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Number of open requests. A run that another server executes says so. */
function openWords(
  { endedAt, status }: Run,
  figures: Served["runs"][number]["figures"],
  here: Served | null,
): string {
  if (figures !== null) return grouped(figures.open);
  return here === null || endedAt !== null || status === "paused" ? "–" : "not here";
}

function Empty(): JSX.Element {
  return (
    <section class="prose">
      <p>
        Programs that Reeve does not run, such as Claude Code, Codex or a script with an SDK, spend at most a
        budget if they call their provider through the gateway.
      </p>
      <pre>{commands}</pre>
    </section>
  );
}

const commands = `reeve gateway token --max-budget-usd 0.50 --name claude
reeve gateway env claude -- claude -p "Fix the failing test"`;
