import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { errorText, get, post } from "../../api/client.ts";
import { changedRun } from "../../api/runs-feed.ts";
import type { Session } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { now } from "../../base/now.ts";
import { go, place, runPath, sessionPath } from "../../base/route.ts";
import { ago, counted, oneLine } from "../../base/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { shownName } from "../../parts/name.tsx";
import { Composer } from "./composer.tsx";
import { inputOf, type Attached } from "../../model/attached.ts";
import { SessionPage } from "./session-page.tsx";

/** Number of characters of a description that the list of agents shows. */
const mostDescription = 120;

/** Conversations: the list, one of them, or a new one. */
export function SessionsPage(): JSX.Element {
  const { query } = place.value;
  const id = query.get("id");
  if (id !== null) return <SessionPage key={id} sessionId={id} />;
  return <SessionList isNew={query.get("new") !== null} />;
}

function SessionList({ isNew }: { readonly isNew: boolean }): JSX.Element {
  const [text, setText] = useState("");
  const changed = changedRun.value?.sessionId ?? null;
  const { value, problem } = useRead(
    () => get("/api/sessions", { query: { limit: 100, ...(text !== "" && { text }) } }),
    [text, changed, changedRun.value?.status],
  );
  const sessions = value?.sessions ?? [];
  return (
    <main class={`session ${isNew ? "has-choice" : ""}`} id="main">
      <div class="session-tree">
        <div class="session-head">
          <div class="row between">
            <h1>Sessions</h1>
            <a class="button small" href="/sessions?new=1">
              New session
            </a>
          </div>
          <label class="find">
            <Icon name="find" />
            <input
              type="search"
              aria-label="Find a session"
              placeholder="Part of a name or title"
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
        </div>
        {problem !== null && <p class="problem">{problem}</p>}
        {sessions.map((session) => (
          <SessionLine key={session.sessionId} session={session} />
        ))}
        {value !== null && sessions.length === 0 && (
          <p class="dim session-none">
            {text === ""
              ? "No conversation yet. A session keeps what you and an agent said, over any number of runs."
              : "No session fits."}
          </p>
        )}
      </div>
      <NewSession />
    </main>
  );
}

function SessionLine({ session }: { readonly session: Session }): JSX.Element {
  const { sessionId, name, title, entries, updatedAt } = session;
  return (
    <a class="session-line" href={sessionPath(sessionId)}>
      <span class="cut strong">{shownName(name ?? title ?? sessionId)}</span>
      <span class="label">{ago(updatedAt, now.value)}</span>
      <span class="sub">
        <span>{session.agentId}</span>
        <span>{counted(entries, "entry", "entries")}</span>
      </span>
    </a>
  );
}

/** Starts a conversation with an agent of the server. */
function NewSession(): JSX.Element {
  const { value } = useRead(() => get("/api/agents"), []);
  const [chosen, choose] = useState(place.value.query.get("agent") ?? "");
  const [problem, setProblem] = useState<string | null>(null);
  const agents = value?.agents ?? [];
  const agent = chosen === "" ? (agents[0]?.name ?? "") : chosen;
  const send = async (text: string, attached: readonly Attached[]): Promise<boolean> => {
    try {
      // A message may be sent before the list of agents has arrived.
      const to = agent === "" ? ((await get("/api/agents")).agents[0]?.name ?? "") : agent;
      const { run } = await post("/api/runs", { body: { agent: to, input: inputOf(text, attached) } });
      go(run.sessionId === undefined ? runPath(run.runId) : sessionPath(run.sessionId));
      return true;
    } catch (error) {
      setProblem(errorText(error));
      return false;
    }
  };
  return (
    <div class="chat">
      <div class="thread grow">
        <div class="chat-intro">
          <h2>A new conversation</h2>
          {value !== null && agents.length === 0 ? (
            <p class="mid">
              This server hosts no agent. Start it with <code>reeve serve --model provider/id</code>.
            </p>
          ) : (
            <label class="field">
              With
              <select value={agent} onChange={(event) => choose(event.currentTarget.value)}>
                {agents.map(({ name, description }) => (
                  <option key={name} value={name}>
                    {name}
                    {description === null || description === ""
                      ? ""
                      : `: ${oneLine(description, mostDescription)}`}
                  </option>
                ))}
              </select>
            </label>
          )}
          {problem !== null && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
        </div>
      </div>
      {(value === null || agents.length > 0) && <Composer agentId={agent} onSend={send} isBusy={false} />}
    </div>
  );
}
