import type { IconName } from "../parts/icon.tsx";

interface Section {
  readonly path: string;
  readonly name: string;
  /** Key after G. */
  readonly key?: string;
  /** Shown at the bottom of a narrow screen. */
  readonly icon?: IconName;
}

/** The sections of the page, in the order of the bar. */
export const sections: readonly Section[] = [
  { path: "/runs", name: "Runs", key: "r", icon: "runs" },
  { path: "/inbox", name: "Inbox", key: "i", icon: "inbox" },
  { path: "/sessions", name: "Sessions", key: "s", icon: "chat" },
  { path: "/agents", name: "Agents" },
  { path: "/schedules", name: "Schedules" },
  { path: "/usage", name: "Usage" },
];
