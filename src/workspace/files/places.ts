import { realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Fault } from "../../kernel/index.ts";
import { entryOf, isFolder, isRegularFile } from "./text/bounded-file.ts";

/** The folders of a workspace, from the most general to the most specific. */
export interface Places {
  /** Folder of the user: `~/.reeve`. */
  readonly home: string;
  /** Active profile, or `undefined` if none is active. */
  readonly profile?: Profile;
  /** Root of the project, with links followed. */
  readonly project: string;
  /** Folder `.reeve` of the project. `undefined` if it is the same as the folder of the user. */
  readonly projectFolder?: string;
  /** Folder from which the instructions of the project are read: the root of its repository, or `project`. */
  readonly instructionsRoot: string;
  /** Working folder, with links followed. */
  readonly cwd: string;
}

/** A profile, which is a persona with its own memory, skills and settings. */
export interface Profile {
  readonly name: string;
  /** Folder of the profile: `~/.reeve/profiles/NAME`. */
  readonly folder: string;
  /** Whether the profile exists only for this process. Its folder is never created, and nothing is written to it. */
  readonly ephemeral: boolean;
}

/** How the places are found. */
export interface PlacesOptions {
  readonly cwd: string;
  readonly home: string;
  /**
   * Name of the profile. If its folder does not exist, `ephemeral` must be set, and the profile exists only for
   * this process.
   */
  readonly profile?: string;
  /** Whether Reeve must not write to the profile. Default: `false`. */
  readonly ephemeral?: boolean;
}

/** Finds the folders of a workspace. Throws `not_found` if the working folder or the profile does not exist. */
export async function findPlaces({ cwd, home, profile, ephemeral = false }: PlacesOptions): Promise<Places> {
  const working = await realFolder(cwd);
  const homeFolder = await realpath(home).catch(() => resolve(home));
  const { project, repository } = await findProject(working, homeFolder);
  const projectFolder = join(project, ".reeve");
  const isHome = await isSameFolder(projectFolder, homeFolder);
  const chosen = profile === undefined ? undefined : await findProfile(homeFolder, profile, ephemeral);
  return {
    home: homeFolder,
    project,
    cwd: working,
    instructionsRoot: repository ?? project,
    ...(chosen !== undefined && { profile: chosen }),
    ...(!isHome && { projectFolder }),
  };
}

async function realFolder(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (cause) {
    throw new Fault("not_found", `the working folder ${path} does not exist`, { cause });
  }
}

async function findProfile(home: string, name: string, ephemeral: boolean): Promise<Profile> {
  const folder = entryOf(join(home, "profiles"), name, "profile name");
  if (ephemeral || (await isFolder(folder))) return { name, folder, ephemeral };
  throw new Fault("not_found", `profile ${name} does not exist; create the folder ${folder}`);
}

/**
 * Finds the root of the project: the nearest folder with `.reeve` or `reeve.config.ts` at or above the working folder,
 * else the root of the repository, else the working folder. The search ends at the root of the repository, at the
 * user's home folder and at a folder of another owner, so that the files of other users have no effect.
 */
async function findProject(
  cwd: string,
  home: string,
): Promise<{ readonly project: string; readonly repository?: string }> {
  const owner = (await stat(cwd)).uid;
  let project: string | undefined;
  let folder = cwd;
  for (;;) {
    if (project === undefined && (await isProject(folder, home))) project = folder;
    if ((await isFolder(join(folder, ".git"))) || (await isRegularFile(join(folder, ".git"))))
      return { project: project ?? folder, repository: folder };
    const parent = dirname(folder);
    const isAboveHome = folder === dirname(home) || (await isSameFolder(join(folder, ".reeve"), home));
    if (parent === folder || isAboveHome || (await stat(parent)).uid !== owner)
      return { project: project ?? cwd };
    folder = parent;
  }
}

async function isProject(folder: string, home: string): Promise<boolean> {
  const own = join(folder, ".reeve");
  const isOwn = (await isFolder(own)) && !(await isSameFolder(own, home));
  return isOwn || (await isRegularFile(join(folder, "reeve.config.ts")));
}

/**
 * Whether a path leads to the folder, directly or through a link. The user's folder may be a link to a folder with
 * dotfiles.
 */
async function isSameFolder(path: string, folder: string): Promise<boolean> {
  return (await realpath(path).catch(() => path)) === folder;
}
