/** What a key of the chat does. The keys of the composer itself are those of its editor. */
export const keyActions = {
  stop: { keys: ["escape"], about: "stop the run; what waited in the queue returns to the composer" },
  queue: { keys: ["alt+enter"], about: "send when the agent would otherwise end" },
  takeBack: { keys: ["alt+up"], about: "take back what waits in the queue" },
  open: { keys: ["ctrl+o"], about: "open or close calls and reasoning" },
  clear: { keys: ["ctrl+c"], about: "clear the composer; twice on an empty one leaves" },
  leave: { keys: ["ctrl+d"], about: "leave, on an empty composer" },
  suspend: { keys: ["ctrl+z"], about: "suspend; fg continues" },
} as const satisfies Readonly<Record<string, { readonly keys: readonly string[]; readonly about: string }>>;

export type KeyAction = keyof typeof keyActions;

/** The keys that the composer handles, for help. */
export const composerKeys: readonly (readonly [string, string])[] = [
  ["enter", "send; while the agent works, it reads the text before its next turn"],
  ["shift+enter, ctrl+j", "a new line; a \\ at the end of a line does the same"],
  ["up, down", "earlier texts"],
  ["tab, @, /", "complete a file or a command"],
];

/** The action of a key. `undefined` if it has none. */
export function actionOf(matches: (key: string) => boolean): KeyAction | undefined {
  for (const [action, { keys }] of Object.entries(keyActions))
    if (keys.some(matches)) return action as KeyAction;
  return undefined;
}
