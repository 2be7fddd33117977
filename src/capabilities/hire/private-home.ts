import { createHash } from "node:crypto";
import { lstat, mkdir, realpath, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault, type RunFacts, type SessionId } from "../../kernel/index.ts";
import { absent } from "../files/error-code.ts";
import { reeveHome } from "../files/reeve-home.ts";

/**
 * Creates the home folder with a name of `homeName`, or finds it again. Agents keep their sessions there, so that a
 * later run of the conversation needs the same folder. Tenants, users and conversations never share one, so that
 * what an agent writes into its settings affects no others.
 */
export async function privateHome(name: string): Promise<string> {
  const folder = folderOf(name);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return realpath(folder);
}

/** The name of the home folder of a hired agent in one conversation. */
export function homeName(
  agent: string,
  sessionId: SessionId,
  { tenantId, userId }: Pick<RunFacts, "tenantId" | "userId">,
): string {
  const owner = createHash("sha256")
    .update(JSON.stringify([tenantId, userId, sessionId]))
    .digest("hex");
  return `${agent.replaceAll(/[^A-Za-z0-9_-]+/gu, "-")}-${owner.slice(0, 32)}`;
}

/** Deletes a home folder with everything in it. Nothing happens if there is none. */
export async function removePrivateHome(name: string): Promise<void> {
  // The name comes from a store, and leads nowhere else.
  if (!/^[A-Za-z0-9_-]+$/u.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid name ${JSON.stringify(name)} of a home folder: expected letters, digits, - and _`,
    );
  await rm(folderOf(name), { recursive: true, force: true, maxRetries: 5 });
}

function folderOf(name: string): string {
  return join(reeveHome(), "homes", name);
}

/**
 * Writes the files of a preset into a private home. If the agent has replaced one of them by a link, the link is
 * replaced, so that nothing outside of the home is written.
 */
export async function writeHomeFiles(home: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const folder = join(home, dirname(path));
    if ((await lstat(folder).catch(absent))?.isDirectory() !== true) {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder, { mode: 0o700 });
    }
    const file = join(folder, basename(path));
    await rm(file, { recursive: true, force: true });
    await writeFile(file, text, { flag: "wx", mode: 0o600 });
  }
}
