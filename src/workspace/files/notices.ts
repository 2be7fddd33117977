/** A notice for the user about a file of the workspace. It does not stop the work. */
export interface WorkspaceNotice {
  /**
   * `skipped`: the file or setting is not used, because it needs trust or is a link that leads outside the project.
   * `duplicate`: another file of the same name takes precedence. `cut`: the file is longer than its limit.
   * `warning`: anything else.
   */
  readonly kind: "skipped" | "duplicate" | "cut" | "warning";
  /** Path of the file. */
  readonly path: string;
  /** What is wrong, and how to fix it. */
  readonly message: string;
}

/** Collects the notices while the workspace is read once. */
export class Notices {
  readonly #all: WorkspaceNotice[] = [];

  add(kind: WorkspaceNotice["kind"], path: string, message: string): void {
    this.#all.push({ kind, path, message });
  }

  get all(): readonly WorkspaceNotice[] {
    return this.#all;
  }
}
