/**
 * The lines of a view between which the keys J and K move. Each of them can have the focus. The lists of runs and
 * the inbox have their own keys.
 */
const lines = [
  "[role=treeitem]",
  ".org-rows .agent-cell",
  ".team-box",
  "button.lane",
  ".agents a",
  ".by-agent .agent-cell",
  ".event-row .number",
  ".message-list > li",
  ".found-line",
  ".session-line",
  ".step-at",
  ".tree-line",
  ".compare > .cell:nth-child(3n + 1)",
  ".case-line",
  ".agent-card .actions > :first-child",
  ".schedules .c-orders > :first-child",
].join(", ");

/**
 * Returns the index to which J or K moves in a list of `count` lines. Without a current line, it is the first or
 * the last.
 */
export function nextIn(count: number, at: number, by: 1 | -1): number {
  if (at < 0) return by > 0 ? 0 : count - 1;
  return Math.max(0, Math.min(count - 1, at + by));
}

/**
 * Moves the focus to the next line of the view, and chooses an agent of the chart. Returns `false` if the view has
 * no such lines.
 */
export function moveInList(by: 1 | -1): boolean {
  const all = [...document.querySelectorAll<HTMLElement>(`main :is(${lines})`)];
  const { activeElement } = document;
  const focused = all.findIndex((line) => line.contains(activeElement));
  const from = focused >= 0 ? focused : all.findIndex(isChosen);
  const next = all[nextIn(all.length, from, by)];
  if (next === undefined) return false;
  next.focus();
  if (next.matches("[role=treeitem], .org-rows .agent-cell")) next.click();
  return true;
}

function isChosen(line: HTMLElement): boolean {
  return line.matches("[aria-selected=true], [aria-current=page], [aria-current=true], .selected *");
}
