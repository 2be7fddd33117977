import { connection, shownEvent, tryNow } from "../api/connection.ts";
import { facts, waiting } from "../api/runs-feed.ts";
import type { Facts } from "../api/types.ts";
import { announcement } from "../base/announce.ts";
import { grouped, span } from "../base/format.ts";
import { useKeys } from "../base/keys.ts";
import { moveInList } from "../base/move-in-list.ts";
import { now } from "../base/now.ts";
import { go, place, runPath } from "../base/route.ts";
import { closeDialog, Dialog, dialog, DialogHost } from "../parts/dialog.tsx";
import { Glyph } from "../parts/glyph.tsx";
import { Icon, type IconName } from "../parts/icon.tsx";
import { openNewRun } from "../parts/open-form.tsx";
import { Steady } from "../parts/steady.tsx";
import { openHelp, View } from "./view.tsx";
import { effect, signal } from "@preact/signals";
import type { JSX } from "preact";

/** Reads a setting of this browser. `null` if it was never set, or the browser stores nothing. */
function kept(name: string): string | null {
  try {
    return localStorage.getItem(`reeve.${name}`);
  } catch {
    return null;
  }
}

/** Stores a setting in this browser. If the browser refuses, the setting is valid until the page is closed. */
function keep(name: string, value: string): void {
  try {
    localStorage.setItem(`reeve.${name}`, value);
  } catch {
    return;
  }
}

type Theme = "light" | "dark";

const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = kept("theme");

/** The theme: the one that the person chose, or else the theme of the system. */
const theme = signal<Theme>(
  chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light",
);

function switchTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  keep("theme", theme.value);
}

dark.addEventListener("change", ({ matches }) => {
  if (kept("theme") === null) theme.value = matches ? "dark" : "light";
});

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

interface Section {
  readonly path: string;
  readonly name: string;
  /** Key after G. */
  readonly key?: string;
  /** Shown at the bottom of a narrow screen. */
  readonly icon?: IconName;
}

/** For views whose section has a different name, this section. */
const sectionOf: Readonly<Record<string, string>> = {
  again: "runs",
  compare: "runs",
  find: "runs",
  objects: "agents",
};

/** Whether a view, by the first part of its path, belongs to a section. */
function isIn(section: string, [first = "runs"]: readonly string[]): boolean {
  return `/${sectionOf[first] ?? first}` === section;
}

/** The sections of the page, in the order of the bar. */
const sections: readonly Section[] = [
  { path: "/runs", name: "Runs", key: "r", icon: "runs" },
  { path: "/inbox", name: "Inbox", key: "i", icon: "inbox" },
  { path: "/sessions", name: "Sessions", key: "s", icon: "chat" },
  { path: "/agents", name: "Agents" },
  { path: "/experiments", name: "Experiments" },
  { path: "/gateway", name: "Gateway" },
  { path: "/schedules", name: "Schedules" },
  { path: "/usage", name: "Usage" },
];

/** The whole page: the bar on top, the view, and what lies above them. */
export function Shell(): JSX.Element {
  useKeys({
    "g c": () => go("/compare"),
    ...Object.fromEntries(
      sections.flatMap(({ key, path }) => (key === undefined ? [] : [[`g ${key}`, () => go(path)]])),
    ),
    // Views with keys of their own for it are asked first.
    j: () => moveInList(1),
    k: () => moveInList(-1),
    n: () => openNewRun(),
    t: switchTheme,
    "?": openHelp,
    "/": () => document.querySelector<HTMLInputElement>(".find-all input")?.focus(),
  });
  return (
    <>
      <a class="skip" href="#main">
        Skip to the view
      </a>
      <header class="top">
        <a class="brand" href="/runs">
          <Mark />
          reeve
        </a>
        <nav aria-label="Sections">
          {sections.map(({ path, name }) => (
            <a key={path} href={path} aria-current={isAt(path) ? "page" : undefined}>
              <Steady text={name} />
              {path === "/inbox" && <Waiting />}
            </a>
          ))}
        </nav>
        <span class="grow" />
        <FindAll />
        <Connected />
        <button class="icon-button" aria-label="Switch between light and dark" onClick={switchTheme}>
          <Icon name="theme" />
        </button>
        <button class="icon-button" aria-label="Keys and help" onClick={openHelp}>
          <Icon name="help" />
        </button>
      </header>
      <Offline />
      <View />
      <nav class="bottom-tabs" aria-label="Sections">
        {sections
          .filter(({ icon }) => icon !== undefined)
          .map(({ path, name, icon }) => (
            <a key={path} href={path} aria-current={isAt(path) ? "page" : undefined}>
              <Icon name={icon as IconName} />
              {name}
              {path === "/inbox" && <Waiting />}
            </a>
          ))}
        <button
          onClick={openMore}
          aria-current={
            sections.some(({ path, icon }) => icon === undefined && isAt(path)) ? "page" : undefined
          }
        >
          <Icon name="more" />
          More
        </button>
      </nav>
      <DialogHost />
      <div class="unseen" role="status" aria-live="polite">
        {announcement.value}
      </div>
    </>
  );
}

/** Search field for runs, agents and messages. The id of a run opens the run. */
function FindAll({ onFind }: { readonly onFind?: () => void }): JSX.Element {
  return (
    <form
      class="find find-all"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const input = event.currentTarget.querySelector("input");
        const text = input?.value.trim() ?? "";
        if (/^run_[\w-]{8,}$/u.test(text)) go(runPath(text));
        else go(text === "" ? "/runs" : `/find?text=${encodeURIComponent(text)}`);
        input?.blur();
        onFind?.();
      }}
    >
      <Icon name="find" />
      <input type="search" aria-label="Find" placeholder="Find run, agent, message" />
      <kbd>/</kbd>
    </form>
  );
}

/** Shows the sections for which a narrow screen has no tab. */
function openMore(): void {
  dialog.value = () => (
    <Dialog title="More">
      <FindAll onFind={closeDialog} />
      <nav class="more-list" aria-label="More sections">
        {[...sections.filter(({ icon }) => icon === undefined), { path: "/compare", name: "Compare" }].map(
          ({ path, name }) => (
            <a key={path} href={path} onClick={closeDialog}>
              {name}
            </a>
          ),
        )}
      </nav>
      <form method="dialog" class="actions end">
        <button class="button">Close</button>
      </form>
    </Dialog>
  );
}

function isAt(path: string): boolean {
  return isIn(path, place.value.parts);
}

function Waiting(): JSX.Element {
  const count = waiting.value ?? 0;
  // An empty badge keeps its room, so that nothing moves when the first item arrives.
  return count === 0 ? (
    <span class="badge vacant" aria-hidden="true">
      0
    </span>
  ) : (
    <span class="badge">
      {grouped(count)}
      <span class="unseen"> wait for you</span>
    </span>
  );
}

function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d="M2 1h11a1.750 1.750 0 0 0 0 3.500 1.750 1.750 0 0 0 0 3.500 1.750 1.750 0 0 0 0 3.500 1.750 1.750 0 0 0 0 3.500H2z" />
    </svg>
  );
}

function Connected(): JSX.Element {
  const { state } = connection.value;
  const isLive = state === "live";
  const word = isLive
    ? "Live"
    : state === "connecting"
      ? "Connecting"
      : state === "locked"
        ? "Locked"
        : "Offline";
  return (
    <span class="connected">
      <Glyph look={isLive ? "running" : state === "connecting" ? "pending" : "failed"} />
      <span>{word}</span>
    </span>
  );
}

/** Shows since when the server does not answer, and when the page tries again. All shown data stay visible. */
function Offline(): JSX.Element | null {
  const { value } = connection;
  if (value.state === "locked")
    return (
      <div class="banner" role="alert">
        <Glyph look="failed" />
        <b>This browser has no access.</b>
        <span>Its token was revoked or has expired. Runs are not affected.</span>
        <span class="grow" />
        <button
          class="button small primary"
          onClick={() =>
            location.assign(`/login?to=${encodeURIComponent(location.pathname + location.search)}`)
          }
        >
          Sign in
        </button>
      </div>
    );
  if (value.state !== "offline") return null;
  const next = Math.max(0, Math.ceil((value.nextTryAt - now.value) / 1_000));
  return (
    <div class="banner" role="status">
      <Glyph look="failed" />
      <b>The server stopped answering {sinceWords(now.value - value.since)}.</b>
      <span>
        You see the{" "}
        {shownEvent.value === null
          ? "last state that arrived"
          : `state of event ${grouped(shownEvent.value)}`}
        . {offlineWords(facts.value)} {next > 0 ? `Next try in ${next} s.` : "Trying now."}
      </span>
      <span class="grow" />
      <button class="button small" onClick={tryNow}>
        Try now
      </button>
    </div>
  );
}

function sinceWords(ms: number): string {
  return ms < 1_000 ? "just now" : `${span(ms)} ago`;
}

/**
 * Describes what happens to the runs while the server does not answer. A server that hosts agents executes runs
 * itself.
 */
function offlineWords(known: Facts | null): string {
  if (known === null) return "";
  return known.hostedAgents === 0
    ? "Workers execute the runs, which continue without this server."
    : "Runs that this server executes itself stand still until it is back or another worker takes them over. The others continue.";
}
