// The package as a user has it after `npm install --omit=dev reeve`, made without a network from what `npm ci` installed.
import { execFile } from "node:child_process";
import { cp, lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Limits of what `npm install reeve` may bring along, Reeve itself not counted as a package but in the bytes. */
export const limits = { packages: 16, bytes: 15_000_000 };

/** Licences that a runtime package may have. */
export const allowedLicences: readonly string[] = [
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
];

interface LockedPackage {
  readonly version?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
  readonly peer?: boolean;
  readonly link?: boolean;
}

/** A component of the SBOM, as CycloneDX names its fields. */
interface Component {
  readonly name: string;
  readonly version: string;
  readonly licenses?: readonly {
    readonly license?: { readonly id?: string; readonly name?: string };
    readonly expression?: string;
  }[];
}

/** A software bill of materials in the format CycloneDX. */
export interface Sbom {
  readonly bomFormat: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
}

/** Returns the folders of the runtime packages, transitive ones included, from the lock file. */
export async function runtimeFolders(repository: string): Promise<readonly string[]> {
  const { packages } = JSON.parse(await readFile(join(repository, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  return Object.entries(packages)
    .filter(([path, { dev, devOptional, optional, peer, link }]) => {
      const isRuntime = !(dev ?? devOptional ?? optional ?? peer ?? link ?? false);
      return isRuntime && path.startsWith("node_modules/");
    })
    .map(([path]) => path);
}

/** Packs a clone with `npm pack` into a folder, which must not contain a packed file yet. Returns the path of the file. */
export async function packedFile(clone: string, folder: string): Promise<string> {
  await execute("npm", ["pack", "--pack-destination", folder], { cwd: clone, maxBuffer: 2 ** 26 });
  const name = (await readdir(folder)).find((file) => file.endsWith(".tgz"));
  if (name === undefined) throw new Error(`npm packed nothing in ${clone}`);
  return join(folder, name);
}

/** Unpacks a packed file into the folder `target`. */
export async function unpack(file: string, target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  await execute("tar", ["-xzf", file, "-C", target, "--strip-components=1"]);
}

/** Creates the installed tree in the folder `target`: the packed file, with the runtime packages in `node_modules`. */
export async function installTree(repository: string, target: string, file: string): Promise<void> {
  await unpack(file, target);
  for (const folder of await runtimeFolders(repository)) await copy(repository, target, folder);
  const manifest = JSON.parse(await readFile(join(target, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
  const { devDependencies: _dev, workspaces: _examples, scripts: _scripts, ...published } = manifest;
  await writeFile(join(target, "package.json"), JSON.stringify(published, null, 2));
}

/** Creates the SBOM of an installed tree with `npm sbom`. */
export async function sbomOf(tree: string): Promise<Sbom> {
  // The tree has no optional peers. `--omit peer` would also omit a runtime package that is a peer of another one.
  const args = ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--omit", "optional"];
  const { stdout } = await execute("npm", [...args, "--offline"], { cwd: tree, maxBuffer: 2 ** 26 });
  return JSON.parse(stdout) as Sbom;
}

/** Returns one line for each component: name, version and licence. */
export function licenceList({ components }: Sbom): readonly string[] {
  return components.map((each) => `${each.name} ${each.version}: ${licenceOf(each)}`).toSorted();
}

/** Returns what is wrong with an installed tree: a licence that is not allowed, too many packages, too many bytes. */
export function treeProblems(sbom: Sbom, bytes: number): readonly string[] {
  const { components } = sbom;
  const problems = components
    .filter((each) => !allowedLicences.includes(licenceOf(each)))
    .map(
      ({ name, version, ...rest }) =>
        `${name} ${version} has the licence ${licenceOf({ name, version, ...rest })}`,
    );
  if (components.length > limits.packages)
    problems.push(`${components.length} runtime packages are installed; the limit is ${limits.packages}`);
  if (bytes > limits.bytes) problems.push(`${bytes} bytes are installed; the limit is ${limits.bytes}`);
  return problems;
}

/** Returns the size of all files below a folder, in bytes. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory());
  const sizes = await Promise.all(files.map(({ parentPath, name }) => lstat(join(parentPath, name))));
  return sizes.reduce((sum, { size }) => sum + size, 0);
}

function licenceOf({ licenses = [] }: Component): string {
  const names = licenses.map(
    ({ license, expression }) => license?.id ?? license?.name ?? expression ?? "none",
  );
  return names.join(" AND ") || "none";
}

async function copy(from: string, to: string, path: string): Promise<void> {
  await mkdir(dirname(join(to, path)), { recursive: true });
  await cp(join(from, path), join(to, path), { recursive: true });
}
