import type { IconName } from "../parts/icon.tsx";

interface Section {
  readonly path: string;
  readonly name: string;
  /** Key after G. */
  readonly key?: string;
  /** Shown at the bottom of a narrow screen. */
  readonly icon?: IconName;
}

/** Views that belong to a section of another name. */
const sectionOf: Readonly<Record<string, string>> = { compare: "runs", find: "runs" };

/** Whether a view, by the first part of its path, belongs to a section. */
export function isIn(section: string, [first = "runs"]: readonly string[]): boolean {
  return `/${sectionOf[first] ?? first}` === section;
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
