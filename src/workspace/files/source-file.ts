/** A module of the user that is loaded as code, or a file that describes an agent. */
export interface SourceFile {
  readonly name: string;
  readonly path: string;
  readonly origin: Origin;
  /** Folder whose files belong to the module. */
  readonly root: string;
  /** For a module of a trusted project: the files that it may load, by their real paths with their hashes. */
  readonly covered?: ReadonlyMap<string, string>;
}

/** The place from which a part of the workspace comes. */
export type Origin = "built-in" | "home" | "profile" | "project";
