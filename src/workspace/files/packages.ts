import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { contentHash } from "./trust/coverage.ts";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault, type JsonObject } from "../../kernel/index.ts";
import { isFolder, readNamedFile } from "./text/bounded-file.ts";
import { makeFolder } from "./text/make-folder.ts";

/** A package in a lock file of npm, by the path of its folder relative to that file. */
interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** A package with extensions and skills, at exactly one version. */
interface PackageSpec {
  /** The package as settings name it. */
  readonly written: string;
  /** The package as npm names it. */
  readonly forNpm: string;
  /** Name of its folder below `packages`. */
  readonly folder: string;
}

/** A package that is installed below `~/.reeve/packages`. */
export interface InstalledPackage {
  readonly written: string;
  /** Folder of the package itself. */
  readonly folder: string;
  /** Folder of the package and its dependencies. */
  readonly tree: string;
  /**
   * Identity of the installed content: name, version and integrity, or the commit of a package from git, with a
   * hash of the identities of its dependencies.
   */
  readonly identity: string;
  /** Absolute paths of its extensions. */
  readonly extensions: readonly string[];
  /** Absolute paths of its folders with skills. */
  readonly skills: readonly string[];
}

const npmForm = /^npm:((?:@[\w.-]+\/)?[\w.-]+)@(\d+\.\d+\.\d+[\w.+-]*)$/u;
const gitForm = /^git:([^#\s]+)#([0-9a-f]{40})$/u;

/**
 * Reads the name of a package. Throws `invalid_argument` if it does not name exactly one version or commit, because
 * the trust of the user would otherwise cover code that does not exist yet.
 */
function parsePackage(written: string): PackageSpec {
  const npm = npmForm.exec(written);
  if (npm !== null) {
    const [, name = "", version = ""] = npm;
    return { written, forNpm: `${name}@${version}`, folder: `${name.replace("/", "+")}@${version}` };
  }
  const git = gitForm.exec(written);
  if (git !== null) {
    const [, address = "", commit = ""] = git;
    if (/^[a-z+]+:\/\//u.test(address) && !address.startsWith("-")) {
      const place = contentHash(address).slice(0, 12);
      const url = address.startsWith("git") ? address : `git+${address}`;
      return { written, forNpm: `${url}#${commit}`, folder: `git-${place}@${commit}` };
    }
  }
  throw new Fault(
    "invalid_argument",
    `invalid package ${JSON.stringify(written)}: expected npm:NAME@VERSION with an exact version, or git:ADDRESS#COMMIT with all 40 digits of the commit`,
  );
}

/** How packages are installed. */
export interface PackageOptions {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether a missing package may be installed. If not, a missing package throws. */
  readonly canInstall: boolean;
  /** Version of Reeve, which a package may require as a peer dependency. */
  readonly reeveVersion: string;
}

/** Name of the placeholder package, and of its folder, that represents Reeve while npm installs a package. */
const reeve = "reeve";

/**
 * Returns a package and installs it if it is missing. npm runs no scripts of the package. The folder gets its name
 * only when the installation is complete, so that an interrupted installation is repeated.
 */
export async function installedPackage(
  written: string,
  { home, env, canInstall, reeveVersion }: PackageOptions,
): Promise<InstalledPackage> {
  const spec = parsePackage(written);
  const target = join(home, "packages", spec.folder);
  if (!(await isFolder(target))) {
    if (!canInstall)
      throw new Fault("not_found", `package ${written} is not installed, and nothing may be written`);
    await install(spec, target, { env, reeveVersion });
  }
  return describePackage(written, target);
}

async function install(
  { written, forNpm }: PackageSpec,
  target: string,
  { env, reeveVersion }: Pick<PackageOptions, "env" | "reeveVersion">,
): Promise<void> {
  const temporary = `${target}.${randomUUID()}.tmp`;
  await makeFolder(temporary, 0o700);
  try {
    await addPeer(temporary, reeveVersion);
    const fixed = ["--json", "--ignore-scripts", "--save-exact", "--no-audit", "--no-fund", "--omit=dev"];
    await npmInstall(["install", ...fixed, "--prefix", temporary, "--", forNpm], temporary, { env, written });
    // Modules of the package import the Reeve that loads them.
    for (const folder of [join("node_modules", reeve), reeve])
      await rm(join(temporary, folder), { recursive: true, force: true });
    await rename(temporary, target).catch(async (error: NodeJS.ErrnoException) => {
      // Another process has installed the same version meanwhile.
      if (!(await isFolder(target))) throw error;
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * Adds an empty package with the name and the version of this Reeve. npm finds it as the peer dependency of a
 * package, compares the version, and does not look for Reeve in the registry.
 */
async function addPeer(folder: string, version: string): Promise<void> {
  await mkdir(join(folder, reeve));
  await writeFile(join(folder, reeve, "package.json"), JSON.stringify({ name: reeve, version }));
  const devDependencies = { [reeve]: `file:./${reeve}` };
  await writeFile(
    join(folder, "package.json"),
    JSON.stringify({ name: "packages", private: true, devDependencies }),
  );
}

/** Maximum time in which npm must install a package, in milliseconds. */
const installMs = 300_000;

function npmInstall(
  args: readonly string[],
  cwd: string,
  { env, written }: { readonly env: PackageOptions["env"]; readonly written: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile("npm", [...args], { cwd, env: { ...env }, timeout: installMs }, (error, stdout, stderr) => {
      if (error === null) return resolve();
      const reason =
        error.code === "ENOENT"
          ? "npm is not in PATH; install it"
          : error.killed === true
            ? `npm did not finish within ${installMs / 1_000} s`
            : (npmReason(stdout) ?? (stderr.trim().replaceAll(/\s+/gu, " ") || error.message));
      reject(
        new Fault("dependency_missing", `package ${written} could not be installed: ${reason}`, {
          cause: error,
        }),
      );
    });
  });
}

/** Returns the cause of a failed installation from the output of `npm --json`: its code, what happened, and details. */
function npmReason(stdout: string): string | undefined {
  // npm prints only the object, but a program that it starts may print before it.
  const [json = ""] = /\{[^]*\}/u.exec(stdout) ?? [];
  try {
    const { error } = JSON.parse(json) as {
      readonly error?: Partial<Record<"code" | "summary" | "detail", unknown>>;
    };
    const parts = [error?.code, error?.summary, error?.detail].map(text).filter((part) => part !== "");
    return parts.length === 0 ? undefined : parts.join(": ").replaceAll(/\s+/gu, " ");
  } catch {
    // The output is not that of npm. The caller quotes what npm wrote to stderr.
    return undefined;
  }
}

function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
}

async function describePackage(written: string, target: string): Promise<InstalledPackage> {
  const lock = await readJson(join(target, "package-lock.json"));
  const packages = (lock["packages"] ?? {}) as Readonly<Record<string, LockedPackage>>;
  const [name] = Object.keys(packages[""]?.dependencies ?? {});
  if (name === undefined)
    throw new Fault("invalid_argument", `package ${written} is damaged; delete ${target}`);
  const { version, integrity, resolved } = packages[`node_modules/${name}`] ?? {};
  const folder = join(target, "node_modules", name);
  const manifest = await readJson(join(folder, "package.json"));
  const own = manifest["reeve"] as JsonObject | undefined;
  const entries = own === undefined ? [manifest["main"] ?? "index.js"] : (own["extensions"] ?? []);
  return {
    written,
    folder,
    tree: target,
    identity: [name, version, integrity ?? resolved, dependencyHash(packages)].join(" "),
    extensions: pathsIn(entries, folder, written),
    skills: pathsIn(own?.["skills"] ?? [], folder, written),
  };
}

function dependencyHash(packages: Readonly<Record<string, LockedPackage>>): string {
  // Reeve as a peer is not part of the package: it is the Reeve that loads the package.
  const others = new Set(["", reeve, `node_modules/${reeve}`]);
  const lines = Object.entries(packages).flatMap(([path, { version, integrity, resolved }]) =>
    others.has(path) ? [] : [JSON.stringify([path, version, integrity ?? resolved])],
  );
  return contentHash(["", ...lines.toSorted()].join("\n"));
}

function pathsIn(value: unknown, folder: string, written: string): readonly string[] {
  if (
    Array.isArray(value) &&
    value.every((each) => typeof each === "string" && !each.split(/[/\\]/u).includes(".."))
  )
    return value.map((each: string) => join(folder, each));
  throw new Fault(
    "invalid_argument",
    `package ${written} has an invalid field "reeve": expected lists of paths inside the package`,
  );
}

async function readJson(path: string): Promise<JsonObject> {
  const file = await readNamedFile("package file", path, { maxBytes: 16 * 1024 * 1024 });
  if (file === undefined)
    throw new Fault(
      "invalid_argument",
      `${basename(path)} is missing in ${dirname(path)}; delete the folder to install it again`,
    );
  return JSON.parse(file.text) as JsonObject;
}
