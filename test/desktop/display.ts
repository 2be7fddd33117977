import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { Programs } from "./programs.ts";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
}

/** A virtual X server with programs on it. All of them end with it. */
export class Display {
  readonly name: string;
  /** Address of the display's own message bus, on which programs describe their windows. */
  readonly bus: string;
  readonly #programs: Programs;
  readonly #running: ChildProcess[];
  readonly #shown: ChildProcess[] = [];
  readonly #folder: string;

  private constructor(
    name: string,
    bus: string,
    programs: Programs,
    running: ChildProcess[],
    folder: string,
  ) {
    [this.name, this.bus, this.#programs, this.#running, this.#folder] = [
      name,
      bus,
      programs,
      running,
      folder,
    ];
  }

  static async start(programs: Programs): Promise<Display> {
    const { paths, env } = programs;
    const folder = await mkdtemp(join(tmpdir(), "reeve-display-"));
    const layouts = env["REEVE_XKB"];
    // The server takes the first free display number and prints it.
    const screen = ["-displayfd", "3", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"];
    const server = spawn(paths.Xvfb, [...screen, ...(layouts === undefined ? [] : ["-xkbdir", layouts])], {
      cwd: dirname(paths.Xvfb),
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    });
    const config = join(folder, "bus.conf");
    await writeFile(config, busConfig(folder));
    const bus = spawn(paths["dbus-daemon"], [`--config-file=${config}`, "--nofork", "--print-address=3"], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "ignore", "pipe"],
    });
    const [number, address] = await Promise.all([line(server), line(bus)]);
    const display = new Display(`:${number}`, address, programs, [server, bus], folder);
    const registry = display.#spawn("at-spi2-registryd", []);
    display.#running.push(registry);
    await line(registry, 1);
    return display;
  }

  /** Starts a program and resolves when it has ended. */
  run(program: keyof Programs["paths"], ...args: readonly string[]): Promise<Ended> {
    const child = this.#spawn(program, args);
    this.#shown.push(child);
    let stdout = "";
    child.stdout?.on("data", (bytes: Buffer) => (stdout += bytes.toString()));
    return new Promise((resolve, reject) => {
      child.once("error", reject).once("close", (code) => resolve({ code, stdout }));
    });
  }

  /** Starts a window manager and resolves when it is running. It may miss windows that were opened before. */
  async manage(): Promise<void> {
    const manager = this.#spawn("openbox", ["--sm-disable", "--startup", "echo ready"]);
    this.#running.push(manager);
    await line(manager, 1, (each) => each === "ready");
  }

  /** Ends the programs that `run` started, including those that ignore SIGTERM. */
  async clear(): Promise<void> {
    for (const child of this.#shown.splice(0)) await end(child, "SIGKILL");
  }

  async stop(): Promise<void> {
    await this.clear();
    // The server deletes its lock file itself.
    for (const child of this.#running.toReversed()) await end(child, "SIGTERM");
    await rm(this.#folder, { recursive: true, force: true });
  }

  #spawn(program: keyof Programs["paths"], args: readonly string[]): ChildProcess {
    const { paths, env } = this.#programs;
    const child = spawn(paths[program], args, {
      env: {
        ...process.env,
        ...env,
        DISPLAY: this.name,
        HOME: this.#folder,
        AT_SPI_BUS_ADDRESS: this.bus,
        DBUS_SESSION_BUS_ADDRESS: this.bus,
        LC_ALL: "C.UTF-8",
      },
      stdio: ["ignore", "pipe", "ignore"],
    });
    return child;
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

/** Returns the first line of a program's output for which `due` is true. */
async function line(child: ChildProcess, descriptor = 3, due = (_line: string) => true): Promise<string> {
  const stream = child.stdio[descriptor];
  if (!(stream instanceof Readable)) throw new Error(`the output of ${child.spawnfile} is not piped`);
  const said = createInterface({ input: stream });
  return new Promise((resolve, reject) => {
    said.on("line", (each) => {
      if (due(each)) resolve(each);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${child.spawnfile} ended with ${code}`)));
  });
}

/** Returns a bus configuration that allows everything, because only the tests use the bus. */
function busConfig(folder: string): string {
  return `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=${folder}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`;
}
