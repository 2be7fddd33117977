import { Fault, withoutSecrets } from "../../../../kernel/index.ts";
import { shellWord } from "../../terminal/format.ts";

/**
 * The severity of a finding. `note`: an optional part is missing. `warning`: something works with limits, or will
 * fail later. `error`: commands fail now.
 */
export type FindingState = Found["state"];

/** The result of a check. A problem names the command that fixes it, or a command that shows what must be changed. */
export type Found =
  | { readonly state: "ok" | "note"; readonly text: string; readonly fix?: string }
  | { readonly state: "warning" | "error"; readonly text: string; readonly fix: string };

/** A finding of `reeve doctor` with its area, such as `store`. */
export type Finding = Found & { readonly area: string };

/**
 * Runs the checks of one area and returns their findings. An error of a check becomes a finding as well, so that it
 * does not hide the others. `fixOf` returns the command that fixes such an error.
 */
export async function findingsOf(
  area: string,
  check: () => Promise<readonly Found[]>,
  fixOf: (fault: Fault) => string = () => "reeve doctor --json",
): Promise<readonly Finding[]> {
  try {
    return (await check()).map((finding) => ({ area, ...finding }));
  } catch (error) {
    const fault = Fault.from(error);
    return [{ area, state: "error", text: sentence(withoutSecrets(fault.message)), fix: fixOf(fault) }];
  }
}

/** Returns the command that opens a file in the editor of the person. */
export function editing(path: string): string {
  return `"\${EDITOR:-vi}" ${shellWord(path)}`;
}

/** A text of an error as a sentence. */
export function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/u.test(first) ? first : `${first}.`;
}
