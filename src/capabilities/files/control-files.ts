import { dirname, resolve } from "node:path";

/**
 * Control files: files that other programs of the user read as commands or settings, such as git hooks, editor
 * tasks, shell start-up files and settings of package managers that choose programs. Files that a project runs
 * openly, such as `package.json` and `Makefile`, are not control files. Files that only choose among the user's own
 * commands, such as `.gitattributes`, are not either. A tool that could write them would run code outside its
 * workspace later. File tools refuse to write them, and the sandbox mounts the existing ones read-only.
 */

/** Names that are control files or folders in every folder. All are in lower case. */
const anywhere: ReadonlySet<string> = new Set([
  ".reeve",
  // Skills, whose scripts a trusted skill may approve in advance.
  ".agents",
  // Editors and development environments.
  ".vscode",
  ".idea",
  ".zed",
  ".fleet",
  ".devcontainer",
  ".devcontainer.json",
  ".claude",
  ".cursor",
  ".mcp.json",
  ".gemini",
  ".codex",
  ".windsurf",
  ".aider.conf.yml",
  ".helix",
  ".exrc",
  ".vimrc",
  ".nvimrc",
  ".nvim.lua",
  ".lazy.lua",
  ".emacs",
  ".dir-locals.el",
  ".gdbinit",
  ".lldbinit",
  // Settings and hooks of git outside its own folder.
  ".gitconfig",
  ".githooks",
  ".husky",
  ".pre-commit-config.yaml",
  ".pre-commit-config.yml",
  ".lefthook",
  ".lefthook.yml",
  ".lefthook.yaml",
  "lefthook.yml",
  "lefthook.yaml",
  ".overcommit.yml",
  ".hgrc",
  // Settings of package managers and build tools that choose programs, or code that they load.
  ".npmrc",
  ".yarnrc",
  ".yarnrc.yml",
  ".pnpmfile.cjs",
  ".pnpmfile.mjs",
  "pnpmfile.js",
  "pnpm-workspace.yaml",
  ".pnp.cjs",
  ".pnp.loader.mjs",
  "bunfig.toml",
  ".bunfig.toml",
  ".corepack.env",
  "pip.conf",
  "pip.ini",
  ".pip",
  ".pydistutils.cfg",
  ".pypirc",
  ".bundle",
  ".gemrc",
  ".mvn",
  ".jvmopts",
  ".sbtopts",
  ".bazelrc",
  "gradle-wrapper.properties",
  "nuget.config",
  ".terraformrc",
  ".mise",
  ".mise.toml",
  ".mise.local.toml",
  "mise.toml",
  "mise.local.toml",
  // Start-up files of interpreters, which some of them read from the working folder.
  ".pdbrc",
  ".pythonrc",
  ".pythonrc.py",
  ".ipython",
  ".irbrc",
  ".pryrc",
  ".iex.exs",
  ".erlang",
  ".ghci",
  ".ocamlinit",
  ".octaverc",
  ".rprofile",
  ".renviron",
  ".psqlrc",
  ".sqliterc",
  // Start-up files of shells and sessions.
  ".envrc",
  ".direnvrc",
  ".bashrc",
  ".bash_profile",
  ".bash_login",
  ".bash_logout",
  ".bash_aliases",
  ".profile",
  ".zshrc",
  ".zshenv",
  ".zprofile",
  ".zlogin",
  ".zlogout",
  ".kshrc",
  ".cshrc",
  ".tcshrc",
  ".login",
  ".inputrc",
  ".xprofile",
  ".xinitrc",
  ".xsessionrc",
  ".pam_environment",
  ".screenrc",
  ".tmux.conf",
  ".curlrc",
  ".wgetrc",
  ".netrc",
  ".gnupg",
  ".ssh",
]);

/** Names that are control files or folders in a folder of a certain name. All are in lower case. */
const inFolder: Readonly<Record<string, ReadonlySet<string>>> = {
  ".config": new Set([
    "fish",
    "git",
    "direnv",
    "mise",
    "mise.toml",
    "pip",
    "nvim",
    "helix",
    "zed",
    "systemd",
    "autostart",
    "environment.d",
  ]),
  ".cargo": new Set(["config", "config.toml", "env"]),
  ".yarn": new Set(["releases", "plugins"]),
  ".hg": new Set(["hgrc"]),
};

/**
 * Entries of a git folder that choose programs or another git folder. `commondir` and `gitdir` are included because
 * they redirect git to other settings.
 */
export const gitControls = ["config", "config.worktree", "hooks", "commondir", "gitdir"] as const;

/** Entries by which git recognises a folder as a repository, whatever the folder's name is. */
const gitParts = ["HEAD", "objects", "refs"] as const;

/** Code points that some file systems ignore in names, so that `.g<U+200C>it` opens `.git`. */
const ignoredInNames = /\p{Default_Ignorable_Code_Point}/gu;

/**
 * Returns the name that some supported file system would open for `name`: in lower case, without ignored code points,
 * trailing dots and spaces, and stream suffixes, and with the short name of `.git` replaced.
 */
export function plainName(name: string): string {
  // Nearly all names need no conversion, and searches of large folders ask for every name.
  if (/^[\w.-]*[\w-]$/u.test(name)) return name.toLowerCase();
  const plain = name
    .normalize("NFKC")
    .replaceAll(ignoredInNames, "")
    .replace(/:.*$/su, "")
    .replace(/[. ]+$/u, "")
    .toLowerCase();
  return /^git~\d+$/u.test(plain) ? ".git" : plain;
}

/** Whether the name is a control file or folder in every folder. `parent` is the name of the folder that contains it. */
export function isControlName(name: string, parent: string): boolean {
  const plain = plainName(name);
  if (anywhere.has(plain) || plain.endsWith(".code-workspace")) return true;
  const folder = plainName(parent);
  return Object.hasOwn(inFolder, folder) && inFolder[folder]?.has(plain) === true;
}

/** Whether a folder with these entries is a git folder: a repository, a bare repository or the folder of a worktree. */
export function isGitFolder(has: (name: string) => boolean): boolean {
  return has("HEAD") && ((has("objects") && has("refs")) || has("commondir"));
}

/** A name that a file tool is about to write or create. */
export interface NewEntry {
  /** Names of the folders between the root and the entry. */
  readonly parents: readonly string[];
  readonly name: string;
  /** Whether the entry is the file itself and not a folder on the way to it. */
  readonly isFile: boolean;
  /** Whether the folder that contains the entry has an entry of another name. */
  readonly has: (name: string) => Promise<boolean>;
}

/** Whether writing or creating the entry would create or change a control file. */
export async function isControlEntry({ parents, name, isFile, has }: NewEntry): Promise<boolean> {
  const plain = plainName(name);
  if (isControlName(name, parents.at(-1) ?? "")) return true;
  // A file named .git redirects git to another folder.
  if (plain === ".git") return isFile;
  const known = [...gitParts, "commondir"];
  if ((gitControls as readonly string[]).includes(plain)) {
    if (isInGit(parents.map(plainName))) return true;
    const found = new Set<string>();
    for (const each of known) if (await has(each)) found.add(each);
    return isGitFolder((each) => found.has(each));
  }
  return completesGit(name, has);
}

/** Whether the folder is `.git`, or the git folder of a submodule or worktree inside `.git`. */
function isInGit(parents: readonly string[]): boolean {
  const at = parents.lastIndexOf(".git");
  if (at === -1) return false;
  const below = parents[at + 1];
  return below === undefined || below === "modules" || below === "worktrees";
}

/**
 * Whether the entry does not exist yet and would turn its folder, which may contain `config` and `hooks`, into a
 * git folder.
 */
async function completesGit(name: string, has: NewEntry["has"]): Promise<boolean> {
  if (!(gitParts as readonly string[]).includes(name) || (await has(name))) return false;
  for (const other of gitParts) if (other !== name && !(await has(other))) return false;
  return true;
}

/** Returns the absolute paths to which a git configuration refers: files that it includes, and its folder of hooks. */
export function configTargets(text: string, gitFolder: string): readonly string[] {
  return [...text.matchAll(/^\s*(hookspath|path)\s*=\s*"?([^"\r\n]+?)"?\s*$/gimu)].flatMap(
    ([, key = "", value = ""]) => {
      if (value.startsWith("~")) return [];
      const ofFolder = resolve(gitFolder, value);
      // Hooks are relative to the working tree, or to the folder itself in a bare repository.
      return key.toLowerCase() === "path" ? [ofFolder] : [resolve(dirname(gitFolder), value), ofFolder];
    },
  );
}
