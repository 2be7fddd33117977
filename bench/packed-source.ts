import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BenchEnd } from "./bench-end.ts";

const execute = promisify(execFile);
const repository = fileURLToPath(new URL("../", import.meta.url));
const benches = fileURLToPath(new URL(".", import.meta.url));

/** Packages that were built from the commits of this repository, in a temporary folder outside it. */
export class PackedSources {
  readonly #folder: string;
  readonly #signal: AbortSignal;

  private constructor(folder: string, signal: AbortSignal) {
    this.#folder = folder;
    this.#signal = signal;
  }

  /** Commands that `pack()` has started end when the signal is aborted. */
  static async create(signal: AbortSignal): Promise<PackedSources> {
    return new PackedSources(await mkdtemp(join(tmpdir(), "reeve-pairs-")), signal);
  }

  /**
   * Builds and packs a commit, or the working tree with its uncommitted files for `null`, without a network. Returns the folder of the
   * unpacked package. It also contains the benches of the working tree, which import the package that is around them.
   */
  async pack(commit: string | null): Promise<string> {
    const name = commit ?? "working-tree";
    const source = join(this.#folder, `source-${name}`);
    const target = join(this.#folder, `package-${name}`);
    await mkdir(source);
    await (commit === null ? copyWorkingTree(source) : this.#extract(commit, source));
    await symlink(join(repository, "node_modules"), join(source, "node_modules"));
    const programs = join(repository, "node_modules/.bin");
    await this.#run(join(programs, "tsc"), ["-b", "src", "src/surfaces", "src/testing"], source);
    await this.#run(process.execPath, ["build/bundle.ts"], source);
    await mkdir(target);
    await this.#run("npm", ["pack", "--ignore-scripts", "--pack-destination", target], source);
    const file = (await readdir(target)).find((each) => each.endsWith(".tgz"));
    if (file === undefined) throw new Error(`npm packed nothing of ${name}`);
    await this.#run("tar", ["-xzf", file, "--strip-components=1"], target);
    await symlink(join(repository, "node_modules"), join(target, "node_modules"));
    await copyBenches(target);
    await rm(source, { recursive: true });
    return target;
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  async #extract(commit: string, target: string): Promise<void> {
    const file = `${target}.tar`;
    await this.#run("git", ["archive", "--output", file, commit], repository);
    await this.#run("tar", ["-xf", file], target);
    await rm(file);
  }

  /** The program has a process group of its own, so that programs that it starts end with it and write nothing afterwards. */
  async #run(program: string, args: readonly string[], cwd: string): Promise<void> {
    this.#signal.throwIfAborted();
    const child = spawn(program, args, { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const stop = (): void => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    };
    this.#signal.addEventListener("abort", stop);
    try {
      let said = "";
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => void (said += text));
      const [code] = (await once(child, "close")) as [number | null];
      this.#signal.throwIfAborted();
      if (code !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${said.slice(0, 2_000)}`);
    } finally {
      this.#signal.removeEventListener("abort", stop);
    }
  }
}

/** Copies the benches into the folder of a package. Their imports of `reeve` then find this package. */
export async function copyBenches(target: string): Promise<void> {
  await cp(benches, join(target, "bench"), {
    recursive: true,
    filter: (path) => !path.endsWith("node_modules"),
  });
}

/** Returns the hash of a commit of this repository, and refuses a name that git does not know. */
export async function commitOf(name: string): Promise<string> {
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
  try {
    const { stdout } = await execute("git", args, { cwd: repository });
    return stdout.trim();
  } catch {
    throw new BenchEnd(
      `invalid --against "${name}": expected a commit of this repository; use a hash, a tag or a branch`,
      2,
    );
  }
}

/** Copies the files that git knows or does not ignore. */
async function copyWorkingTree(target: string): Promise<void> {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  const { stdout } = await execute("git", args, { cwd: repository, maxBuffer: 2 ** 26 });
  const folders = new Set<string>();
  for (const path of stdout.split("\0").filter(Boolean)) {
    const folder = dirname(join(target, path));
    if (!folders.has(folder)) await mkdir(folder, { recursive: true });
    folders.add(folder);
    try {
      await cp(join(repository, path), join(target, path));
    } catch (error) {
      // A deleted file that is not committed yet.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
}
