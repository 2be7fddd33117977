import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Notices } from "./notices.ts";
import type { Places } from "./places.ts";

/**
 * Creates the folder for scratch files of the active profile and returns it. `undefined` without a profile, with an
 * ephemeral one, which writes nothing, and if the folder cannot be created, which is a notice.
 */
export async function tempFolder({ profile }: Places, notices: Notices): Promise<string | undefined> {
  if (profile === undefined || profile.ephemeral) return undefined;
  const folder = join(profile.folder, "temp");
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return folder;
  } catch (error) {
    notices.add("warning", folder, `the temp folder cannot be created: ${(error as Error).message}`);
    return undefined;
  }
}
