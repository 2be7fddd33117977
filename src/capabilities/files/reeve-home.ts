import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Returns the folder of the user in which Reeve stores what does not belong to a single project: `REEVE_HOME`, else
 * `~/.reeve`.
 */
export function reeveHome(): string {
  const home = process.env["REEVE_HOME"];
  return home === undefined || home === "" ? join(homedir(), ".reeve") : home;
}
