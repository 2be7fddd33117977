import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Fault, type JsonObject } from "../../kernel/index.ts";
import { isFolder, readNamedFile } from "./text/bounded-file.ts";
import type { LockedPackage } from "./trust/import-scan.ts";

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
  /** Name, version and integrity, or the commit of a package from git, with a hash of those of its dependencies. */
  readonly identity: string;
  /** Absolute paths of its extensions. */
  readonly extensions: readonly string[];
  /** Absolute paths of its folders with skills. */
  readonly skills: readonly string[];
}

const npmForm = /^npm:((?:@[\w.-]+\/)?[\w.-]+)@(\d+\.\d+\.\d+[\w.+-]*)$/u;
const gitForm = /^git:([^#\s]+)#([0-9a-f]{40})$/u;

/**
 * Reads the name of a package. Throws `invalid_argument` unless it names exactly one version or commit, because trust
 * would otherwise cover code that does not exist yet.
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
      const place = createHash("sha256").update(address).digest("hex").slice(0, 12);
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
  /** Whether a missing package may be installed. Otherwise it is a fault. */
  readonly canInstall: boolean;
}

/**
 * Returns a package and installs it if it is missing. npm runs no scripts of the package. The folder appears only when
 * the installation is complete, so an interrupted one is repeated.
 */
export async function installedPackage(
  written: string,
  { home, env, canInstall }: PackageOptions,
): Promise<InstalledPackage> {
  const spec = parsePackage(written);
  const target = join(home, "packages", spec.folder);
  if (!(await isFolder(target))) {
    if (!canInstall)
      throw new Fault("not_found", `package ${written} is not installed, and nothing may be written`);
    await install(spec, target, env);
  }
  return describePackage(written, target);
}

async function install(
  { written, forNpm }: PackageSpec,
  target: string,
  env: PackageOptions["env"],
): Promise<void> {
  const temporary = `${target}.${randomUUID()}.tmp`;
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  try {
    const fixed = ["--ignore-scripts", "--save-exact", "--no-audit", "--no-fund", "--omit=dev"];
    await run("npm", ["install", ...fixed, "--prefix", temporary, "--", forNpm], {
      cwd: temporary,
      env,
      written,
    });
    await rename(temporary, target).catch(async (error: NodeJS.ErrnoException) => {
      // Another process has installed the same version meanwhile.
      if (!(await isFolder(target))) throw error;
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Time in which npm must install a package, in milliseconds. */
const installMs = 300_000;

function run(
  program: string,
  args: readonly string[],
  {
    cwd,
    env,
    written,
  }: { readonly cwd: string; readonly env: PackageOptions["env"]; readonly written: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile(program, [...args], { cwd, env: { ...env }, timeout: installMs }, (error, _stdout, stderr) => {
      if (error === null) return resolve();
      const reason = stderr.trim().split("\n").slice(-3).join(" ") || error.message;
      const code = error.code === "ENOENT" ? "dependency_missing" : "unsupported";
      reject(new Fault(code, `package ${written} could not be installed: ${reason}`, { cause: error }));
    });
  });
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
    identity: [name, version, integrity ?? resolved, dependencyHash(packages)].join(" "),
    extensions: pathsIn(entries, folder, written),
    skills: pathsIn(own?.["skills"] ?? [], folder, written),
  };
}

function dependencyHash(packages: Readonly<Record<string, LockedPackage>>): string {
  const lines = Object.entries(packages).map(([path, { version, integrity, resolved }]) =>
    path === "" ? "" : JSON.stringify([path, version, integrity ?? resolved]),
  );
  return createHash("sha256").update(lines.toSorted().join("\n")).digest("hex");
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
