import { chartSigns } from "../chat/front/agent-tree.ts";
import type { BoardFoot, BoardPlace } from "./board-lines.ts";
import type { Run } from "./run-feed.ts";

/** What a key of a board does. */
const watchKeys = {
  up: { keys: ["up", "k"], about: "the line above" },
  down: { keys: ["down", "j"], about: "the line below" },
  pageUp: { keys: ["pageUp"], about: "a page up" },
  pageDown: { keys: ["pageDown"], about: "a page down" },
  open: { keys: ["enter"], about: "open the run, the conversation of the agent, or the question" },
  info: { keys: ["i"], about: "what is known about the marked agent" },
  other: { keys: ["tab"], about: "between the list and the inbox" },
  answer: {
    keys: ["a"],
    about: "answer a question: the marked one, that of the marked agent, or the oldest",
  },
  topUp: { keys: ["u", "t"], about: "add to the budget of the marked agent or run" },
  pause: { keys: ["p"], about: "pause the run, or continue it" },
  steer: { keys: ["s"], about: "tell the marked agent something, which it reads before its next turn" },
  cancel: { keys: ["c"], about: "cancel the run, or the marked agent" },
  fold: { keys: ["f"], about: "fold the agents that have ended, or show them again" },
  money: { keys: ["m"], about: "money by agent and model" },
  filter: { keys: ["/"], about: "show the runs with these words" },
  help: { keys: ["?", "shift+?"], about: "explain keys and signs" },
  back: { keys: ["escape", "backspace"], about: "back to the agents, then to all runs" },
  suspend: { keys: ["ctrl+z"], about: "suspend; fg continues" },
  leave: { keys: ["q", "ctrl+c", "ctrl+d"], about: "leave; the runs continue" },
} as const satisfies Readonly<Record<string, { readonly keys: readonly string[]; readonly about: string }>>;

export type WatchKey = keyof typeof watchKeys;

/** Returns the action of a key, or `undefined` if the key has no action. */
export function watchKeyOf(matches: (key: string) => boolean): WatchKey | undefined {
  for (const [action, { keys }] of Object.entries(watchKeys))
    if (keys.some(matches)) return action as WatchKey;
  return undefined;
}

/** The keys below all runs. */
export const storeKeys = [
  ["Enter", "open"],
  ["/", "filter"],
  ["a", "answer"],
  ["u", "top up"],
  ["p", "pause"],
  ["s", "steer"],
  ["c", "cancel"],
  ["Tab", "inbox"],
  ["?", "help"],
  ["q", "leave"],
] as const;

/** The keys below a run. */
export function runKeys({ status, endedAt }: Run): BoardFoot["keys"] {
  return [
    ["a", "answer"],
    ["u", "top up"],
    ["p", status === "paused" || endedAt !== null ? "resume" : "pause"],
    ["s", "steer"],
    ["c", "cancel"],
    ["Enter", "read"],
    ["Esc", "runs"],
    ["i", "agent"],
    ["f", "fold"],
    ["m", "money"],
    ["Tab", "inbox"],
    ["?", "help"],
    ["q", "leave"],
  ];
}

/** The explanation of all keys and signs. */
export function helpLines({ theme, measure, columns }: BoardPlace): readonly string[] {
  const lines = Object.values(watchKeys).map(
    ({ keys, about }) => `${theme.paint("strong", keys.slice(0, 2).join(", ").padEnd(18))} ${about}`,
  );
  const signs = measure.wrap(chartSigns, columns);
  return [...lines, "", ...signs, "", theme.paint("dim", "Any key closes this.")].map((line) =>
    measure.cut(line, columns),
  );
}
