import { Fault, type Commit, type ExtensionSurface, type Lease } from "../../../kernel/index.ts";
import type { Workspace } from "../../../workspace/workspace.ts";
import { extensionErrorWords, extensionNoticeWords, extensionWords } from "../terminal/policy-words.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";
import type { OpenParts } from "./open-parts.ts";
import { noticeLines } from "./run-workspace.ts";

/**
 * The workspaces of a command that runs for a long time: the workspace of its folder, and those of the runs that it
 * executes. SIGHUP, and `ctx.reload()` of an extension, read the files of all these workspaces again.
 */
export class LiveWorkspaces {
  readonly #open: OpenParts;
  readonly #terminal: Terminal;
  readonly #all: Workspace[] = [];
  #whenReloaded: () => Promise<void> = async () => undefined;
  #reloading: Promise<void> = Promise.resolve();

  /**
   * `onHangup`: whether SIGHUP reads the files again. If `false`, SIGHUP ends the command, as usual at a terminal.
   * Default: `true`.
   */
  constructor(open: OpenParts, terminal: Terminal, { onHangup: isReread = true } = {}) {
    this.#open = open;
    this.#terminal = terminal;
    if (!isReread) return;
    const onHangup = (): void => {
      this.reload().catch((error: unknown) =>
        terminal.say(`reeve: the files were not read again: ${printable(Fault.from(error).message)}`),
      );
    };
    process.on("SIGHUP", onHangup);
    open.add({ close: async () => void process.off("SIGHUP", onHangup) });
  }

  /** Adds a workspace. It is closed when the command ends. */
  add(workspace: Workspace): Workspace {
    this.#all.push(this.#open.add(workspace));
    return workspace;
  }

  /** Registers a callback that is called after each reload, before `reload` resolves. */
  whenReloaded(callback: () => Promise<void>): void {
    this.#whenReloaded = callback;
  }

  /**
   * Reads the files of all workspaces again, and prints the notices about them. A workspace with an invalid file
   * keeps its state; the first such error is thrown after the other workspaces have been read. Concurrent calls run
   * one after another.
   */
  reload(): Promise<void> {
    const next = this.#reloading.then(() => this.#reload());
    this.#reloading = next.catch(() => undefined);
    return next;
  }

  async #reload(): Promise<void> {
    const problems: unknown[] = [];
    const lines = new Set<string>();
    for (const workspace of this.#all) {
      try {
        await workspace.reload();
        for (const line of noticeLines(workspace)) lines.add(line);
      } catch (error) {
        problems.push(error);
      }
    }
    for (const line of lines) this.#terminal.say(line);
    await this.#whenReloaded();
    if (problems.length > 0) throw problems[0];
  }
}

/**
 * Returns the functions with which a command shows output of extensions outside of runs. `reload` reads the files
 * of the command's workspaces again.
 */
export function extensionSurface(
  terminal: Pick<Terminal, "say">,
  reload: () => Promise<void>,
): ExtensionSurface {
  return {
    notify: (notice) => terminal.say(`reeve: ${extensionNoticeWords(notice)}`),
    reportError: (error) => terminal.say(`reeve: ${extensionErrorWords(error)}`),
    reload,
  };
}

/** Prints the errors and notices of extensions in the runs that a process executes. */
export function extensionReports(terminal: Pick<Terminal, "say">): {
  committed(lease: Lease, commit: Commit): void;
} {
  return {
    committed: ({ runId }, { events = [] }) => {
      for (const event of events) {
        const words = extensionWords(event);
        if (words !== undefined) terminal.say(`reeve: ${runId}: ${words}`);
      }
    },
  };
}
