/**
 * Whether commands run in a sandbox.
 *
 * - `enforce`: commands run only in a sandbox. If none is available, the call fails.
 * - `warn`: commands run in a sandbox if one is available. If not, they run without one and the result says so.
 * - `off`: commands run without a sandbox, with all permissions of this process.
 */
export type SandboxMode = "off" | "warn" | "enforce";

/** Limits of what one sandboxed command may use. A lower limit of this process still applies. */
export interface SandboxLimits {
  /** Maximum number of processes and threads. Default: 1_024. */
  readonly processes?: number;
  /** Maximum private memory of one process, in bytes. Default: 4 GiB. */
  readonly memoryBytes?: number;
  /** Maximum size of one file that is written, in bytes. Default: 2 GiB. */
  readonly fileBytes?: number;
  /** Maximum number of open files of one process. Default: 4_096. */
  readonly openFiles?: number;
  /** Maximum processor time of one process, in seconds. Default: 600. */
  readonly cpuSeconds?: number;
  /** Size of `/tmp`, and of `/dev/shm`, in bytes. Both are kept in memory. Default: 1 GiB. */
  readonly tmpBytes?: number;
}

/** What a sandboxed command may reach. */
export interface SandboxPolicy {
  /** Whether a sandbox is used or required. */
  readonly mode: SandboxMode;
  /** Whether commands may reach the network. Default: `false`. */
  readonly network?: boolean;
  /** Folders that commands may read, in addition to system folders and the workspace. */
  readonly readable?: readonly string[];
  /** Folders that commands may write, in addition to the workspace. Control files in these folders are read-only. */
  readonly writable?: readonly string[];
  /** Limits of processes, memory, files and processor time. */
  readonly limits?: SandboxLimits;
  /**
   * Name or path of the bubblewrap program. A name is looked up in the folders of PATH outside the writable folders.
   * Default: `bwrap`.
   */
  readonly program?: string;
}

/** The sandbox settings that were applied to a command. They are stored in the metadata of the result. */
export interface SandboxReport {
  /** Mode that the policy asked for. */
  readonly mode: SandboxMode;
  /** Sandbox that was used. */
  readonly applied: "bubblewrap" | "none";
  /** Whether the command could reach the network. */
  readonly network: boolean;
  /** Why no sandbox was used although the mode is `warn`. */
  readonly warning?: string;
  /** Control files that the command created, as absolute paths. They did not exist before, so they were not read-only. */
  readonly created?: readonly string[];
  /** Control files whose changes were undone after the command, because these files could not be made read-only. */
  readonly undone?: readonly string[];
}
