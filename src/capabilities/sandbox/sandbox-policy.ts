/**
 * What is done about a command's reach.
 *
 * - `off`: nothing.
 * - `warn`: a sandbox where one can be had; where none can, the command runs, and its result says so.
 * - `enforce`: a sandbox, or no command.
 */
export type SandboxMode = "off" | "warn" | "enforce";

export interface SandboxPolicy {
  readonly mode: SandboxMode;
  /** Whether commands may reach the network. Not unless told. */
  readonly network?: boolean;
  /** Folders that can be read besides the system's own and the workspace. */
  readonly readable?: readonly string[];
  /** Folders that can be written besides the workspace. */
  readonly writable?: readonly string[];
  /** The program; `bwrap` from the PATH unless told. */
  readonly program?: string;
}

/** What was really done, for the result's metadata; never more than that. */
export interface SandboxReport {
  readonly mode: SandboxMode;
  readonly applied: "bubblewrap" | "none";
  /** Whether the command could reach the network. */
  readonly network: boolean;
  /** Why there is none although one was wanted. */
  readonly warning?: string;
}
