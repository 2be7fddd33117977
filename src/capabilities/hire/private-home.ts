import { createHash } from "node:crypto";
import { lstat, mkdir, realpath, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { RunFacts, SessionId } from "../../kernel/index.ts";
import { absent } from "../files/error-code.ts";
import { reeveHome } from "../files/reeve-home.ts";

/**
 * Creates the home folder of a hired agent in one conversation, or finds it again. Agents keep their sessions there, so that a
 * later run of the conversation needs the same one. Tenants, users and conversations never share one: what an agent writes
 * into its own settings reaches no other.
 */
export async function privateHome(
  agent: string,
  sessionId: SessionId,
  { tenantId, userId }: Pick<RunFacts, "tenantId" | "userId">,
): Promise<string> {
  const owner = createHash("sha256")
    .update(JSON.stringify([tenantId, userId, sessionId]))
    .digest("hex");
  const name = agent.replaceAll(/[^A-Za-z0-9_-]+/gu, "-");
  const folder = join(reeveHome(), "homes", `${name}-${owner.slice(0, 32)}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return realpath(folder);
}

/**
 * Writes the files of a preset into a private home. Links that the agent has put in their places are replaced, so that nothing
 * outside of the home is written.
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
