import { Fault } from "../../kernel/index.ts";
import { bubbleArguments, bubbleProblem } from "./bubblewrap.ts";
import type { SandboxMode, SandboxPolicy, SandboxReport } from "./sandbox-policy.ts";

/** A command that is to run in a sandbox. */
export interface SandboxedCommand {
  readonly workspace: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** How to start a command in the sandbox. */
export interface Wrapping {
  /** Program and arguments to put before the command. Empty if no sandbox is used. */
  readonly prefix: readonly string[];
  /** What was applied, for the metadata of the result. */
  readonly report: SandboxReport;
}

const modes: readonly unknown[] = ["off", "warn", "enforce"] satisfies SandboxMode[];

/** Wraps commands in a sandbox according to a policy. Whether a sandbox is available is checked once. */
export class Sandbox {
  readonly policy: SandboxPolicy;
  #problem: Promise<string | undefined> | undefined;

  constructor(policy: SandboxPolicy) {
    if (!modes.includes(policy.mode)) {
      throw new Fault(
        "invalid_argument",
        `invalid mode of the sandbox: ${JSON.stringify(policy.mode)}; use one of ${modes.join(", ")}`,
      );
    }
    this.policy = policy;
  }

  /**
   * Returns how to start the command. Throws `dependency_missing` if the mode is `enforce` and no sandbox is available.
   */
  async wrap(command: SandboxedCommand): Promise<Wrapping> {
    const { mode, network = false, program = "bwrap" } = this.policy;
    if (mode === "off") return { prefix: [], report: { mode, applied: "none", network: true } };
    const problem = await (this.#problem ??= bubbleProblem(program));
    if (problem === undefined) {
      const prefix = [program, ...bubbleArguments({ ...command, policy: this.policy })];
      return { prefix, report: { mode, applied: "bubblewrap", network } };
    }
    if (mode === "enforce")
      throw new Fault(
        "dependency_missing",
        `the command was not run, because the sandbox is enforced: ${problem}`,
      );
    return { prefix: [], report: { mode, applied: "none", network: true, warning: problem } };
  }
}
