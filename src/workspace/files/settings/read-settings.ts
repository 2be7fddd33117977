import { Fault } from "../../../kernel/index.ts";
import { readNamedFile, type ReadOptions } from "../text/bounded-file.ts";
import type { Notices } from "../notices.ts";
import { checkFields } from "./check-fields.ts";
import { settingsFields, type Settings } from "./settings-fields.ts";

const maxSettingsBytes = 256 * 1024;

/**
 * Reads a `settings.json`. If the file does not exist, there are no settings. An unknown key is ignored with a
 * warning that suggests the nearest known key. Throws `invalid_argument`, which names file and key, for a value of
 * the wrong type.
 */
export async function readSettings(
  path: string,
  notices: Notices,
  options: Pick<ReadOptions, "within"> = {},
): Promise<Settings> {
  // Settings may contain limits, so a file that cannot be read is not the same as an absent one.
  const file = await readNamedFile("settings", path, { maxBytes: maxSettingsBytes, ...options });
  if (file === undefined) return {};
  if (file.isCut)
    throw new Fault(
      "invalid_argument",
      `invalid settings ${path}: the file is longer than ${maxSettingsBytes} bytes`,
    );
  return checkSettings(parsed(file.text, path), path, notices);
}

function parsed(text: string, path: string): unknown {
  try {
    return text.trim() === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw new Fault("invalid_argument", `invalid settings ${path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Returns the known settings of a value. `path` names the source in errors and warnings. */
export function checkSettings(value: unknown, path: string, notices: Notices): Settings {
  return checkFields(value, settingsFields, { path, notices, kind: "settings" });
}
