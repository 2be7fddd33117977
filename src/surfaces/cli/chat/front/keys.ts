import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { reeveHome } from "../../../../capabilities/files/reeve-home.ts";
import { Fault, nearestName } from "../../../../kernel/index.ts";

/** The actions of the chat with their default keys. The editor of the composer defines its own keys. */
const actions = {
  stop: { keys: ["escape"], about: "stop the run; what waited in the queue returns to the composer" },
  queue: { keys: ["alt+enter"], about: "send when the agent would otherwise end" },
  takeBack: { keys: ["alt+up"], about: "take back what waits in the queue" },
  editQueue: { keys: ["alt+e"], about: "edit or withdraw one text of the queue" },
  open: { keys: ["ctrl+o"], about: "open or close calls and reasoning" },
  previousCall: { keys: ["ctrl+up"], about: "mark the call before" },
  nextCall: { keys: ["ctrl+down"], about: "mark the call after; after the last one, none" },
  openCall: { keys: ["alt+o"], about: "open or close the marked call only" },
  chart: { keys: ["ctrl+t"], about: "show the agents of the run" },
  pasteImage: { keys: ["ctrl+v"], about: "insert the image of the clipboard" },
  search: { keys: ["ctrl+r"], about: "search in earlier texts" },
  editor: { keys: ["ctrl+g"], about: "write in $VISUAL or $EDITOR" },
  clear: { keys: ["ctrl+c"], about: "clear the composer; twice on an empty one leaves" },
  leave: { keys: ["ctrl+d"], about: "leave, on an empty composer" },
  suspend: { keys: ["ctrl+z"], about: "suspend; fg continues" },
} as const satisfies Readonly<Record<string, { readonly keys: readonly string[]; readonly about: string }>>;

export type KeyAction = keyof typeof actions;

/** The keys of each action. */
export type KeyMap = Readonly<Record<KeyAction, readonly string[]>>;

const names = Object.keys(actions) as readonly KeyAction[];

export const usualKeys: KeyMap = Object.fromEntries(
  names.map((name) => [name, actions[name].keys]),
) as unknown as KeyMap;

/** The keys that the composer handles. */
const composerKeys: readonly (readonly [string, string])[] = [
  ["enter", "send; while the agent works, it reads the text before its next turn"],
  ["shift+enter, ctrl+j", "a new line; \\ before Enter does the same"],
  ["up, down", "earlier texts"],
  ["tab, @, /", "complete a file or a command"],
];

/** Keys with what they do, for help. */
export function keyRows(keys: KeyMap): readonly (readonly [string, string])[] {
  return [
    ...composerKeys,
    ...names.map((name) => [keys[name].join(", "), `${actions[name].about} (${name})`] as const),
  ];
}

/** Returns the action of a key, or `undefined` if the key has no action. */
export function actionOf(keys: KeyMap, matches: (key: string) => boolean): KeyAction | undefined {
  return names.find((name) => keys[name].some(matches));
}

/** A key with its modifiers, such as `ctrl+shift+k`. */
const keyName =
  /^(?:(?:ctrl|shift|alt|super)\+)*(?:[a-z0-9]|[^\sa-z0-9]|escape|enter|tab|space|backspace|delete|insert|home|end|pageUp|pageDown|up|down|left|right|f\d{1,2})$/u;

/**
 * Reads the file `keybindings.json` of the user, as in `{ "queue": "ctrl+q", "open": ["ctrl+o", "f2"] }`. If the
 * file does not exist, the default keys are used.
 */
export async function readKeys(): Promise<KeyMap> {
  const path = join(reeveHome(), "keybindings.json");
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return usualKeys;
    throw error;
  }
  return { ...usualKeys, ...ownKeys(text, path) };
}

function ownKeys(text: string, path: string): Partial<KeyMap> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Fault(
      "invalid_argument",
      `invalid ${path}: expected JSON such as { "queue": "ctrl+q" }, and this is not JSON: ${(error as Error).message}; correct or delete the file`,
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Fault("invalid_argument", `invalid ${path}: expected an object such as { "queue": "ctrl+q" }`);
  const own: Partial<Record<KeyAction, readonly string[]>> = {};
  for (const [name, given] of Object.entries(value)) {
    const known = names.find((each) => each === name);
    if (known === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid ${path}: ${name} is no action; use ${nearestName(name, names) ?? `one of ${names.join(", ")}`}`,
      );
    const keys: readonly unknown[] = Array.isArray(given) ? given : [given];
    const wrong = keys.find((key) => typeof key !== "string" || !keyName.test(key));
    if (wrong !== undefined)
      throw new Fault(
        "invalid_argument",
        `invalid ${path}: ${JSON.stringify(wrong)} of ${name} is no key such as ctrl+o, alt+enter or f2`,
      );
    own[known] = keys as readonly string[];
  }
  return own;
}
