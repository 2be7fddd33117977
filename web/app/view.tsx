import { useLayoutEffect } from "preact/hooks";
import type { JSX } from "preact";
import { AgentsPage } from "../agents/agents-page.tsx";
import { ComparePage } from "../compare/compare-page.tsx";
import { SchedulesPage } from "../schedules/schedules-page.tsx";
import { SessionsPage } from "../sessions/sessions-page.tsx";
import { UsagePage } from "../usage/usage-page.tsx";
import { FindPage } from "../find/find-page.tsx";
import { InboxPage } from "../inbox/inbox-page.tsx";
import { RunPage } from "../run/run-page.tsx";
import { RunsPage } from "../runs/runs-page.tsx";
import { go, place } from "./route.ts";

/** The view of the current path. */
export function View(): JSX.Element {
  const [section, id] = place.value.parts;
  if (section === "runs" && id !== undefined) return <RunPage key={id} runId={id} />;
  switch (section) {
    case undefined:
      return <ToRuns />;
    case "runs":
      return <RunsPage />;
    case "inbox":
      return <InboxPage />;
    case "sessions":
      return <SessionsPage />;
    case "agents":
      return <AgentsPage />;
    case "schedules":
      return <SchedulesPage />;
    case "usage":
      return <UsagePage />;
    case "find":
      return <FindPage />;
    case "compare":
      return <ComparePage />;
    default:
      return (
        <main class="empty" id="main">
          <h1>Nothing is here</h1>
          <p>
            The page has no view <code>/{place.value.parts.join("/")}</code>.
          </p>
          <p>
            <a class="button" href="/runs">
              All runs
            </a>
          </p>
        </main>
      );
  }
}

function ToRuns(): JSX.Element {
  useLayoutEffect(() => go("/runs", { replace: true }), []);
  return <main id="main" />;
}
