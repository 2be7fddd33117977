import { Fault } from "../../kernel/index.ts";
import { bubbleArguments, bubbleProblem } from "./bubblewrap.ts";
import type { SandboxMode, SandboxPolicy, SandboxReport } from "./sandbox-policy.ts";

export interface SandboxedCommand {
  readonly workspace: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** What to put before a program, and what that comes to. */
export interface Wrapping {
  /** Program and arguments; empty where nothing is put before it. */
  readonly prefix: readonly string[];
  readonly report: SandboxReport;
}

const modes: readonly unknown[] = ["off", "warn", "enforce"] satisfies SandboxMode[];

/** Puts commands into a sandbox as its policy says. Whether one can be had is tried once. */
export class Sandbox {
  readonly policy: SandboxPolicy;
  #problem: Promise<string | undefined> | undefined;

  constructor(policy: SandboxPolicy) {
    if (!modes.includes(policy.mode)) {
      throw new Fault(
        "invalid_argument",
        `mode of the sandbox is ${JSON.stringify(policy.mode)}: it must be one of ${modes.join(", ")}`,
      );
    }
    this.policy = policy;
  }

  /** Throws `dependency_missing` where one is enforced and cannot be had. */
  async wrap(command: SandboxedCommand): Promise<Wrapping> {
    const { mode, network = false, program = "bwrap" } = this.policy;
    if (mode === "off") return { prefix: [], report: { mode, applied: "none", network: true } };
    const problem = await (this.#problem ??= bubbleProblem(program));
    if (problem === undefined) {
      const prefix = [program, ...bubbleArguments({ ...command, policy: this.policy })];
      return { prefix, report: { mode, applied: "bubblewrap", network } };
    }
    if (mode === "enforce")
      throw new Fault("dependency_missing", `not run: the sandbox is enforced, and ${problem}`);
    return { prefix: [], report: { mode, applied: "none", network: true, warning: problem } };
  }
}
