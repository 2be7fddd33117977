/** A page in the list of a door. */
export interface ListedPage {
  readonly title: string;
  /** Path of the file relative to the folder of the documents, such as `guides/agents.md`. */
  readonly path: string;
  /** What the reader finds there. */
  readonly about: string;
}

/** Pages below one heading of a door. Pages directly below the heading of the door are in a group without a title. */
export interface PageGroup {
  readonly title: string | undefined;
  readonly pages: readonly ListedPage[];
}

/** A part of the documents for one kind of reader, such as Guides or Operations. */
export interface Door {
  readonly title: string;
  readonly groups: readonly PageGroup[];
}

/**
 * Reads the doors of the documents from `docs/README.md`, which declares their order: a heading of level two is a
 * door, a heading of level three is a group, and a list entry `- [Title](path.md): description` is a page. Headings
 * without a list are ignored.
 */
export function readContents(markdown: string): readonly Door[] {
  const doors: { title: string; groups: { title: string | undefined; pages: ListedPage[] }[] }[] = [];
  for (const line of markdown.split(/\r?\n/u)) {
    const [, level, heading = ""] = /^(##|###) (.+)$/u.exec(line) ?? [];
    if (level === "##") doors.push({ title: heading, groups: [] });
    else if (level === "###") doors.at(-1)?.groups.push({ title: heading, pages: [] });
    const [, title, path, about = ""] = /^- \[([^\]]+)\]\(([^()\s]+\.md)\)(?:: (.+))?$/u.exec(line) ?? [];
    const door = doors.at(-1);
    if (door === undefined || title === undefined || path === undefined) continue;
    if (door.groups.length === 0) door.groups.push({ title: undefined, pages: [] });
    door.groups.at(-1)?.pages.push({ title, path, about });
  }
  return doors.filter(({ groups }) => groups.some(({ pages }) => pages.length > 0));
}
