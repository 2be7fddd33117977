import { join } from "node:path";
import type { Notices } from "./notices.ts";
import type { Places } from "./places.ts";
import { makeFolder } from "./text/make-folder.ts";

/**
 * Creates the folder for scratch files of the active profile and returns it. `undefined` if no profile is active,
 * if the profile is ephemeral and therefore writes nothing, or if the folder cannot be created, which gives a
 * notice.
 */
export async function tempFolder({ profile }: Places, notices: Notices): Promise<string | undefined> {
  if (profile === undefined || profile.ephemeral) return undefined;
  const folder = join(profile.folder, "temp");
  try {
    await makeFolder(folder, 0o700);
    return folder;
  } catch (error) {
    notices.add("warning", folder, `the temp folder cannot be created: ${(error as Error).message}`);
    return undefined;
  }
}
