import type { JSX } from "preact";
import { get } from "../api/client.ts";
import { asking } from "../api/runs-feed.ts";
import type { Run } from "../api/types.ts";
import { useRead } from "../api/use-read.ts";
import { now } from "../app/now.ts";
import { place, runPath, sessionPath } from "../app/route.ts";
import { ago, counted, oneLine } from "../parts/format.ts";
import { Glyph } from "../parts/glyph.tsx";
import { Icon } from "../parts/icon.tsx";
import { lookOfRun } from "../parts/status.ts";
import { parseFilter } from "../runs/run-filter.ts";

const mostRuns = 500;
const mostShown = 20;

/** What contains a text: runs by agent, id or title, agents by name, and messages of conversations. */
export function FindPage(): JSX.Element {
  const text = place.value.query.get("text") ?? "";
  const { value, problem } = useRead(() => find(text), [text]);
  const count = value === null ? 0 : value.runs.length + value.agents.length + value.hits.length;
  return (
    <main class="page" id="main">
      <div class="page-head">
        <h1 class="cut">
          Found for <q>{text}</q>
        </h1>
      </div>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {value === null && problem === null && <p class="dim">Searching</p>}
      {value !== null && count === 0 && (
        <p class="dim none">
          No run, agent or message fits <code>{text}</code>.
        </p>
      )}
      {value !== null && value.runs.length > 0 && (
        <section class="found" aria-label="Runs">
          <h2>{counted(value.runs.length, "run")}</h2>
          {value.runs.slice(0, mostShown).map((run) => (
            <a key={run.runId} class="found-line" href={runPath(run.runId)}>
              <Glyph look={lookOfRun(run, asking.value)} />
              <span class="cut strong">{run.title ?? run.runId}</span>
              <span class="label">{ago(run.createdAt, now.value)}</span>
              <span class="sub">
                <span>{run.agentId}</span>
                <code class="cut">{run.runId}</code>
              </span>
            </a>
          ))}
        </section>
      )}
      {value !== null && value.agents.length > 0 && (
        <section class="found" aria-label="Agents">
          <h2>{counted(value.agents.length, "agent")}</h2>
          {value.agents.map(({ name, description }) => (
            <a key={name} class="found-line" href="/agents">
              <Icon name="person" />
              <span class="cut strong">{name}</span>
              <span class="label">{description}</span>
            </a>
          ))}
        </section>
      )}
      {value !== null && value.hits.length > 0 && (
        <section class="found" aria-label="Messages">
          <h2>{counted(value.hits.length, "message")}</h2>
          {value.hits.slice(0, mostShown).map(({ sessionId, entryId, excerpt, at }) => (
            <a key={entryId} class="found-line" href={`${sessionPath(sessionId)}&leaf=${entryId}`}>
              <Icon name="chat" />
              <span class="cut strong">{oneLine(excerpt)}</span>
              <span class="label">{ago(at, now.value)}</span>
            </a>
          ))}
        </section>
      )}
    </main>
  );
}

async function find(text: string) {
  const matches = parseFilter(text);
  const [runs, { agents }, { hits }] = await Promise.all([
    newestRuns(),
    get("/api/agents"),
    text === "" ? { hits: [] } : get("/api/search", { query: { text } }),
  ]);
  const wanted = text.toLowerCase();
  return {
    runs: runs.filter(matches),
    agents: agents.filter(({ name }) => name.toLowerCase().includes(wanted)),
    hits,
  };
}

/** The newest runs, which are searched. */
async function newestRuns(): Promise<readonly Run[]> {
  const { runs } = await get("/api/runs", { query: { limit: mostRuns } });
  return runs;
}
