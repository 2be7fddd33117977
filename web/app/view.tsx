import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { InboxPage } from "../pages/inbox/inbox-page.tsx";
import { RunPage } from "../pages/run/run-page.tsx";
import { RunsPage } from "../pages/runs/runs-page.tsx";
import type { laterViews } from "./later-views.ts";
import { go, place } from "../base/route.ts";

type LaterViews = typeof laterViews;

/** The views that are loaded later. `loading` until they are here, `failed` if the server did not send them. */
const later = signal<LaterViews | "loading" | "failed">("loading");

/**
 * Loads the views that are rarely the first one, so that the page draws its first view with a smaller script. They are loaded
 * at once and not when they are opened, so that all views open while the server is away.
 */
export async function loadLaterViews(): Promise<void> {
  try {
    later.value = (await import("./later-views.ts")).laterViews;
  } catch {
    later.value = "failed";
  }
}

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
    case "agents":
    case "compare":
    case "find":
    case "schedules":
    case "sessions":
    case "usage":
      return <LaterView section={section} />;
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

function LaterView({ section }: { readonly section: keyof LaterViews }): JSX.Element {
  const views = later.value;
  if (views === "loading") return <main id="main" aria-busy="true" />;
  if (views === "failed")
    return (
      <main class="empty" id="main">
        <h1>This view could not be loaded</h1>
        <p>
          The server did not send it when the page opened: it was away, or it has a newer version of the page.
        </p>
        <p>
          <button class="button primary" onClick={() => location.reload()}>
            Load again
          </button>
        </p>
      </main>
    );
  const Page = views[section];
  return <Page />;
}

function ToRuns(): JSX.Element {
  useLayoutEffect(() => go("/runs", { replace: true }), []);
  return <main id="main" />;
}
