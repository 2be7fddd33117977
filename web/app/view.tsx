import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { RunPage } from "../pages/run/run-page.tsx";
import { RunsPage } from "../pages/runs/runs-page.tsx";
import { dialog } from "../parts/dialog.tsx";
import type { laterParts, laterTabs, laterViews } from "./later-views.ts";
import { go, place } from "../base/route.ts";
import { forms } from "../parts/open-form.tsx";

type LaterViews = typeof laterViews;

interface Later {
  readonly laterViews: LaterViews;
  readonly laterTabs: typeof laterTabs;
  readonly laterParts: typeof laterParts;
}

/** The views that are loaded later. `loading` until they have arrived, `failed` if the server did not send them. */
const later = signal<Later | "loading" | "failed">("loading");

/**
 * Loads the views that are rarely shown first, so that the first view needs only a smaller script. They are loaded
 * immediately after it, not when they are opened, so that all views also open while the server is unreachable.
 */
export async function loadLaterViews(): Promise<void> {
  try {
    const loaded = await import("./later-views.ts");
    later.value = loaded;
    forms.value = loaded.laterForms;
  } catch {
    later.value = "failed";
    forms.value = "failed";
  }
}

/** Shows the help for the keys. Does nothing until the help is loaded. */
export function openHelp(): void {
  if (typeof later.value === "string") return;
  const { Help } = later.value.laterParts;
  dialog.value = () => <Help />;
}

/** The view of the current path. */
export function View(): JSX.Element {
  const [section, id] = place.value.parts;
  if (section === "runs" && id !== undefined) {
    const loaded = later.value;
    return (
      <RunPage
        key={id}
        runId={id}
        later={typeof loaded === "string" ? <Missing isFailed={loaded === "failed"} /> : loaded.laterTabs}
      />
    );
  }
  switch (section) {
    case undefined:
      return <ToRuns />;
    case "runs":
      return <RunsPage later={typeof later.value === "string" ? null : later.value.laterParts} />;
    case "again":
    case "agents":
    case "compare":
    case "experiments":
    case "find":
    case "gateway":
    case "inbox":
    case "objects":
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
  const loaded = later.value;
  if (loaded === "loading") return <main id="main" aria-busy="true" />;
  if (loaded === "failed")
    return (
      <main class="empty" id="main">
        <Missing isFailed />
      </main>
    );
  const Page = loaded.laterViews[section];
  return <Page />;
}

/** Shown in place of a view that is not loaded. */
function Missing({ isFailed }: { readonly isFailed: boolean }): JSX.Element {
  if (!isFailed) return <p class="loading" aria-busy="true" />;
  return (
    <>
      <h1>This view could not be loaded</h1>
      <p>
        The server did not send it when the page opened: it was away, or it has a newer version of the page.
      </p>
      <p>
        <button class="button primary" onClick={() => location.reload()}>
          Load again
        </button>
      </p>
    </>
  );
}

function ToRuns(): JSX.Element {
  useLayoutEffect(() => go("/runs", { replace: true }), []);
  return <main id="main" />;
}
