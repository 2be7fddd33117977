import type { ComponentChildren, JSX } from "preact";
import { get, RequestError } from "../../api/client.ts";
import { asking } from "../../api/runs-feed.ts";
import type { Run } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { now } from "../../base/now.ts";
import { place, runPath, sessionPath } from "../../base/route.ts";
import { ago, counted, oneLine } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { Icon } from "../../parts/icon.tsx";
import { lookOfRun } from "../../model/status.ts";
import { parseFilter } from "../../model/run-filter.ts";
import { around, excerptWords, findInRun, searchedTypes } from "./find-in-runs.ts";

const mostRuns = 500;
const mostShown = 20;
/** Number of runs whose agents and messages are searched. */
const mostSearched = 25;
/** Number of events of a run that are searched. */
const mostEvents = 2_000;

/** What contains a text: runs by agent, id or title, agents by name, and messages of runs and conversations. */
export function FindPage(): JSX.Element {
  const text = place.value.query.get("text") ?? "";
  const { value, problem } = useRead(() => find(text), [text]);
  const count = value === null ? 0 : sizeOf(value);
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
          Nothing fits <code>{text}</code>. The page searched the {mostRuns} newest runs, agents and messages
          of the {counted(value.searched, "newest run")} of them, and all conversations.
        </p>
      )}
      {value !== null && (
        <>
          <Group name="run" count={value.runs.length}>
            {value.runs.slice(0, mostShown).map((run) => (
              <Hit
                key={run.runId}
                href={runPath(run.runId)}
                mark={<Glyph look={lookOfRun(run, asking.value)} status={run.status} />}
                title={oneLine(run.title ?? run.runId)}
                label={ago(run.createdAt, now.value)}
                sub={[run.agentId, <code class="cut">{run.runId}</code>]}
              />
            ))}
          </Group>
          <Group name="agent" count={value.agents.length + value.working.length}>
            {value.agents.map(({ name, description }) => (
              <Hit
                key={name}
                href="/agents"
                mark={<Icon name="person" />}
                title={name}
                label="this server hosts it"
                sub={[
                  description === null
                    ? "An agent that a run can start with"
                    : oneLine(description, mostDescription),
                ]}
              />
            ))}
            {value.working.slice(0, mostShown).map(({ run, taskId, agentId }) => (
              <Hit
                key={`${run.runId} ${taskId}`}
                href={runPath(run.runId, "chart", taskId)}
                mark={<Icon name="person" />}
                title={agentId}
                label={ago(run.createdAt, now.value)}
                sub={[`in ${titleOf(run)}`]}
              />
            ))}
          </Group>
          <Group name="message" count={value.messages.length + value.hits.length}>
            {value.messages.slice(0, mostShown).map(({ run, seq, at, from, to, text: words }) => (
              <Hit
                key={`${run.runId} ${seq}`}
                href={runPath(run.runId, "messages")}
                mark={<Icon name="chat" />}
                title={around(words, text)}
                label={ago(at, now.value)}
                sub={[`${from} to ${to}`, titleOf(run)]}
              />
            ))}
            {value.hits.slice(0, mostShown).map(({ sessionId, entryId, excerpt, at }) => (
              <Hit
                key={entryId}
                href={`${sessionPath(sessionId)}&leaf=${entryId}`}
                mark={<Icon name="chat" />}
                title={oneLine(excerptWords(excerpt, text))}
                label={ago(at, now.value)}
                sub={["in the session", <code class="cut">{sessionId}</code>]}
              />
            ))}
          </Group>
        </>
      )}
    </main>
  );
}

function sizeOf({ runs, agents, working, messages, hits }: Awaited<ReturnType<typeof find>>): number {
  return runs.length + agents.length + working.length + messages.length + hits.length;
}

/** Number of characters of a description that a line shows. */
const mostDescription = 400;

function titleOf({ title, agentId }: Run): string {
  return oneLine(title ?? agentId);
}

interface GroupProps {
  readonly name: string;
  readonly count: number;
  readonly children: ComponentChildren;
}

function Group({ name, count, children }: GroupProps): JSX.Element | null {
  return count === 0 ? null : (
    <section class="found" aria-label={`${name}s`}>
      <h2>{counted(count, name)}</h2>
      {children}
    </section>
  );
}

interface HitProps {
  readonly href: string;
  readonly mark: JSX.Element;
  readonly title: string;
  readonly label: string;
  readonly sub: readonly (string | JSX.Element)[];
}

function Hit({ href, mark, title, label, sub }: HitProps): JSX.Element {
  return (
    <a class="found-line" href={href}>
      {mark}
      <span class="cut strong" title={title}>
        {title}
      </span>
      <span class="label">{label}</span>
      <span class="sub">
        {sub.map((each, at) =>
          typeof each === "string" ? (
            <span class="cut" key={at}>
              {each}
            </span>
          ) : (
            each
          ),
        )}
      </span>
    </a>
  );
}

async function find(text: string) {
  const matches = parseFilter(text);
  const [{ runs }, { agents }, { hits }] = await Promise.all([
    get("/api/runs", { query: { limit: mostRuns } }),
    get("/api/agents"),
    text === "" ? { hits: [] } : get("/api/search", { query: { text } }),
  ]);
  const searched = runs.slice(0, mostSearched);
  const inside = await Promise.all(searched.map((run) => readInside(run, text)));
  const wanted = text.toLowerCase();
  return {
    runs: runs.filter(matches),
    agents: agents.filter(({ name }) => name.toLowerCase().includes(wanted)),
    working: inside.flatMap((each) => each.agents),
    messages: inside.flatMap((each) => each.messages).toSorted((one, other) => other.at - one.at),
    hits,
    searched: searched.length,
  };
}

/** Searches the agents and messages of a run. A run that was removed meanwhile has none. */
async function readInside(run: Run, text: string): Promise<ReturnType<typeof findInRun>> {
  try {
    const { events } = await get("/api/runs/{runId}/events", {
      params: { runId: run.runId },
      query: { types: [...searchedTypes], limit: mostEvents },
    });
    return findInRun(run, events, text);
  } catch (error) {
    if (error instanceof RequestError && error.code === "not_found") return { agents: [], messages: [] };
    throw error;
  }
}
