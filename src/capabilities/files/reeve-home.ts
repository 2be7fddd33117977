import { homedir } from "node:os";
import { join } from "node:path";

/** The folder of the user in which Reeve keeps what outlives a project: `REEVE_HOME`, else `~/.reeve`. */
export function reeveHome(): string {
  const home = process.env["REEVE_HOME"];
  return home === undefined || home === "" ? join(homedir(), ".reeve") : home;
}
