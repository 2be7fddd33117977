/**
 * Whether commands run in a sandbox.
 *
 * - `off`: commands run without a sandbox.
 * - `warn`: commands run in a sandbox if one is available. If not, they run without one and the result says so.
 * - `enforce`: commands run only in a sandbox. If none is available, the call fails.
 */
export type SandboxMode = "off" | "warn" | "enforce";

/** What a sandboxed command may reach. */
export interface SandboxPolicy {
  /** Whether a sandbox is used or required. */
  readonly mode: SandboxMode;
  /** Whether commands may reach the network. Default: `false`. */
  readonly network?: boolean;
  /** Folders that commands may read, in addition to system folders and the workspace. */
  readonly readable?: readonly string[];
  /** Folders that commands may write, in addition to the workspace. */
  readonly writable?: readonly string[];
  /** Name or path of the bubblewrap program. Default: `bwrap`. */
  readonly program?: string;
}

/** What was applied to a command. It is stored in the metadata of the result. */
export interface SandboxReport {
  /** Mode that the policy asked for. */
  readonly mode: SandboxMode;
  /** Sandbox that was used. */
  readonly applied: "bubblewrap" | "none";
  /** Whether the command could reach the network. */
  readonly network: boolean;
  /** Why no sandbox was used although the mode is `warn`. */
  readonly warning?: string;
}
