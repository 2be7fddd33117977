import type { Command } from "commander";

interface AgentOptionTexts {
  /** Description of `--model`. */
  readonly model: string;
  /** Default of `--tools`, as text for the help. */
  readonly tools: string;
}

/** Adds the options that decide how the agents of a workspace are created: model, tools, sandbox and limits. */
export function addAgentOptions(command: Command, { model, tools }: AgentOptionTexts): Command {
  return command
    .option("-m, --model <provider/id>", model)
    .option("--base-url <url>", "the provider's address, if it is not the usual one")
    .option("--tools <none|read|all>", `the tools of the agents (default: ${tools})`)
    .option("--sandbox <enforce|warn|off>", "the sandbox of shell commands (default: enforce)")
    .option("--instructions <text>", "the system prompt")
    .option("--max-turns <n>", "maximum number of turns (default: 25)");
}
