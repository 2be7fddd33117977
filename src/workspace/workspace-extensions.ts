import { packageVersion } from "../assembly/package-root.ts";
import { Fault, type Extension } from "../kernel/index.ts";
import {
  installedPackage,
  loadModule,
  readSkills,
  shareReeve,
  type FileSkill,
  type InstalledPackage,
  type LoadedWorkspace,
  type Notices,
  type SourceFile,
} from "./files/index.ts";

/** How extensions and packages are loaded. */
export interface ExtensionLoadOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly importTimeoutMs: number;
  /** Whether packages may be installed. */
  readonly canInstall: boolean;
  /** Whether the packages of the project must be the ones that the user trusted. */
  readonly isChecked: boolean;
}

/** The parts that packages and files add to all agents of a workspace. */
export interface LoadedExtensions {
  readonly extensions: readonly Extension[];
  /** Skills of packages. */
  readonly skills: readonly FileSkill[];
}

/**
 * Loads the extensions of files and packages. If an extension cannot be loaded or a package cannot be installed, it
 * is left out with a notice. If several extensions have the same name, the last one is used. Throws
 * `permission_denied` if the user has not trusted the current code of one.
 */
export async function loadExtensions(
  loaded: LoadedWorkspace,
  options: ExtensionLoadOptions,
  notices: Notices,
): Promise<LoadedExtensions> {
  const packages = await loadPackages(loaded, options, notices);
  const files = [
    ...packages.flatMap(({ folder, extensions }) =>
      extensions.map((path): SourceFile => ({ name: path, path, origin: "home", root: folder })),
    ),
    ...loaded.extensions,
  ];
  const found = new Map<string, Extension>();
  for (const file of files) {
    try {
      const extension = await loadExtension(file, options.importTimeoutMs);
      found.set(extension.name, extension);
    } catch (error) {
      refuseChanged(file.path, error);
      notices.add("warning", file.path, `the extension is not used: ${Fault.from(error).message}`);
    }
  }
  const sources = packages.flatMap(({ skills, folder }) =>
    skills.map((each) => ({ folder: each, origin: "package", isTrusted: true, within: folder })),
  );
  return { extensions: [...found.values()], skills: await readSkills(sources, notices) };
}

/**
 * Throws for an extension whose code has changed, so that the workspace does not open without it: an extension can
 * limit agents.
 */
function refuseChanged(what: string, error: unknown): void {
  const { code, message } = Fault.from(error);
  if (code !== "permission_denied") return;
  throw new Fault(
    "permission_denied",
    `the extension ${what} can limit the agents of this project, and its code is not what you trusted: ${message}; look at the change, then run reeve trust`,
  );
}

async function loadExtension(file: SourceFile, timeoutMs: number): Promise<Extension> {
  const { default: exported } = await loadModule(file, timeoutMs);
  if (typeof exported === "function") return { name: file.name, setup: exported as Extension["setup"] };
  const extension = exported as Partial<Extension> | null | undefined;
  if (typeof extension?.name === "string" && typeof extension.setup === "function")
    return extension as Extension;
  throw new Fault(
    "invalid_argument",
    "export an extension as default: export default { name, setup(api) { ... } }, or a function of api",
  );
}

async function loadPackages(
  { packages, places, decision }: LoadedWorkspace,
  { env, canInstall, isChecked }: ExtensionLoadOptions,
  notices: Notices,
): Promise<readonly InstalledPackage[]> {
  if (packages.length === 0) return [];
  const { home } = places;
  const reeveVersion = packageVersion();
  const found: InstalledPackage[] = [];
  for (const { written, origin } of packages) {
    try {
      const installed = await installedPackage(written, { home, env, canInstall, reeveVersion });
      if (origin === "project" && isChecked && decision?.packages?.[written] !== installed.identity)
        throw new Fault("permission_denied", "the package is not the one that you trusted");
      shareReeve(installed.tree);
      found.push(installed);
    } catch (error) {
      refuseChanged(written, error);
      notices.add("skipped", written, `the package is not used: ${Fault.from(error).message}`);
    }
  }
  return found;
}

/** Installs the packages of a project and returns their identities, for a decision of trust. */
export async function packageIdentities(
  written: readonly string[],
  home: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Readonly<Record<string, string>>> {
  const options = { home, env, canInstall: true, reeveVersion: packageVersion() };
  const identities: [string, string][] = [];
  for (const each of written) identities.push([each, (await installedPackage(each, options)).identity]);
  return Object.fromEntries(identities);
}
