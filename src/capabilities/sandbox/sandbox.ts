import { Fault, is, optionTable, type FolderMount, type OptionKinds } from "../../kernel/index.ts";
import { isInside } from "../files/control-references.ts";
import { bubbleCommand, findBubble, type Descriptor, type FoundBubble } from "./bubblewrap.ts";
import { limitedCommand, sandboxLimits } from "./sandbox-limits.ts";
import type { SandboxLimits, SandboxPolicy, SandboxReport } from "./sandbox-policy.ts";
import { SandboxProcesses } from "./sandbox-processes.ts";
import { sandboxUser } from "./system-files.ts";
import { WorkspaceGuard } from "./workspace-guard.ts";

/** A command that is to run in a sandbox. */
export interface SandboxedCommand {
  /** Real path of the folder that the command may write. */
  readonly workspace: string;
  /** Real paths of further folders that the command may write. Default: none. */
  readonly folders?: readonly string[];
  /**
   * Further paths that the command can access: some only for reading, some for writing. Control files in the latter
   * are read-only, as in the workspace. A path for reading inside a path for writing is read-only. Default: none.
   */
  readonly mounts?: readonly FolderMount[];
  /**
   * Real paths of folders that belong only to the command, such as its own home folder. It may write everything in
   * them, including control files, because no other program reads those. Default: none.
   */
  readonly own?: readonly string[];
  /** Real path of the folder in which the command starts. It must be inside the workspace or one of `folders`. */
  readonly cwd: string;
  /** Shell that runs the command. */
  readonly shell: string;
  /** Text of the command. */
  readonly command: string;
  /** Environment variables of this process that the command gets. In a sandbox, home folder and user are replaced. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that are set in any case. */
  readonly setEnv: Readonly<Record<string, string>>;
}

/** How to start a command. The caller must call `end()` after the command has ended, even if it failed. */
export interface Launch {
  readonly program: string;
  readonly args: readonly string[];
  /**
   * Folder in which the started program begins, if it changes to the command's folder itself. A path through a
   * descriptor of this process would be invalid there, because the program has its own descriptors.
   */
  readonly cwd?: string;
  /** Environment variables of the started program. */
  readonly env: Readonly<Record<string, string>>;
  /** Descriptors of the started program from 3 on. */
  readonly descriptors: readonly Descriptor[];
  /**
   * Watches limits that the kernel does not enforce. The caller calls it with a function that stops the command, and
   * calls the returned function when the command has ended.
   */
  readonly watch?: (stop: () => void) => () => void;
  /**
   * Waits until all processes of the sandbox have ended, undoes changes of control files, releases all descriptors,
   * and returns the applied settings. Further calls return the same result.
   */
  readonly end: () => Promise<SandboxReport>;
}

const knownOptions = optionTable({
  mode: is.choice(["off", "warn", "enforce"], { required: true }),
  network: is.boolean(),
  readable: is.list({ of: is.text() }),
  writable: is.list({ of: is.text() }),
  limits: is.any,
  program: is.text(),
} satisfies OptionKinds<SandboxPolicy>);

/** Starts commands in a sandbox according to a policy. Once a sandbox was available, this is not checked again. */
export class Sandbox {
  readonly policy: SandboxPolicy;
  readonly #limits: Required<SandboxLimits>;
  #found: Promise<FoundBubble> | undefined;

  constructor(policy: SandboxPolicy) {
    knownOptions.read("the sandbox", policy);
    this.policy = policy;
    this.#limits = sandboxLimits(policy.limits);
  }

  /** Returns why no sandbox is available for commands of the workspace, or `undefined` if one is. */
  async problem(workspace: string): Promise<string | undefined> {
    const found = await this.#find(workspace);
    return "problem" in found ? found.problem : undefined;
  }

  /** Returns how to start the command. Throws `dependency_missing` if the mode is `enforce` and no sandbox is available. */
  async launch(command: SandboxedCommand): Promise<Launch> {
    const { mode } = this.policy;
    if (mode === "off") return plain(command, { mode, applied: "none", network: true });
    const found = await this.#find(command.workspace, command.folders);
    if ("program" in found) return this.#wrapped(found.program, command);
    if (mode === "warn")
      return plain(command, { mode, applied: "none", network: true, warning: found.problem });
    throw new Fault(
      "dependency_missing",
      `the command was not run, because the sandbox is enforced: ${found.problem}`,
    );
  }

  async #find(workspace: string, folders: readonly string[] = []): Promise<FoundBubble> {
    const { program = "bwrap", writable = [] } = this.policy;
    this.#found ??= findBubble(program, [workspace, ...folders, ...writable]);
    const found = await this.#found;
    // The program may be installed while this process runs.
    if ("problem" in found) this.#found = undefined;
    return found;
  }

  async #wrapped(program: string, command: SandboxedCommand): Promise<Launch> {
    const { mode, network = false, readable = [], writable = [] } = this.policy;
    const { workspace, folders = [], mounts = [], own = [], cwd, shell, env, setEnv } = command;
    const [seen, written] = [pathsOf(mounts, "read"), pathsOf(mounts, "write")];
    const isCovered = (path: string): boolean => written.some((folder) => isInside(path, folder));
    if ([workspace, ...folders].includes("/"))
      throw new Fault(
        "invalid_argument",
        "the workspace of a sandbox cannot be /: use a folder of the project",
      );
    const limited = limitedCommand(shell, [shell, "-c", command.command], this.#limits);
    const guard = await WorkspaceGuard.open([workspace, ...folders, ...writable, ...written]);
    const processes = new SandboxProcesses();
    const { name, home } = sandboxUser;
    const user = { HOME: home, USER: name, LOGNAME: name, TMPDIR: "/tmp", SHELL: shell };
    const started = bubbleCommand({
      program,
      command: limited,
      cwd,
      env: { ...env, ...user, ...setEnv },
      network,
      readable: [...readable, ...seen.filter((path) => !isCovered(path))],
      mounts: guard.mounts,
      readableInside: seen.filter(isCovered),
      own,
      limits: this.#limits,
      onInfo: processes.receive,
    });
    const finished = async (): Promise<SandboxReport> => {
      await processes.ended();
      return { mode, applied: "bubblewrap", network, ...(await guard.end()) };
    };
    let ending: Promise<SandboxReport> | undefined;
    return {
      ...started,
      cwd: "/",
      env: {},
      watch: (stop) => {
        const ends = [guard.watch(stop)];
        // For other users the kernel limits the number of processes.
        if (process.getuid?.() === 0) ends.push(processes.watch(this.#limits.processes, stop));
        return () => {
          for (const end of ends) end();
        };
      },
      end: () => (ending ??= finished()),
    };
  }
}

function pathsOf(mounts: readonly FolderMount[], access: FolderMount["access"]): readonly string[] {
  return mounts.filter((mount) => mount.access === access).map(({ path }) => path);
}

function plain({ shell, command, env, setEnv }: SandboxedCommand, report: SandboxReport): Launch {
  return {
    program: shell,
    args: ["-c", command],
    env: { ...env, ...setEnv },
    descriptors: [],
    end: () => Promise.resolve(report),
  };
}
