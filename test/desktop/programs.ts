import { execFile } from "node:child_process";
import {
  access,
  constants,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { repository } from "../gates/run-node.ts";

/** Paths of the programs that the tests run on a display, and the environment that they need. */
export interface Programs {
  readonly paths: Readonly<Record<Program, string>>;
  readonly env: Readonly<Record<string, string>>;
}

declare module "vitest" {
  interface ProvidedContext {
    readonly programs: Programs | { readonly missing: string };
  }
}

type Program = "Xvfb" | "xmessage" | "xterm" | "openbox" | "yad" | "dbus-daemon" | "at-spi2-registryd";

/** Debian package of each program. */
const packages: Readonly<Record<Program, string>> = {
  Xvfb: "xvfb",
  xmessage: "x11-utils",
  xterm: "xterm",
  openbox: "openbox",
  yad: "yad",
  "dbus-daemon": "dbus-daemon",
  "at-spi2-registryd": "at-spi2-core",
};
const names = Object.keys(packages) as readonly Program[];
const run = promisify(execFile);

/**
 * Finds the programs on this machine, or unpacks their Debian packages into a folder. Nothing is installed, and root is
 * not needed.
 */
export async function setup(project: TestProject): Promise<void> {
  const programs = await find("")
    .catch(() => unpacked())
    .catch((error: unknown) => ({ missing: String(error) }));
  if ("missing" in programs)
    process.stderr.write(
      `\nTHE DESKTOP TESTS ARE SKIPPED: Xvfb is not installed, and Debian's packages could not be downloaded.\n${programs.missing}\nTo run them: apt-get install ${Object.values(packages).join(" ")}\n\n`,
    );
  project.provide("programs", programs);
}

async function unpacked(): Promise<Programs> {
  const kept = join(repository, "node_modules/.cache/reeve-desktop");
  const root = join(kept, "root");
  return find(root).catch(async () => {
    await mkdir(kept, { recursive: true });
    const folder = await mkdtemp(join(kept, "new-"));
    try {
      await unpackInto(folder);
      await rm(root, { recursive: true, force: true });
      await rename(join(folder, "root"), root);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    return find(root);
  });
}

/** Downloads and unpacks the packages that this machine lacks, with their dependencies. */
async function unpackInto(folder: string): Promise<void> {
  const [lists, cache, root] = [join(folder, "lists"), join(folder, "cache"), join(folder, "root")];
  await mkdir(join(lists, "partial"), { recursive: true });
  await mkdir(join(cache, "archives/partial"), { recursive: true });
  const settings = [
    `Dir::State::lists=${lists}`,
    `Dir::Cache=${cache}`,
    "Debug::NoLocking=1",
    "APT::Sandbox::User=",
    "Acquire::Retries=0",
    "Acquire::http::Timeout=15",
  ].flatMap((setting) => ["-o", setting]);
  const apt = (...args: readonly string[]) => run("apt-get", [...settings, ...args], { timeout: 120_000 });
  await apt("update", "--error-on=any");
  const wanted = [...new Set([...Object.values(packages), "fonts-dejavu-core"])];
  await apt("install", "--yes", "--download-only", "--no-install-recommends", ...wanted);
  const archives = join(cache, "archives");
  for (const file of await readdir(archives))
    if (file.endsWith(".deb")) await run("dpkg", ["-x", join(archives, file), root]);
  await relocate(join(root, "usr/bin/Xvfb"));
  const fonts = ["/usr/share/fonts", join(folder, "../root/usr/share/fonts")];
  const cached = `<cachedir>${join(folder, "../root/font-cache")}</cachedir>`;
  const dirs = fonts.map((path) => `<dir>${path}</dir>`).join("");
  await writeFile(join(root, "fonts.conf"), `<?xml version="1.0"?><fontconfig>${dirs}${cached}</fontconfig>`);
}

/**
 * Changes the hard-coded folder from which the server starts the compiler of keyboard layouts to its working directory.
 */
async function relocate(server: string): Promise<void> {
  const bytes = await readFile(server).catch(() => undefined);
  if (bytes === undefined) return;
  const [from, to] = ["\0/usr/bin\0", "\0././././\0"];
  await writeFile(server, bytes.toString("latin1").replace(from, to), "latin1");
}

/** Finds each program under `root` or on the machine. Throws if a program is in neither. */
async function find(root: string): Promise<Programs> {
  const folders = ["usr/bin", "usr/libexec", "usr/lib/at-spi2-core"];
  const machine = [...(process.env["PATH"] ?? "").split(delimiter), ...folders.map((folder) => `/${folder}`)];
  const places = [...(root === "" ? [] : folders.map((folder) => join(root, folder))), ...machine];
  const paths: Partial<Record<Program, string>> = {};
  for (const name of names) {
    for (const place of places) {
      const path = join(place, name);
      const there = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      );
      if (there) paths[name] ??= path;
    }
    if (paths[name] === undefined) throw new Error(`the program ${name} was not found`);
  }
  return { paths: paths as Programs["paths"], env: root === "" ? {} : await environment(root) };
}

async function environment(root: string): Promise<Readonly<Record<string, string>>> {
  const [share, lib] = [join(root, "usr/share"), join(root, "usr/lib")];
  const machines = await readdir(lib).then(
    (all) => all.filter((name) => name.includes("-linux-")),
    () => [],
  );
  const layouts = join(share, "X11/xkb");
  const hasLayouts = await access(layouts).then(
    () => true,
    () => false,
  );
  return {
    LD_LIBRARY_PATH: machines.map((name) => join(lib, name)).join(delimiter),
    XDG_DATA_DIRS: [share, "/usr/local/share", "/usr/share"].join(delimiter),
    XDG_CONFIG_DIRS: [join(root, "etc/xdg"), "/etc/xdg"].join(delimiter),
    FONTCONFIG_FILE: join(root, "fonts.conf"),
    ...(hasLayouts && { REEVE_XKB: layouts }),
  };
}
