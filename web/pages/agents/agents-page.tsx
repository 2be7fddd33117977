import { Fragment, type JSX } from "preact";
import { get } from "../../api/client.ts";
import type { AgentInfo } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { counted, oneLine } from "../../base/format.ts";
import { objectPath } from "../../base/route.ts";
import { Name, shownName } from "../../parts/name.tsx";
import { isHandOff } from "../../../src/surfaces/view/task-words.ts";
import { openNewRun } from "../../parts/open-form.tsx";

/** Number of characters of a description that a card shows. */
const mostDescription = 1_000;

/** The agents that people may start here, each with a drawing of whom it can hire. */
export function AgentsPage(): JSX.Element {
  const { value, problem } = useRead(() => get("/api/agents"), []);
  const agents = value?.agents ?? [];
  const byName = new Map(agents.map((agent) => [agent.name, agent]));
  return (
    <main class="page" id="main">
      <div class="page-head">
        <h1>Agents</h1>
      </div>
      {problem !== null && <p class="problem">{problem}</p>}
      {value !== null && agents.length === 0 && (
        <p class="mid">
          This server hosts no agent. Start it with <code>reeve serve --model provider/id</code>, or write one
          with <code>reeve init</code>.
        </p>
      )}
      <div class="agent-grid">
        {agents.map((agent) => (
          <AgentCard key={agent.name} agent={agent} byName={byName} />
        ))}
      </div>
    </main>
  );
}

function AgentCard({
  agent,
  byName,
}: {
  readonly agent: AgentInfo;
  readonly byName: ReadonlyMap<string, AgentInfo>;
}): JSX.Element {
  const { name, description, model, tools, subAgents, skills, kind, handlers, signals, updates } = agent;
  const isAgent = kind === "agent";
  const lists: readonly (readonly [name: string, values: readonly string[]])[] = [
    ["Skills", skills],
    ["Handlers", handlers],
    ["Signals", signals.map((each) => each.name)],
    ["Updates", updates.map((each) => each.name)],
  ];
  // Whom it may hire is said above.
  const own = tools.filter((tool) => !isHandOff(tool));
  return (
    <section class="agent-card" aria-label={name}>
      {subAgents.length > 0 && <Drawing agent={agent} byName={byName} />}
      {/* The drawing shows the name too. */}
      <h2 class={subAgents.length > 0 ? "unseen" : ""}>
        <Name text={name} />
      </h2>
      <p class="mid">
        {description === null || description === ""
          ? "No description."
          : oneLine(description, mostDescription)}
      </p>
      <dl class="pairs">
        {!isAgent && <dt>Kind</dt>}
        {!isAgent && <dd>{kind}</dd>}
        {isAgent && <dt>Model</dt>}
        {isAgent && <dd>{model ?? "chosen in code"}</dd>}
        <dt>May hire</dt>
        <dd>{subAgents.length === 0 ? "no one" : subAgents.join(", ")}</dd>
        {lists.map(([head, values]) =>
          values.length === 0 ? null : (
            <Fragment key={head}>
              <dt>{head}</dt>
              <dd>{values.map(shownName).join(", ")}</dd>
            </Fragment>
          ),
        )}
      </dl>
      {isAgent && (
        <p class="chips">
          {own.map((tool) => (
            <span key={tool} class="chip">
              {tool}
            </span>
          ))}
          {own.length === 0 && <span class="dim">No tools of its own</span>}
        </p>
      )}
      <div class="actions">
        <button class="button" onClick={() => openNewRun({ agent: name })}>
          New run
        </button>
        {isAgent && (
          <a class="button quiet" href={`/sessions?new=1&agent=${encodeURIComponent(name)}`}>
            Talk to it
          </a>
        )}
        {kind === "object" && (
          <a class="button quiet" href={objectPath(name)}>
            State by key
          </a>
        )}
      </div>
    </section>
  );
}

const mostReports = 6;

/** The agent with whom it can hire, as the chart would draw them. */
function Drawing({
  agent,
  byName,
}: {
  readonly agent: AgentInfo;
  readonly byName: ReadonlyMap<string, AgentInfo>;
}): JSX.Element {
  const reports = agent.subAgents.slice(0, mostReports);
  const step = 280 / Math.max(1, reports.length);
  // A report is not wider than its manager.
  const width = Math.min(140, step - 8);
  return (
    <svg
      class="drawing"
      viewBox="0 0 280 96"
      role="img"
      aria-label={`${agent.name} may hire ${counted(agent.subAgents.length, "agent")}`}
    >
      {reports.map((name, at) => {
        const x = step * (at + 0.5);
        return (
          <g key={name}>
            <path
              class="string"
              stroke-width="4"
              d={`M140 32V44Q140 52 ${140 + Math.sign(x - 140) * 8} 52H${x - Math.sign(x - 140) * 8}Q${x} 52 ${x} 60V68`}
            />
            <rect class="card-shape" x={x - width / 2} y="66" width={width} height="26" rx="5" />
            <text class="drawn-name" x={x} y="83" text-anchor="middle">
              {cutTo(name, Math.floor((width - 4) / 6))}
            </text>
            {(byName.get(name)?.subAgents.length ?? 0) > 0 && (
              <path class="string" stroke-width="3" d={`M${x} 92V96`} />
            )}
          </g>
        );
      })}
      <rect class="card-shape" x="70" y="4" width="140" height="28" rx="6" />
      <text class="drawn-name root" x="140" y="22" text-anchor="middle">
        {cutTo(agent.name, 20)}
      </text>
    </svg>
  );
}

function cutTo(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`;
}
